//! Caches that stay in memory: loaded and verified once, used for many answers.
//!
//! Before each answer, the stamps of the folder, the lists and every delivered document are compared with those taken
//! at the load. In-place edits of other documents are detected by a sweep over all stamps, every second for caches in
//! use; the next caller checks an idle cache itself. A changed cache is loaded again completely, with all checks, so
//! every answer or error equals that of [`resolve`].
//!
//! Concurrent callers of one cache share a single load. A large cache is indexed in the background; until the index is
//! ready, answers read all documents. The least recently used caches are evicted to stay within a byte limit; a cache
//! over the limit is loaded for one answer and dropped.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rayon::prelude::*;

use crate::corpus::{Corpus, resolve};
use crate::error::Error;
use crate::postings::Postings;
use crate::query::Query;
use crate::select::{Selection, select};

/// Interval of sweeps over the caches in use. Changes must be detected within two seconds.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// After this many sweeps without a call, a cache is idle and no longer swept.
const IDLE_SWEEPS: u32 = 60;

/// Caches up to this size are indexed before the first answer.
const INDEXED_AT_ONCE: u64 = 4 << 20;

/// How often one call reloads a changing cache before it reads the disk without the pool.
const MAX_LOADS: usize = 4;

/// A pool of loaded caches with a memory limit.
#[derive(Debug)]
pub struct CachePool {
    caches: Arc<LoadedCaches>,
    sweeper: OnceLock<Option<Sweeper>>,
}

impl Default for CachePool {
    /// A pool of up to 1 GiB.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

impl CachePool {
    /// A pool of up to `capacity` bytes of documents and indexes.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self::with(LoadedCaches { capacity, indexed_at_once: INDEXED_AT_ONCE, by_use: Mutex::default() })
    }

    fn with(caches: LoadedCaches) -> Self {
        Self { caches: Arc::new(caches), sweeper: OnceLock::new() }
    }

    /// Answers a query from memory, loading the cache first if it is not in the pool or has changed.
    pub fn resolve(&self, cache: &Path, query: Query, budget: u64) -> Result<Selection, Error> {
        let swept = self.sweeper.get_or_init(|| Sweeper::start(&self.caches)).is_some();
        let mut query = query;
        for _ in 0..MAX_LOADS {
            let load = self.caches.touch(cache);
            let was_complete = load.get().is_some();
            let loaded = match load.get_or_init(|| LoadedCache::load(cache)) {
                Ok(loaded) => loaded,
                Err(error) => {
                    self.caches.discard(cache, &load);
                    if was_complete {
                        // The error of an earlier call, not discarded yet.
                        continue;
                    }
                    return Err(error.clone());
                }
            };
            self.caches.index(&load, loaded);
            let watched = loaded.mark_used() && swept;
            let selection = loaded.answer(query, budget);
            if selection.is_current() && (watched || loaded.is_current()) {
                self.caches.evict();
                return Ok(selection);
            }
            self.caches.discard(cache, &load);
            query = selection.into_query();
        }
        resolve(cache, query, budget)
    }
}

/// A cache in memory.
#[derive(Debug)]
struct LoadedCache {
    corpus: Arc<Corpus>,
    /// Unset until the index is built; `None` if it exceeds the limit. Without it, every answer reads all documents.
    postings: OnceLock<Option<Postings>>,
    /// Whether indexing has started.
    indexing: AtomicBool,
    /// Sweeps since the last call.
    idle: AtomicU32,
}

impl LoadedCache {
    fn load(cache: &Path) -> Result<Self, Error> {
        let corpus = Arc::new(Corpus::open(cache)?);
        Ok(Self {
            corpus,
            postings: OnceLock::new(),
            indexing: AtomicBool::new(false),
            idle: AtomicU32::new(0),
        })
    }

    /// Resets the idle count. Returns whether the cache was being swept until now.
    fn mark_used(&self) -> bool {
        self.idle.swap(0, Ordering::Relaxed) < IDLE_SWEEPS
    }

    fn answer(&self, query: Query, budget: u64) -> Selection {
        let documents = self.corpus.documents();
        let matches = match self.postings.get() {
            Some(Some(postings)) => postings.matches(documents, query.terms()),
            _ => documents.par_iter().map(|document| document.matches(query.terms())).collect(),
        };
        select(self.corpus.clone(), &matches, query, budget)
    }

    fn is_current(&self) -> bool {
        self.corpus.is_current(self.corpus.documents())
    }
}

/// The memory limit of one cache: twice the size of the document files.
fn memory_limit(corpus: &Corpus) -> u64 {
    corpus.bytes().saturating_mul(2)
}

/// One load that concurrent callers share.
type SharedLoad = OnceLock<Result<LoadedCache, Error>>;

