//! Events that the thread has not handled yet: one entry per path, however many events there are.
//!
//! The state on disk decides what an event means, so several events of one path need one look. A program that renames two
//! files in a loop fills two entries, and a flush waits for these two, not for quiet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use notify::EventKind;
use notify::event::ModifyKind;
use tokio::sync::oneshot;

/// The most paths. A checkout of ten thousand files fits; if there are more, the tree is read instead.
const MAX_PATHS: usize = 32 * 1024;

/// What the events of one path said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Touch {
    /// It was created or renamed: it may be another file of the same name.
    pub(super) replaced: bool,
    /// It was removed or renamed.
    pub(super) left: bool,
    /// Its content was written.
    pub(super) written: bool,
}

impl Touch {
    pub(super) fn of(kind: EventKind) -> Self {
        let renamed = matches!(kind, EventKind::Modify(ModifyKind::Name(_)));
        Self {
            replaced: renamed || matches!(kind, EventKind::Create(_)),
            left: renamed || matches!(kind, EventKind::Remove(_)),
            written: matches!(kind, EventKind::Modify(ModifyKind::Data(_))),
        }
    }

    fn add(&mut self, other: Self) {
        self.replaced |= other.replaced;
        self.left |= other.left;
        self.written |= other.written;
    }
}

/// Everything that happened since the last batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In the order of their first events.
    pub(super) touched: Vec<(PathBuf, Touch)>,
    /// The cookies whose events came, see [`super::Watch::flush`].
    pub(super) cookies: Vec<u64>,
    /// Events were lost: the tree must be read.
    pub(super) rescan: bool,
    /// Callers that want the tree to be read.
    pub(super) asked: Vec<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct State {
    touched: BTreeMap<PathBuf, (usize, Touch)>,
    cookies: Vec<u64>,
    rescan: bool,
    asked: Vec<oneshot::Sender<()>>,
    /// A batch is being handled; at first, the tree is read.
    busy: bool,
    stopped: bool,
}

#[derive(Debug)]
pub(super) struct EventQueue {
    state: Mutex<State>,
    arrived: Condvar,
}

impl EventQueue {
    /// A queue whose thread is busy, so that no cookie overtakes the first read of the tree.
    pub(super) fn new() -> Self {
        let state = State {
            touched: BTreeMap::new(),
            cookies: Vec::new(),
            rescan: false,
            asked: Vec::new(),
            busy: true,
            stopped: false,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    pub(super) fn touch(&self, path: &Path, touch: Touch) {
        let mut state = self.state();
        if let Some((_, known)) = state.touched.get_mut(path) {
            known.add(touch);
            return;
        }
        if state.touched.len() == MAX_PATHS {
            state.touched.clear();
            state.rescan = true;
        }
        let order = state.touched.len();
        state.touched.insert(path.to_owned(), (order, touch));
        self.arrived.notify_one();
    }

    /// Queues a cookie. `false` if nothing is before it: it is not queued then, and done.
    pub(super) fn cookie(&self, number: u64) -> bool {
        let mut state = self.state();
        let is_idle = !state.busy && state.touched.is_empty() && !state.rescan && state.asked.is_empty();
        if !is_idle {
            state.cookies.push(number);
            self.arrived.notify_one();
        }
        !is_idle
    }

    pub(super) fn rescan(&self) {
        self.state().rescan = true;
        self.arrived.notify_one();
    }

    /// Asks for the tree to be read.
    pub(super) fn ask(&self, done: oneshot::Sender<()>) {
        self.state().asked.push(done);
        self.arrived.notify_one();
    }

    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.arrived.notify_one();
    }

    /// Waits for the next batch, after the one before was handled; `None` when the watch ends.
    pub(super) fn next(&self) -> Option<Batch> {
        let mut state = self.state();
        state.busy = false;
        let is_empty = |state: &mut State| {
            !state.stopped
                && state.touched.is_empty()
                && state.cookies.is_empty()
                && !state.rescan
                && state.asked.is_empty()
        };
        let mut state = self.arrived.wait_while(state, is_empty).unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        state.busy = true;
        let mut touched: Vec<_> = std::mem::take(&mut state.touched).into_iter().collect();
        touched.sort_unstable_by_key(|(_, (order, _))| *order);
        Some(Batch {
            touched: touched.into_iter().map(|(path, (_, touch))| (path, touch)).collect(),
            cookies: std::mem::take(&mut state.cookies),
            rescan: std::mem::take(&mut state.rescan),
            asked: std::mem::take(&mut state.asked),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, RemoveKind, RenameMode};

    use super::*;

    const RENAMED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));

    #[test]
    fn rename_loop_takes_two_entries_and_a_cookie_waits_for_them_alone() {
        let queue = EventQueue::new();
        for _ in 0..100_000 {
            queue.touch(Path::new("/b"), Touch::of(RENAMED));
            queue.touch(Path::new("/a"), Touch::of(RENAMED));
        }
        assert!(queue.cookie(7));
        let batch = queue.next().unwrap();
        let touch = Touch { replaced: true, left: true, written: false };
        assert_eq!(batch.touched, [(PathBuf::from("/b"), touch), (PathBuf::from("/a"), touch)]);
        assert_eq!((batch.cookies, batch.rescan), (vec![7], false));
        // What is renamed while a batch is handled belongs to the next one.
        queue.touch(Path::new("/a"), Touch::of(RENAMED));
        assert_eq!(queue.next().unwrap().touched.len(), 1);
    }

    #[test]
    fn events_of_one_path_are_merged() {
        let queue = EventQueue::new();
        for kind in [
            EventKind::Create(CreateKind::File),
            EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            EventKind::Remove(RemoveKind::File),
        ] {
            queue.touch(Path::new("/a"), Touch::of(kind));
        }
        let all = Touch { replaced: true, left: true, written: true };
        assert_eq!(queue.next().unwrap().touched, [(PathBuf::from("/a"), all)]);
    }

    #[test]
    fn overflows_are_one_rescan_and_memory_is_bounded() {
        let queue = EventQueue::new();
        for number in 0..3 * MAX_PATHS {
            queue.touch(Path::new(&format!("/{number}")), Touch::default());
        }
        queue.rescan();
        queue.rescan();
        let batch = queue.next().unwrap();
        assert!(batch.rescan && batch.touched.len() <= MAX_PATHS);
        queue.stop();
        assert!(queue.next().is_none());
    }

    #[test]
    fn cookie_is_done_at_once_if_nothing_is_before_it() {
        let queue = EventQueue::new();
        assert!(queue.cookie(1), "the tree was not read yet");
        assert_eq!(queue.next().unwrap().cookies, [1]);
        assert!(queue.cookie(2), "a batch is being handled");
        assert_eq!(queue.next().unwrap().cookies, [2]);
        std::thread::scope(|scope| {
            scope.spawn(|| while queue.next().is_some() {});
            while queue.cookie(3) {
                std::thread::yield_now();
            }
            queue.stop();
        });
    }
}
