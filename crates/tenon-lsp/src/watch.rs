//! Watches the roots for changes on disk: advances epochs, collects changes for the servers, and can flush pending events.
//!
//! The kernel's events may be late or lost, so correctness does not depend on them alone:
//! - [`Watch::flush`] renames a file (the cookie) in a private folder on the same watch and waits for that event. Events keep
//!   their order, so all earlier changes are known then, at a cost that does not grow with the workspace, nor with the number
//!   of events: those of one path are handled together.
//! - After a loss (a queue overflowed, a folder could not be watched, the ignore rules changed) the tree is read again and
//!   compared with the last state.
//!
//! Changes of ignored files, hidden folders (such as `.git`) and caches are not reported, and ignored folders are not watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::epoch::Epochs;
use tenon_contract::root::RootGate;
use tokio::sync::{Notify, oneshot};

use crate::call_context::CallContext;
pub use crate::client::FileChangeKind;
use cookie_folder::CookieFolder;

mod cookie_folder;
mod event_queue;
mod file_table;
mod worker;

use event_queue::EventQueue;

/// The prefix of temporary files that an edit writes before it renames them. Changes of these files are not reported.
pub const UNFINISHED_EDIT: &str = ".tenon-edit-";

struct Shared {
    roots: Vec<Utf8PathBuf>,
    ignore: Vec<String>,
    epochs: Arc<Epochs>,
    files: Mutex<file_table::FileTable>,
    changes: Mutex<BTreeMap<Utf8PathBuf, FileChangeKind>>,
    changed: Notify,
    cookies: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    /// Events that the thread has not handled yet.
    events: EventQueue,
    /// Whether the tree has been read for the first time.
    read: AtomicBool,
    /// Not all folders could be watched: only reading the tree finds changes.
    blind: AtomicBool,
    /// Which folders the roots are.
    identities: Mutex<Vec<Option<FolderId>>>,
    /// An event reported that a root was removed or moved.
    root_lost: AtomicBool,
    /// How often another folder has taken a root's place.
    generation: AtomicU64,
}

