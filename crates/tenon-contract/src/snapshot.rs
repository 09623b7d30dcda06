//! The snapshot store: full results kept while clients page through them, within fixed bounds.
//!
//! Least recently used entries leave first; an entry leaves at the latest when its age is reached, counted from when
//! it was stored. What leaves follows from the sequence of calls alone, so two runs agree. An entry over its own
//! bound is refused, never squeezed in at the cost of everything else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use crate::clock::Clock;
use crate::cursor::SnapshotKey;

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLimits {
    pub entry_bytes: usize,
    pub total_bytes: usize,
    /// Bounds the bookkeeping for tiny entries, which their bytes do not show.
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

/// The result is too large to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a result of {bytes} bytes cannot be kept: the limit is {limit}")]
pub struct SnapshotTooLarge {
    pub bytes: usize,
    pub limit: usize,
}

/// Keeps results by the state they are about. Shared by reference between threads; values are never copied.
#[derive(Debug)]
pub struct SnapshotStore<T> {
    limits: SnapshotLimits,
    clock: Clock,
    kept: Mutex<Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    /// Least recently used first.
    entries: IndexMap<SnapshotKey, Entry<T>>,
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
        Self { limits, clock, kept: Mutex::new(Kept { entries: IndexMap::new(), bytes: 0 }) }
    }

    /// Keeps a value of `bytes` bytes, in place of what was kept under the key, and makes room by letting others go.
    ///
    /// # Errors
    /// When the value alone is over a limit. Nothing is kept under the key then.
    pub fn insert(&self, key: SnapshotKey, value: Arc<T>, bytes: usize) -> Result<(), SnapshotTooLarge> {
        let now = self.clock.monotonic();
        let limit = self.limits.entry_bytes.min(self.limits.total_bytes);
        let mut kept = self.lock();
        kept.remove(&key);
        kept.remove_older(now, self.limits.age);
        if bytes > limit || self.limits.entries == 0 {
            return Err(SnapshotTooLarge { bytes, limit });
        }
        while kept.bytes + bytes > self.limits.total_bytes || kept.entries.len() >= self.limits.entries {
            kept.remove_first();
        }
        kept.bytes += bytes;
        kept.entries.insert(key, Entry { value, bytes, stored: now });
        Ok(())
    }

    /// The value kept under the key, which becomes the most recently used; none if it left.
    pub fn get(&self, key: &SnapshotKey) -> Option<Arc<T>> {
        let now = self.clock.monotonic();
        let mut kept = self.lock();
        let index = kept.entries.get_index_of(key)?;
        if kept.entries[index].is_older(now, self.limits.age) {
            kept.remove(key);
            return None;
        }
        let last = kept.entries.len() - 1;
        kept.entries.move_index(index, last);
        Some(Arc::clone(&kept.entries[last].value))
    }

    /// Lets go what is past its age. Inserting does so too; this is for a store that nobody uses any more.
    pub fn remove_expired(&self) {
        let now = self.clock.monotonic();
        self.lock().remove_older(now, self.limits.age);
    }

    /// Number of entries and their bytes.
    #[must_use]
    pub fn usage(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.entries.len(), kept.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        // No call panics while it holds the lock with the books out of balance.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Entry<T> {
    fn is_older(&self, now: Duration, age: Duration) -> bool {
        now.saturating_sub(self.stored) >= age
    }
}

impl<T> Kept<T> {
    fn remove(&mut self, key: &SnapshotKey) {
        if let Some(entry) = self.entries.shift_remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn remove_first(&mut self) {
        if let Some((_, entry)) = self.entries.shift_remove_index(0) {
            self.bytes -= entry.bytes;
        }
    }

    fn remove_older(&mut self, now: Duration, age: Duration) {
        self.entries.retain(|_, entry| !entry.is_older(now, age));
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockHands;
    use crate::cursor::RequestKey;
    use crate::epoch::EpochTuple;

    fn key(name: &str) -> SnapshotKey {
        SnapshotKey::new(&RequestKey::new(name, &[]), &EpochTuple::new("", &[0]))
    }

    fn store(limits: SnapshotLimits) -> (SnapshotStore<&'static str>, ClockHands) {
        let (clock, hands) = Clock::fixed(jiff::Timestamp::UNIX_EPOCH);
        (SnapshotStore::new(limits, clock), hands)
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

    fn held(store: &SnapshotStore<&'static str>, names: &[&str]) -> Vec<bool> {
        names.iter().map(|name| store.get(&key(name)).is_some()).collect()
    }

    #[test]
    fn the_default_limits_are_the_contracts() {
        let (store, hands) = store(SnapshotLimits::default());
        for name in ["a", "b", "c", "d"] {
            put(&store, name, 16 * 1024 * 1024).unwrap();
        }
        assert_eq!(store.usage(), (4, 64 * 1024 * 1024));
        assert!(put(&store, "e", 16 * 1024 * 1024 + 1).is_err());
        hands.advance(Duration::from_millis(599_999));
        assert!(store.get(&key("a")).is_some());
        hands.advance(Duration::from_millis(1));
        assert!(store.get(&key("a")).is_none());
        store.remove_expired();
        assert_eq!(store.usage(), (0, 0));
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let (store, _) = store(small());
        put(&store, "a", 10).unwrap();
        put(&store, "b", 10).unwrap();
        assert!(store.get(&key("a")).is_some());
        put(&store, "c", 5).unwrap();
        assert_eq!(held(&store, &["a", "b", "c"]), [true, false, true]);
    }

    #[test]
    fn the_number_of_entries_is_bounded_too() {
        let (store, _) = store(small());
        for name in ["a", "b", "c", "d"] {
            put(&store, name, 0).unwrap();
        }
        assert_eq!(held(&store, &["a", "b", "c", "d"]), [false, true, true, true]);
    }

    #[test]
    fn what_is_too_large_is_refused_and_disturbs_nothing_else() {
        let (store, _) = store(small());
        put(&store, "a", 10).unwrap();
        put(&store, "b", 10).unwrap();
        assert_eq!(put(&store, "c", 11), Err(SnapshotTooLarge { bytes: 11, limit: 10 }));
        assert_eq!(put(&store, "b", usize::MAX), Err(SnapshotTooLarge { bytes: usize::MAX, limit: 10 }));
        assert_eq!(held(&store, &["a", "b", "c"]), [true, false, false]);
        assert_eq!(store.usage(), (1, 10));
    }

    #[test]
    fn storing_again_replaces_and_renews() {
        let (store, hands) = store(small());
        put(&store, "a", 4).unwrap();
        hands.advance(Duration::from_secs(9));
        put(&store, "a", 6).unwrap();
        hands.advance(Duration::from_secs(9));
        assert_eq!(store.usage(), (1, 6));
        assert_eq!(held(&store, &["a"]), [true]);
    }
}
