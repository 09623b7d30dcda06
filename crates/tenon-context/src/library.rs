//! Caches that stay in memory, checked once and answered from many times.
//!
//! Before each answer the stamps of the folder, of its lists and of every document delivered are compared with those
//! taken when they were read. A change of another document in place is noticed by a sweep over all stamps, every
//! second for caches in use; a cache that nobody has asked for in a while is swept by its next caller instead. What
//! has changed is loaded again, as a whole, with all checks: an answer is the same as [`resolve`]'s, or an error is.
//!
//! Callers who want the same cache at the same time share one load. The index of a large cache is made after its first
//! answers, not before: until it is there, answers read all documents. Caches are held up to a number of bytes, the least
//! recently used leaving first; one that is too large by itself is answered from and let go.

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

/// How often caches in use are looked over. A change is to be noticed within two seconds.
const SWEEP: Duration = Duration::from_secs(1);

/// After this many sweeps without a caller a cache is left alone.
const IDLE_SWEEPS: u32 = 60;

/// Caches of up to this many bytes are indexed before their first answer.
const INDEXED_AT_ONCE: u64 = 4 << 20;

/// How often a cache may change under one call before that call reads it for itself.
const RELOADS: usize = 4;

/// The caches of a daemon.
#[derive(Debug)]
pub struct Library {
    shelf: Arc<Shelf>,
    sweeper: OnceLock<Option<Sweeper>>,
}

impl Default for Library {
    /// Holds up to 1 GiB.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

impl Library {
    /// Holds up to `capacity` bytes of documents and their index.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self::with(Shelf { capacity, indexed_at_once: INDEXED_AT_ONCE, caches: Mutex::default() })
    }

    fn with(shelf: Shelf) -> Self {
        Self { shelf: Arc::new(shelf), sweeper: OnceLock::new() }
    }

    /// Answers a query from memory, loading the cache first if it is not there or has changed.
    pub fn resolve(&self, cache: &Path, query: Query, budget: u64) -> Result<Selection, Error> {
        let swept = self.sweeper.get_or_init(|| Sweeper::start(&self.shelf)).is_some();
        let mut query = query;
        for _ in 0..RELOADS {
            let flight = self.shelf.take(cache);
            let landed = flight.get().is_some();
            let held = match flight.get_or_init(|| Held::load(cache)) {
                Ok(held) => held,
                Err(error) => {
                    self.shelf.discard(cache, &flight);
                    if landed {
                        // An old failure, met in the moment before it was taken off the shelf.
                        continue;
                    }
                    return Err(error.clone());
                }
            };
            self.shelf.index(&flight, held);
            let watched = held.wake() && swept;
            let selection = held.answer(query, budget);
            if selection.is_current() && (watched || held.is_current()) {
                self.shelf.trim();
                return Ok(selection);
            }
            self.shelf.discard(cache, &flight);
            query = selection.into_query();
        }
        resolve(cache, query, budget)
    }
}

/// A cache in memory.
#[derive(Debug)]
struct Held {
    corpus: Arc<Corpus>,
    /// Not there yet, or known to take more room than there is; then everything is read for every answer.
    postings: OnceLock<Option<Postings>>,
    /// Whether somebody has set about making the index.
    claimed: AtomicBool,
    /// Sweeps since somebody asked.
    idle: AtomicU32,
}

impl Held {
    fn load(cache: &Path) -> Result<Self, Error> {
        let corpus = Arc::new(Corpus::open(cache)?);
        Ok(Self {
            corpus,
            postings: OnceLock::new(),
            claimed: AtomicBool::new(false),
            idle: AtomicU32::new(0),
        })
    }