/// Watches the roots of a workspace until it is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    /// Holds the cookie; private to us. `None` if there is none: then every flush reads the tree.
    folder: Option<CookieFolder>,
    /// The current name of the cookie, a number. Locked while it is renamed.
    cookie: Mutex<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch. `ignore` are patterns of the configuration, in the format of `.gitignore`. The tree is read in the
    /// background; [`Watch::flush`] waits for it.
    pub fn start(gate: &RootGate, ignore: Vec<String>, epochs: Arc<Epochs>) -> std::io::Result<Self> {
        Self::start_with(CookieFolder::create(), gate, ignore, epochs)
    }

    fn start_with(
        folder: std::io::Result<CookieFolder>,
        gate: &RootGate,
        ignore: Vec<String>,
        epochs: Arc<Epochs>,
    ) -> std::io::Result<Self> {
        let with_path = folder.and_then(|folder| Ok((folder.path().canonicalize()?, folder)));
        let (cookies, folder) = match with_path {
            Ok((cookies, folder)) => (Some(cookies), Some(folder)),
            Err(error) => {
                tracing::warn!(%error, "no private folder for the watcher; every flush reads the tree");
                (None, None)
            }
        };
        if let Some(parent) = cookies.as_deref().and_then(Path::parent).map(Path::to_owned) {
            std::thread::Builder::new()
                .name("leftovers".to_owned())
                .spawn(move || CookieFolder::remove_leftovers(&parent))?;
        }
        let shared = Arc::new(Shared {
            roots: gate.roots().to_vec(),
            ignore,
            epochs,
            files: Mutex::default(),
            changes: Mutex::default(),
            changed: Notify::new(),
            cookies: Mutex::default(),
            events: EventQueue::new(),
            read: AtomicBool::new(false),
            blind: AtomicBool::new(folder.is_none()),
            identities: Mutex::new(gate.roots().iter().map(|root| FolderId::of(root)).collect()),
            root_lost: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        });
        let worker_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || worker::run(&worker_shared, cookies.as_deref()))?;
        Ok(Self { shared, folder, cookie: Mutex::new(0), thread: Some(thread) })
    }

    /// Waits until all earlier changes on disk are known. `false` if the call ended first.
    pub async fn flush(&self, call: &CallContext) -> bool {
        if call.check().is_err() {
            return false;
        }
        let (done, flushed) = oneshot::channel();
        let needs_scan = || self.shared.blind.load(Ordering::Relaxed) || self.shared.is_root_lost();
        if needs_scan() || self.drop_cookie(done).is_err() {
            return self.rescan(call).await;
        }
        if !matches!(call.bound(flushed).await, Ok(Ok(()))) {
            return false;
        }
        // The events may have told that a root is gone, or that not all folders can be watched.
        if needs_scan() { self.rescan(call).await } else { true }
    }

    async fn rescan(&self, call: &CallContext) -> bool {
        let (done, rescanned) = oneshot::channel();
        self.shared.events.ask(done);
        matches!(call.bound(rescanned).await, Ok(Ok(())))
    }

    /// How often another folder has taken the place of a root: servers and everything known about the old one are useless then.
    pub(crate) fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::SeqCst)
    }

    fn drop_cookie(&self, done: oneshot::Sender<()>) -> std::io::Result<()> {
        let Some(folder) = &self.folder else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        let mut cookie = lock(&self.cookie);
        let (old, new) = (*cookie, *cookie + 1);
        *cookie = new;
        lock(&self.shared.cookies).insert(new, done);
        let path = |number: u64| folder.path().join(number.to_string());
        // The cookie does not exist the first time, or after a cleanup.
        let dropped =
            std::fs::rename(path(old), path(new)).or_else(|_| std::fs::File::create(path(new)).map(drop));
        if dropped.is_err() {
            lock(&self.shared.cookies).remove(&new);
        }
        dropped
    }

    /// The changes since the last call, by path.
    pub fn take_changes(&self) -> BTreeMap<Utf8PathBuf, FileChangeKind> {
        std::mem::take(&mut *lock(&self.shared.changes))
    }

    /// Waits for a change that was not taken yet.
    pub async fn changed(&self) {
        loop {
            let notified = self.shared.changed.notified();
            if !lock(&self.shared.changes).is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// All files below the roots that are not ignored, in byte order.
    pub fn files(&self) -> Vec<Utf8PathBuf> {
        lock(&self.shared.files).paths()
    }

    /// Whether the tree has been read once.
    pub(crate) fn has_read(&self) -> bool {
        self.shared.read.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.events.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Which folder a path names. A new folder may get the number of a removed one, so the time of creation counts, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderId {
    number: (u64, u64),
    born: Option<SystemTime>,
}

impl FolderId {
    fn of(folder: &Utf8Path) -> Option<Self> {
        let metadata = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self { number: file_table::folder_number(&metadata), born: metadata.created().ok() })
    }
}

impl Shared {
    /// Whether a root was removed or moved, even if it is back.
    fn is_root_lost(&self) -> bool {
        self.root_lost.load(Ordering::SeqCst) || self.root_ids() != *lock(&self.identities)
    }

    fn root_ids(&self) -> Vec<Option<FolderId>> {
        self.roots.iter().map(|root| FolderId::of(root)).collect()
    }

    /// Accepts the folders that are the roots now.
    fn accept_roots(&self) {
        let lost = self.root_lost.swap(false, Ordering::SeqCst);
        let now = self.root_ids();
        let mut before = lock(&self.identities);
        // Without a time of creation, a new folder may look like the old one.
        let unsure = lost && now.iter().flatten().any(|id| id.born.is_none());
        if *before != now || unsure {
            *before = now;
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The event of the cookie with this name has arrived.
    fn cookie_arrived(&self, name: &std::path::Path) {
        if let Some(number) = name.to_str().and_then(|name| name.parse().ok())
            && !self.events.cookie(number)
        {
            self.settle(number);
        }
    }

    /// Completes the flush with this cookie.
    fn settle(&self, cookie: u64) {
        if let Some(done) = lock(&self.cookies).remove(&cookie) {
            let _ = done.send(());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tenon_contract::clock::Clock;

    use super::*;

    #[tokio::test]
    async fn files_and_changes_are_known_without_a_private_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.py"), "").unwrap();
        let gate = RootGate::new([root.path()]).unwrap();
        let folder = Err(std::io::Error::other("removed by another process"));
        let epochs = Arc::new(Epochs::starting_now(&Clock::system()));
        let watch = Watch::start_with(folder, &gate, Vec::new(), epochs).unwrap();
        let call = CallContext::within(std::time::Duration::from_secs(60));
        assert!(watch.flush(&call).await);
        assert_eq!(watch.files(), [gate.roots()[0].join("a.py")]);
        std::fs::write(root.path().join("b.py"), "").unwrap();
        assert!(watch.flush(&call).await);
        assert_eq!(watch.files().len(), 2);
    }
}
