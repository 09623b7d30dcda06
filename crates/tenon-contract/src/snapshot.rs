//! The snapshot store: an LRU cache of full results, kept within fixed bounds while clients page through them.
//!
//! The least recently used entries are evicted first, and every entry expires a fixed time after it was stored.
//! Eviction depends only on the sequence of calls, so two runs agree. An entry over the entry limit is rejected and
//! evicts nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use crate::clock::Clock;
use crate::cursor::SnapshotKey;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    pub entry_bytes: usize,
    pub total_bytes: usize,
    /// Bounds the overhead of many tiny entries, which `total_bytes` does not count.
    pub entries: usize,
    pub age: Duration,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            entry_bytes: 16 * 1024 * 1024,
            total_bytes: 64 * 1024 * 1024,
            entries: 4096,
            age: Duration::from_secs(600),
        }
    }
}

/// The result is too large to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("result of {bytes} bytes exceeds the snapshot limit of {limit} bytes")]
pub struct SnapshotTooLarge {
    pub bytes: usize,
    pub limit: usize,
}

/// Results by snapshot key. Shared by reference between threads; values are never copied.
#[derive(Debug)]
pub struct SnapshotStore<T> {
    limits: SnapshotLimits,
    clock: Clock,
    entries: Mutex<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    /// Least recently used first.
    by_key: IndexMap<SnapshotKey, Entry<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    value: Arc<T>,
    bytes: usize,
    stored: Duration,
}

impl<T> SnapshotStore<T> {
    #[must_use]
    pub fn new(limits: SnapshotLimits, clock: Clock) -> Self {
        Self { limits, clock, entries: Mutex::new(Entries { by_key: IndexMap::new(), bytes: 0 }) }
    }

    /// Stores a value of `bytes` bytes, replacing any earlier value of the key and evicting others to make room.
    ///
    /// # Errors
    /// If the value alone exceeds a limit. The key then has no value.
    pub fn insert(&self, key: SnapshotKey, value: Arc<T>, bytes: usize) -> Result<(), SnapshotTooLarge> {
        let now = self.clock.monotonic();
        let limit = self.limits.entry_bytes.min(self.limits.total_bytes);
        let mut entries = self.lock();
        entries.remove(&key);
        entries.remove_expired(now, self.limits.age);
        if bytes > limit || self.limits.entries == 0 {
            return Err(SnapshotTooLarge { bytes, limit });
        }
        while entries.bytes + bytes > self.limits.total_bytes || entries.by_key.len() >= self.limits.entries {
            entries.evict_first();
        }
        entries.bytes += bytes;
        entries.by_key.insert(key, Entry { value, bytes, stored: now });
        Ok(())
    }

    /// The value of a key, which becomes the most recently used; `None` if it was evicted or has expired.
    pub fn get(&self, key: &SnapshotKey) -> Option<Arc<T>> {
        let now = self.clock.monotonic();
        let mut entries = self.lock();
        let index = entries.by_key.get_index_of(key)?;
        if entries.by_key[index].has_expired(now, self.limits.age) {
            entries.remove(key);
            return None;
        }
        let last = entries.by_key.len() - 1;
        entries.by_key.move_index(index, last);
        Some(Arc::clone(&entries.by_key[last].value))
    }

    /// Removes expired entries. Inserting does so too; this is for a store without inserts.
    pub fn remove_expired(&self) {
        let now = self.clock.monotonic();
        self.lock().remove_expired(now, self.limits.age);
    }