#[derive(Debug)]
struct LoadedCaches {
    capacity: u64,
    indexed_at_once: u64,
    /// Least recently used first.
    by_use: Mutex<Vec<(PathBuf, Arc<SharedLoad>)>>,
}

impl LoadedCaches {
    fn lock(&self) -> MutexGuard<'_, Vec<(PathBuf, Arc<SharedLoad>)>> {
        // A poisoned lock is safe to use: no code panics while it holds the lock.
        self.by_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the cache the most recently used, adding a new load if it is not in the pool.
    fn touch(&self, cache: &Path) -> Arc<SharedLoad> {
        let mut caches = self.lock();
        let (path, load) = match caches.iter().position(|(path, _)| path == cache) {
            Some(index) => caches.remove(index),
            None => (cache.to_owned(), Arc::default()),
        };
        caches.push((path, load.clone()));
        load
    }

    /// Removes this load of a cache, but not a newer one.
    fn discard(&self, cache: &Path, load: &Arc<SharedLoad>) {
        self.lock().retain(|(path, other)| path != cache || !Arc::ptr_eq(other, load));
    }

    /// Evicts the least recently used caches until the rest fits the capacity.
    fn evict(&self) {
        let mut caches = self.lock();
        let used: u64 = caches.iter().filter_map(|(_, load)| loaded_size(load)).sum();
        let mut excess = used.saturating_sub(self.capacity);
        caches.retain(|(_, load)| match loaded_size(load) {
            Some(size) if excess > 0 => {
                excess = excess.saturating_sub(size);
                false
            }
            _ => true,
        });
    }

    /// Indexes a cache once: a small one immediately, a large one in the background. Background indexing stops if the
    /// cache is discarded.
    fn index(&self, load: &Arc<SharedLoad>, loaded: &LoadedCache) {
        if loaded.indexing.swap(true, Ordering::Relaxed) {
            return;
        }
        let corpus = loaded.corpus.clone();
        let limit = memory_limit(&corpus).min(self.capacity).saturating_sub(corpus.resident());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if corpus.bytes() <= self.indexed_at_once {
            loaded.postings.get_or_init(|| Postings::new(corpus.documents(), limit, || true));
            return;
        }
        let load = Arc::downgrade(load);
        rayon::spawn(move || {
            let postings = Postings::new(corpus.documents(), limit, || load.strong_count() > 0);
            if let Some(load) = load.upgrade()
                && let Some(Ok(loaded)) = load.get()
            {
                loaded.postings.get_or_init(|| postings);
            }
        });
    }

    /// Checks every cache in use and discards the changed ones.
    fn sweep(&self) {
        let caches = self.lock().clone();
        for (cache, load) in caches {
            if let Some(Ok(loaded)) = load.get()
                && loaded.idle.fetch_add(1, Ordering::Relaxed) < IDLE_SWEEPS
                && !loaded.is_current()
            {
                self.discard(&cache, &load);
            }
        }
    }
}

fn loaded_size(load: &SharedLoad) -> Option<u64> {
    load.get()?.as_ref().ok().map(|loaded| memory_limit(&loaded.corpus))
}

