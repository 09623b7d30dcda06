//! What changes on disk below the roots: epochs at once, file by file for the servers, and a way to be sure.
//!
//! The kernel's events may be late or lost, so nothing rests on them alone:
//! - [`Watch::flush`] renames a file in a private folder on the same watch and waits for the event. Events keep their
//!   order, so all that happened before is known then, at a cost that does not grow with the workspace.
//! - After a loss (the kernel's queue or ours ran over, a folder could not be watched, the ignore rules changed) the tree is
//!   read again and compared with what was known.
//!
//! Ignored files, hidden folders (version control's own among them) and caches are no events. A folder that is ignored is not even watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use camino::Utf8PathBuf;
use tenon_contract::epoch::Epochs;
use tenon_contract::root::RootGate;
use tokio::sync::{Notify, oneshot};

use crate::call_context::CallContext;
use crate::client::FileChangeKind;

mod file_table;
mod ignored;
mod worker;

/// The prefix of temporary files that an edit writes before it renames them. Changes of these files are not reported.
pub const UNFINISHED_EDIT: &str = ".tenon-edit-";

/// Messages between the kernel's reader and our thread. A checkout of ten thousand files fits; past it we read the tree.
const QUEUE: usize = 32 * 1024;

/// What the thread is told.
enum WorkerMessage {
    Event(notify::Event),
    /// Something was lost.
    Rescan,
    /// Someone wants the tree to be read.
    Asked(oneshot::Sender<()>),
    Stop,
}

struct Shared {
    roots: Vec<Utf8PathBuf>,
    ignore: Vec<String>,
    epochs: Arc<Epochs>,
    files: Mutex<file_table::FileTable>,
    changes: Mutex<BTreeMap<Utf8PathBuf, FileChangeKind>>,
    changed: Notify,
    cookies: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    /// Events that the thread has not been through yet.
    queued: AtomicUsize,
    /// Whether the tree has been read for the first time.
    read: AtomicBool,
    /// Not all folders could be watched: only reading the tree tells what changed.
    blind: AtomicBool,
}

/// Watches the roots of a workspace until it is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    orders: SyncSender<WorkerMessage>,
    /// Holds the cookie; private to us.
    folder: tempfile::TempDir,
    /// The number that is the cookie's present name. Locked while it is renamed.
    cookie: Mutex<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch; `ignore` are patterns of the configuration, in the form of `.gitignore`. Reading the tree goes on in the background; [`Watch::flush`] waits for it.
    pub fn start(gate: &RootGate, ignore: Vec<String>, epochs: Arc<Epochs>) -> std::io::Result<Self> {
        let folder = cookie_folder()?;
        let cookies = folder.path().canonicalize()?;
        let shared = Arc::new(Shared {
            roots: gate.roots().to_vec(),
            ignore,
            epochs,
            files: Mutex::default(),
            changes: Mutex::default(),
            changed: Notify::new(),
            cookies: Mutex::default(),
            // Reading the tree for the first time counts as one, so that no cookie overtakes it.
            queued: AtomicUsize::new(1),
            read: AtomicBool::new(false),
            blind: AtomicBool::new(false),
        });
        let (orders, inbox) = sync_channel(QUEUE);
        let worker_shared = Arc::clone(&shared);
        let events = orders.clone();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || worker::run(&worker_shared, &cookies, events, &inbox))?;
        Ok(Self { shared, orders, folder, cookie: Mutex::new(0), thread: Some(thread) })
    }

    /// Waits until everything is known that happened on disk before this call. `false` when the call ended first.
    pub async fn flush(&self, call: &CallContext) -> bool {
        let (done, flushed) = oneshot::channel();
        if self.shared.blind.load(Ordering::Relaxed) || self.drop_cookie(done).is_err() {
            let (done, rescanned) = oneshot::channel();
            let _ = self.orders.try_send(WorkerMessage::Asked(done));
            return matches!(call.bound(rescanned).await, Ok(Ok(())));
        }
        matches!(call.bound(flushed).await, Ok(Ok(())))
    }

    fn drop_cookie(&self, done: oneshot::Sender<()>) -> std::io::Result<()> {
        let mut cookie = lock(&self.cookie);
        let (old, new) = (*cookie, *cookie + 1);
        *cookie = new;
        lock(&self.shared.cookies).insert(new, done);
        let path = |number: u64| self.folder.path().join(number.to_string());
        // The first time, or after someone has tidied up, there is nothing to rename.
        let dropped =
            std::fs::rename(path(old), path(new)).or_else(|_| std::fs::File::create(path(new)).map(drop));
        if dropped.is_err() {
            lock(&self.shared.cookies).remove(&new);
        }
        dropped
    }

    /// What changed since the last time this was asked, by path.
    pub fn take_changes(&self) -> BTreeMap<Utf8PathBuf, FileChangeKind> {
        std::mem::take(&mut *lock(&self.shared.changes))
    }

    /// Waits for a change that nobody has taken yet.
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

    /// Whether the tree has been read once, and is watched since.
    pub fn has_read(&self) -> bool {
        self.shared.read.load(Ordering::Relaxed)
    }

    /// Whether the kernel could not watch everything, so that every flush reads the tree.
    pub fn is_blind(&self) -> bool {
        self.shared.blind.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.orders.send(WorkerMessage::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Answers the cookie that an event is about. `false` for every other event.
    fn settle(&self, folder: &Path, event: &notify::Event) -> bool {
        let [path] = event.paths.as_slice() else {
            return false;
        };
        let Ok(name) = path.strip_prefix(folder) else {
            return false;
        };
        if let Some(number) = name.to_str().and_then(|name| name.parse().ok())
            && let Some(done) = lock(&self.cookies).remove(&number)
        {
            let _ = done.send(());
        }
        true
    }
}

/// A private folder, in memory where there is such a place: a rename there never waits for a disk. The order of events does
/// not depend on where their files are.
fn cookie_folder() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tenon-watch-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