    /// Number of entries and their bytes.
    #[must_use]
    pub fn usage(&self) -> (usize, usize) {
        let entries = self.lock();
        (entries.by_key.len(), entries.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        // A poisoned lock is safe to use: no call can panic while `bytes` and `by_key` disagree.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Entry<T> {
    fn has_expired(&self, now: Duration, age: Duration) -> bool {
        now.saturating_sub(self.stored) >= age
    }
}

impl<T> Entries<T> {
    fn remove(&mut self, key: &SnapshotKey) {
        if let Some(entry) = self.by_key.shift_remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn evict_first(&mut self) {
        if let Some((_, entry)) = self.by_key.shift_remove_index(0) {
            self.bytes -= entry.bytes;
        }
    }

    fn remove_expired(&mut self, now: Duration, age: Duration) {
        self.by_key.retain(|_, entry| !entry.has_expired(now, age));
        self.bytes = self.by_key.values().map(|entry| entry.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockControl;
    use crate::cursor::RequestKey;
    use crate::epoch::EpochTuple;

    fn key(name: &str) -> SnapshotKey {
        SnapshotKey::new(&RequestKey::new(name, &[]), &EpochTuple::new("", &[0]))
    }

    fn store(limits: SnapshotLimits) -> (SnapshotStore<&'static str>, ClockControl) {
        let (clock, control) = Clock::fixed(jiff::Timestamp::UNIX_EPOCH);
        (SnapshotStore::new(limits, clock), control)
    }

    fn small() -> SnapshotLimits {
        SnapshotLimits { entry_bytes: 10, total_bytes: 20, entries: 3, age: Duration::from_secs(10) }
    }

    fn put(
        store: &SnapshotStore<&'static str>,
        name: &'static str,
        bytes: usize,
    ) -> Result<(), SnapshotTooLarge> {
        store.insert(key(name), Arc::new(name), bytes)
    }

    fn present(store: &SnapshotStore<&'static str>, names: &[&str]) -> Vec<bool> {
        names.iter().map(|name| store.get(&key(name)).is_some()).collect()
    }

    #[test]
    fn default_limits_match_the_contract() {
        let (store, control) = store(SnapshotLimits::default());
        for name in ["a", "b", "c", "d"] {
            put(&store, name, 16 * 1024 * 1024).unwrap();
        }
        assert_eq!(store.usage(), (4, 64 * 1024 * 1024));
        assert!(put(&store, "e", 16 * 1024 * 1024 + 1).is_err());
        control.advance(Duration::from_millis(599_999));
        assert!(store.get(&key("a")).is_some());
        control.advance(Duration::from_millis(1));
        assert!(store.get(&key("a")).is_none());
        store.remove_expired();
        assert_eq!(store.usage(), (0, 0));
    }

    #[test]
    fn least_recently_used_entry_is_evicted() {
        let (store, _) = store(small());
        put(&store, "a", 10).unwrap();
        put(&store, "b", 10).unwrap();
        assert!(store.get(&key("a")).is_some());
        put(&store, "c", 5).unwrap();
        assert_eq!(present(&store, &["a", "b", "c"]), [true, false, true]);
    }

    #[test]
    fn number_of_entries_is_bounded() {
        let (store, _) = store(small());
        for name in ["a", "b", "c", "d"] {
            put(&store, name, 0).unwrap();
        }
        assert_eq!(present(&store, &["a", "b", "c", "d"]), [false, true, true, true]);
    }

    #[test]
    fn too_large_entry_is_rejected_and_evicts_nothing() {
        let (store, _) = store(small());
        put(&store, "a", 10).unwrap();
        put(&store, "b", 10).unwrap();
        assert_eq!(put(&store, "c", 11), Err(SnapshotTooLarge { bytes: 11, limit: 10 }));
        assert_eq!(put(&store, "b", usize::MAX), Err(SnapshotTooLarge { bytes: usize::MAX, limit: 10 }));
        assert_eq!(present(&store, &["a", "b", "c"]), [true, false, false]);
        assert_eq!(store.usage(), (1, 10));
    }

    #[test]
    fn storing_again_replaces_the_value_and_renews_its_age() {
        let (store, control) = store(small());
        put(&store, "a", 4).unwrap();
        control.advance(Duration::from_secs(9));
        put(&store, "a", 6).unwrap();
        control.advance(Duration::from_secs(9));
        assert_eq!(store.usage(), (1, 6));
        assert_eq!(present(&store, &["a"]), [true]);
    }
}