/// The thread that sweeps. It ends when the sweeper is dropped.
#[derive(Debug)]
struct Sweeper {
    stop: Option<SyncSender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// `None` if no thread can be started; then every caller checks all stamps itself.
    fn start(caches: &Arc<LoadedCaches>) -> Option<Self> {
        let (stop, stopped) = sync_channel(0);
        let caches = caches.clone();
        let sweep = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SWEEP_INTERVAL) {
                caches.sweep();
            }
        };
        let thread = thread::Builder::new().name("context-sweep".into()).spawn(sweep).ok()?;
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // Joining fails only after a panic, which is already reported.
            let _: thread::Result<()> = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;
    use tenon_contract::clock::Clock;

    use super::*;
    use crate::build::{Existing, build};

    fn cache_of(documents: impl IntoIterator<Item = (String, String)>) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("sources");
        fs::create_dir(&sources).unwrap();
        for (name, content) in documents {
            fs::write(sources.join(name), content).unwrap();
        }
        let cache = folder.path().join("cache");
        build(&sources, &cache, Existing::Keep, &Clock::system()).unwrap();
        (folder, cache)
    }

    fn resolve_one(pool: &CachePool, cache: &Path) -> String {
        pool.resolve(cache, Query::new("one").unwrap(), 1).unwrap().to_json()
    }

    fn load_of(pool: &CachePool, cache: &Path) -> Option<Arc<SharedLoad>> {
        let caches = pool.caches.lock();
        caches.iter().find(|(path, _)| path == cache).map(|(_, load)| load.clone())
    }

    fn cache_of_two_documents() -> (TempDir, PathBuf) {
        cache_of([("a.md".to_owned(), "one".to_owned()), ("b.md".to_owned(), "other".to_owned())])
    }

    #[test]
    fn second_call_answers_from_memory() {
        let (_folder, cache) = cache_of_two_documents();
        let pool = CachePool::default();
        let first = resolve_one(&pool, &cache);
        let load = load_of(&pool, &cache).unwrap();
        assert_eq!(resolve_one(&pool, &cache), first);
        assert!(Arc::ptr_eq(&load, &load_of(&pool, &cache).unwrap()));
    }

    #[test]
    fn sweep_detects_an_edit_of_an_undelivered_document() {
        let (_folder, cache) = cache_of_two_documents();
        let pool = CachePool::default();
        resolve_one(&pool, &cache);
        pool.caches.sweep();
        assert!(load_of(&pool, &cache).is_some());
        let documents = fs::read_dir(cache.join("documents")).unwrap();
        for path in documents.map(|entry| entry.unwrap().path()) {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("other", "OTHER")).unwrap();
        }
        pool.caches.sweep();
        assert!(load_of(&pool, &cache).is_none());
    }

    #[test]
    fn idle_cache_is_checked_by_the_next_call() {
        let (_folder, cache) = cache_of_two_documents();
        let pool = CachePool::default();
        resolve_one(&pool, &cache);
        let load = load_of(&pool, &cache).unwrap();
        let Some(Ok(loaded)) = load.get() else { panic!("not loaded") };
        loaded.idle.store(IDLE_SWEEPS, Ordering::Relaxed);
        let documents = fs::read_dir(cache.join("documents")).unwrap();
        let other = documents
            .map(|entry| entry.unwrap().path())
            .find(|path| fs::read_to_string(path).unwrap().contains("other"))
            .unwrap();
        fs::write(&other, "{}").unwrap();
        pool.caches.sweep();
        assert!(load_of(&pool, &cache).is_some(), "an idle cache is not swept");
        pool.resolve(&cache, Query::new("one").unwrap(), 1).unwrap_err();
    }

    #[test]
    fn least_recently_used_cache_is_evicted_first() {
        let caches: Vec<(TempDir, PathBuf)> = (0..3).map(|_| cache_of_two_documents()).collect();
        let paths: Vec<&Path> = caches.iter().map(|(_, cache)| cache.as_path()).collect();
        let one = memory_limit(&Corpus::open(paths[0]).unwrap());
        let pool = CachePool::new(one * 2);
        for path in [paths[0], paths[1], paths[0], paths[2]] {
            resolve_one(&pool, path);
        }
        let present: Vec<bool> = paths.iter().map(|path| load_of(&pool, path).is_some()).collect();
        assert_eq!(present, [true, false, true]);
    }

    #[test]
    fn large_cache_answers_the_same_before_and_after_indexing() {
        let (_folder, cache) = cache_of_two_documents();
        let caches = LoadedCaches { capacity: u64::MAX, indexed_at_once: 0, by_use: Mutex::default() };
        let pool = CachePool::with(caches);
        let first = resolve_one(&pool, &cache);
        let load = load_of(&pool, &cache).unwrap();
        let Some(Ok(loaded)) = load.get() else { panic!("not loaded") };
        let postings = loaded.postings.wait();
        assert!(postings.is_some());
        assert_eq!(resolve_one(&pool, &cache), first);
    }

    #[test]
    fn memory_use_is_at_most_twice_the_documents() {
        let common = (0..200).map(|n| (format!("{n}.md"), "the quick brown fox ".repeat(100)));
        let unique = (0..200_u64).map(|n| {
            let words =
                (0..250).map(|m| format!("{:08x}", (n * 250 + m).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32));
            (format!("{n}.md"), words.collect::<Vec<_>>().join(" "))
        });
        let pairs = (0..200_u64).map(|n| {
            let letter = |n: u64| char::from(b'a' + u8::try_from(n % 26).unwrap());
            let words = (0..676).map(|m| format!("{}{}", letter(n + m), letter(m / 26)));
            (format!("{n}.md"), words.collect::<Vec<_>>().join(" "))
        });
        let tiny = (0..200).map(|n| (format!("{n}.md"), "x".to_owned()));
        let corpora = [
            ("common words", common.collect::<Vec<_>>(), true),
            ("unique words", unique.collect(), true),
            ("short words", pairs.collect(), false),
            ("tiny documents", tiny.collect(), true),
        ];
        for (name, documents, indexed) in corpora {
            let (_folder, cache) = cache_of(documents);
            let pool = CachePool::default();
            resolve_one(&pool, &cache);
            let load = load_of(&pool, &cache).unwrap();
            let Some(Ok(loaded)) = load.get() else { panic!("not loaded") };
            let postings = loaded.postings.get().unwrap();
            let index = postings.as_ref().map_or(0, Postings::bytes) as u64;
            assert!(loaded.corpus.resident() + index <= memory_limit(&loaded.corpus), "{name}");
            assert_eq!(postings.is_some(), indexed, "{name}");
        }
    }
}