    /// Notes that somebody asks. Says whether the last sweep was not long ago.
    fn wake(&self) -> bool {
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

/// What holding a cache may cost: twice its document files.
fn weight(corpus: &Corpus) -> u64 {
    corpus.bytes().saturating_mul(2)
}

/// One load, which everybody waits for who comes while it is under way.
type Flight = OnceLock<Result<Held, Error>>;

#[derive(Debug)]
struct Shelf {
    capacity: u64,
    indexed_at_once: u64,
    /// Least recently used first.
    caches: Mutex<Vec<(PathBuf, Arc<Flight>)>>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Vec<(PathBuf, Arc<Flight>)>> {
        // Nothing panics while it holds the lock, and a list is whole between any two of its changes.
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache as the most recently used, to be loaded if it was not there.
    fn take(&self, cache: &Path) -> Arc<Flight> {
        let mut caches = self.lock();
        let (path, flight) = match caches.iter().position(|(path, _)| path == cache) {
            Some(place) => caches.remove(place),
            None => (cache.to_owned(), Arc::default()),
        };
        caches.push((path, flight.clone()));
        flight
    }

    /// Takes a cache off the shelf, unless another load has taken its place.
    fn discard(&self, cache: &Path, flight: &Arc<Flight>) {
        self.lock().retain(|(path, held)| path != cache || !Arc::ptr_eq(held, flight));
    }

    /// Lets the least recently used caches go until the rest fits.
    fn trim(&self) {
        let mut caches = self.lock();
        let held: u64 = caches.iter().filter_map(|(_, flight)| landed_weight(flight)).sum();
        let mut excess = held.saturating_sub(self.capacity);
        caches.retain(|(_, flight)| match landed_weight(flight) {
            Some(weight) if excess > 0 => {
                excess = excess.saturating_sub(weight);
                false
            }
            _ => true,
        });
    }

    /// Has the index of a cache made, once: here and now if it is small, else behind the back of the caller. A cache that
    /// has left the shelf meanwhile needs none.
    fn index(&self, flight: &Arc<Flight>, held: &Held) {
        if held.claimed.swap(true, Ordering::Relaxed) {
            return;
        }
        let corpus = held.corpus.clone();
        let limit = weight(&corpus).min(self.capacity).saturating_sub(corpus.resident());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if corpus.bytes() <= self.indexed_at_once {
            held.postings.get_or_init(|| Postings::new(corpus.documents(), limit, || true));
            return;
        }
        let flight = Arc::downgrade(flight);
        rayon::spawn(move || {
            let postings = Postings::new(corpus.documents(), limit, || flight.strong_count() > 0);
            if let Some(flight) = flight.upgrade()
                && let Some(Ok(held)) = flight.get()
            {
                held.postings.get_or_init(|| postings);
            }
        });
    }

    /// Looks over every cache in use and discards those that have changed.
    fn sweep(&self) {
        let caches = self.lock().clone();
        for (cache, flight) in caches {
            if let Some(Ok(held)) = flight.get()
                && held.idle.fetch_add(1, Ordering::Relaxed) < IDLE_SWEEPS
                && !held.is_current()
            {
                self.discard(&cache, &flight);
            }
        }
    }
}

fn landed_weight(flight: &Flight) -> Option<u64> {
    flight.get()?.as_ref().ok().map(|held| weight(&held.corpus))
}

/// The thread that sweeps; it ends with its owner.
#[derive(Debug)]
struct Sweeper {
    stop: Option<SyncSender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// `None` if the system has no thread to spare; then every caller sweeps for himself.
    fn start(shelf: &Arc<Shelf>) -> Option<Self> {
        let (stop, stopped) = sync_channel(0);
        let shelf = shelf.clone();
        let sweep = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SWEEP) {
                shelf.sweep();
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
            // It can only have panicked, and that has been reported.
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

    fn ask(library: &Library, cache: &Path) -> String {
        library.resolve(cache, Query::new("one").unwrap(), 1).unwrap().to_json()
    }

    fn held_by(library: &Library, cache: &Path) -> Option<Arc<Flight>> {
        let caches = library.shelf.lock();
        caches.iter().find(|(path, _)| path == cache).map(|(_, flight)| flight.clone())
    }

    fn two() -> (TempDir, PathBuf) {
        cache_of([("a.md".to_owned(), "one".to_owned()), ("b.md".to_owned(), "other".to_owned())])
    }

    #[test]
    fn a_second_call_answers_from_memory() {
        let (_folder, cache) = two();
        let library = Library::default();
        let first = ask(&library, &cache);
        let flight = held_by(&library, &cache).unwrap();
        assert_eq!(ask(&library, &cache), first);
        assert!(Arc::ptr_eq(&flight, &held_by(&library, &cache).unwrap()));
    }

    #[test]
    fn a_sweep_notices_an_edit_of_a_document_that_was_not_delivered() {
        let (_folder, cache) = two();
        let library = Library::default();
        ask(&library, &cache);
        library.shelf.sweep();
        assert!(held_by(&library, &cache).is_some());
        let documents = fs::read_dir(cache.join("documents")).unwrap();
        for path in documents.map(|entry| entry.unwrap().path()) {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("other", "OTHER")).unwrap();
        }
        library.shelf.sweep();
        assert!(held_by(&library, &cache).is_none());
    }

    #[test]
    fn a_cache_left_alone_is_looked_over_by_its_next_caller() {
        let (_folder, cache) = two();
        let library = Library::default();
        ask(&library, &cache);
        let flight = held_by(&library, &cache).unwrap();
        let Some(Ok(loaded)) = flight.get() else { panic!("not loaded") };
        loaded.idle.store(IDLE_SWEEPS, Ordering::Relaxed);
        let documents = fs::read_dir(cache.join("documents")).unwrap();
        let other = documents
            .map(|entry| entry.unwrap().path())
            .find(|path| fs::read_to_string(path).unwrap().contains("other"))
            .unwrap();
        fs::write(&other, "{}").unwrap();
        library.shelf.sweep();
        assert!(held_by(&library, &cache).is_some(), "a cache left alone is not swept");
        library.resolve(&cache, Query::new("one").unwrap(), 1).unwrap_err();
    }

    #[test]
    fn the_least_recently_used_leave_first() {
        let caches: Vec<(TempDir, PathBuf)> = (0..3).map(|_| two()).collect();
        let paths: Vec<&Path> = caches.iter().map(|(_, cache)| cache.as_path()).collect();
        let one = weight(&Corpus::open(paths[0]).unwrap());
        let library = Library::new(one * 2);
        for path in [paths[0], paths[1], paths[0], paths[2]] {
            ask(&library, path);
        }
        let left: Vec<bool> = paths.iter().map(|path| held_by(&library, path).is_some()).collect();
        assert_eq!(left, [true, false, true]);
    }

    #[test]
    fn a_large_cache_answers_before_it_is_indexed() {
        let (_folder, cache) = two();
        let shelf = Shelf { capacity: u64::MAX, indexed_at_once: 0, caches: Mutex::default() };
        let library = Library::with(shelf);
        let first = ask(&library, &cache);
        let flight = held_by(&library, &cache).unwrap();
        let Some(Ok(loaded)) = flight.get() else { panic!("not loaded") };
        let postings = loaded.postings.wait();
        assert!(postings.is_some());
        assert_eq!(ask(&library, &cache), first);
    }

    #[test]
    fn memory_is_at_most_twice_the_documents() {
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
            let library = Library::default();
            ask(&library, &cache);
            let flight = held_by(&library, &cache).unwrap();
            let Some(Ok(held)) = flight.get() else { panic!("not loaded") };
            let postings = held.postings.get().unwrap();
            let index = postings.as_ref().map_or(0, Postings::bytes) as u64;
            assert!(held.corpus.resident() + index <= weight(&held.corpus), "{name}");
            assert_eq!(postings.is_some(), indexed, "{name}");
        }
    }
}
