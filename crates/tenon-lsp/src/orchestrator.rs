//! All language servers of one workspace: selects servers for a file, starts and ends them, and merges their answers.
//!
//! Servers are keyed by id and project root and started once, by the first request. A server that exits by itself is broken
//! until it is restarted; the others keep running. Every answer names the servers behind it ([`LspAnswer`]), so that a surface
//! can reject a partial one.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_contract::epoch::{Epoch, Epochs};
use tenon_contract::position::{LineIndex, PositionError};
use tenon_contract::root::{ReadError, RootGate, WorkspacePath};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call_context::CallContext;
use crate::check_epoch::CheckEpoch;
use crate::client::Client;
use crate::model::GapReason;
use crate::process::ProcessGroup;
use crate::watch::Watch;
use tenon_servers::find::{Availability, Finder};
use tenon_servers::registry::{Capability, Registry, ServerEntry, ServerId};

mod arriving_checks;
mod baselines;
mod change_check;
mod change_dependents;
mod change_journal;
mod changes_in_flight;
mod configuration_change;
mod convert;
mod declared_name;
mod dependency_folders;
mod dependents;
mod disk_sync;
mod file_diagnostics;
mod includers;
mod instance;
mod name_search;
mod navigate;
mod pending_changes;
mod project_coverage;
mod references;
mod server_change;
mod server_choice;
mod server_edits;
mod skipped_files;
mod status;
mod touched;
mod tried_change;
mod warm_up;

pub use change_check::{ChangeCheck, ChangedText, Checkers, FileCheck, ServerCheck};
pub use change_journal::JournalChanges;
pub use file_diagnostics::CheckedFiles;
pub use server_edits::{OfferedFix, Proposal};
pub use skipped_files::ENDED_THE_SERVER;
pub use status::{ServerState, ServerStatus};
pub use tried_change::{TriedChange, TryError};
pub use warm_up::{Coverage, WarmUpResult};

use dependency_folders::DependencyFolders;
use instance::{ClientLease, ServerInstance};
use server_choice::ProjectCache;

/// Larger files are not sent to servers; they are usually generated.
pub const MAX_TEXT_BYTES: u64 = 8 * 1024 * 1024;

/// Files up to this size are read in place: moving the work to another thread would take longer.
const SMALL_BYTES: u64 = 256 * 1024;

/// The byte order mark.
const MARK: &str = "\u{feff}";

/// Timeouts.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// One check of a file.
    pub check: Duration,
    /// A server's first check, its start included.
    pub first_check: Duration,
    /// A check that has shown its text, until those that began before have shown theirs (decision 0351).
    pub gather: Duration,
    /// A batch of files in which no file finishes.
    pub stalled: Duration,
    /// A file that is checked alone, after its batch stalled.
    pub alone: Duration,
    /// A server's answer to `initialize`.
    pub start: Duration,
    /// A server's answer to `shutdown`, and its exit after that.
    pub polite: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            check: Duration::from_secs(3),
            first_check: Duration::from_secs(10),
            gather: Duration::from_millis(20),
            stalled: Duration::from_secs(15),
            alone: Duration::from_secs(60),
            start: Duration::from_secs(30),
            polite: Duration::from_secs(2),
            grace: Duration::from_secs(2),
        }
    }
}

/// What an orchestrator needs.
pub struct Options {
    pub gate: RootGate,
    pub registry: Registry,
    pub finder: Finder,
    pub epochs: Arc<Epochs>,
    pub timeouts: Timeouts,
    pub group: ProcessGroup,
    /// Whether to watch the disk. If not, a changed file is noticed when it is queried.
    pub watch: bool,
    /// Ignore patterns of the configuration, in the format of `.gitignore`.
    pub ignore: Vec<String>,
}

impl Options {
    /// The usual settings for a workspace, in a daemon.
    pub fn new(gate: RootGate, registry: Registry, finder: Finder) -> Self {
        Self {
            gate,
            registry,
            finder,
            epochs: Arc::new(Epochs::starting_now(&Clock::system())),
            timeouts: Timeouts::default(),
            group: ProcessGroup::Own,
            watch: true,
            ignore: Vec::new(),
        }
    }
}

/// Why a query cannot be sent to a server.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error(transparent)]
    Position(#[from] PositionError),
}

/// A server with its program, or the reason why it is not available.
struct ServerAvailability {
    entry: Arc<ServerEntry>,
    availability: Availability,
}

/// The servers of one workspace. Clones share them.
#[derive(Clone)]
pub struct Orchestrator(Arc<Inner>);

struct Inner {
    gate: RootGate,
    registry: Registry,
    finder: Finder,
    epochs: Arc<Epochs>,
    epoch: CheckEpoch,
    timeouts: Timeouts,
    group: ProcessGroup,
    servers: Mutex<Arc<Vec<ServerAvailability>>>,
    instances: Mutex<BTreeMap<Key, Arc<ServerInstance>>>,
    project_cache: Mutex<ProjectCache>,
    recent: Mutex<Vec<dependents::RecentEdit>>,
    users: Mutex<dependents::DependentsCache>,
    baselines: Mutex<baselines::Baselines>,
    passed: Mutex<PassedTexts>,
    journal: Mutex<change_journal::ChangeJournal>,
    in_flight: Arc<changes_in_flight::ChangesInFlight>,
    arriving: Arc<arriving_checks::ArrivingChecks>,
    skipped: Mutex<skipped_files::SkippedFiles>,
    projects: Mutex<BTreeMap<Key, project_coverage::KnownProjects>>,
    watch: Option<Watch>,
    /// The disk should be watched and is not, so the files of the workspace are unknown.
    cannot_watch: bool,
    dependency_folders: DependencyFolders,
    /// The watcher's generation that the servers belong to.
    generation: AtomicU64,
    noting: Arc<tokio::sync::Mutex<()>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// The key of one server process.
type Key = (ServerId, Utf8PathBuf);

/// Texts that servers see instead of those on disk, with their order.
type UnsavedTexts = BTreeMap<WorkspacePath, (u64, Arc<str>)>;

/// The texts that callers passed.
#[derive(Default)]
struct PassedTexts {
    unsaved: UnsavedTexts,
    /// The order of the last text of each file.
    last: BTreeMap<WorkspacePath, u64>,
}

/// A server for a file, with its project.
#[derive(Clone)]
struct Candidate {
    entry: Arc<ServerEntry>,
    /// The project root, or why the server is not available.
    place: Result<WorkspacePath, String>,
}

impl Orchestrator {
    /// Looks for servers; starts none.
    pub async fn open(options: Options) -> Self {
        let Options { gate, registry, finder, epochs, timeouts, group, watch, ignore } = options;
        let watch = watch.then(|| Watch::start(&gate, ignore, Arc::clone(&epochs)));
        if let Some(Err(error)) = &watch {
            tracing::warn!(%error, "cannot watch the disk; changes are noticed only in queried files");
        }
        let dependency_folders = DependencyFolders::new(gate.roots());
        let inner = Inner {
            gate,
            registry,
            finder,
            epoch: CheckEpoch::new(&epochs),
            epochs,
            timeouts,
            group,
            servers: Mutex::default(),
            instances: Mutex::default(),
            project_cache: Mutex::default(),
            recent: Mutex::default(),
            users: Mutex::default(),
            baselines: Mutex::default(),
            passed: Mutex::default(),
            journal: Mutex::default(),
            in_flight: Arc::default(),
            arriving: Arc::default(),
            skipped: Mutex::default(),
            projects: Mutex::default(),
            cannot_watch: matches!(watch, Some(Err(_))),
            watch: watch.and_then(Result::ok),
            dependency_folders,
            generation: AtomicU64::new(0),
            noting: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        let orchestrator = Self(Arc::new(inner));
        orchestrator.refresh_servers().await;
        orchestrator.0.tasks.spawn(Arc::clone(&orchestrator.0).sync_with_disk());
        orchestrator
    }

    /// Looks for servers again, after some were installed or removed. Running servers are not affected.
    pub async fn refresh_servers(&self) {
        let inner = Arc::clone(&self.0);
        let servers = spawn_blocking(move || inner.look_for_servers()).await;
        if let Ok(servers) = servers {
            *lock(&self.0.servers) = Arc::new(servers);
            lock(&self.0.journal).everything_changed();
        }
    }

    pub fn gate(&self) -> &RootGate {
        &self.0.gate
    }

    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.0.epochs
    }

    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    /// The epoch of the language-server service: grows when diagnostics change and when a check has collected.
    pub fn epoch(&self) -> u64 {
        self.0.epoch.current()
    }

    /// The text of a file as servers see it.
    pub async fn read(&self, path: &WorkspacePath) -> Result<LineIndex, ReadError> {
        if std::fs::metadata(path).is_ok_and(|found| found.len() <= SMALL_BYTES) {
            return self.0.read(path);
        }
        let (inner, path) = (Arc::clone(&self.0), path.clone());
        spawn_blocking(move || inner.read(&path)).await.unwrap_or(Err(ReadError::Gone))
    }

    /// Ends all servers and everything that runs on their behalf.
    pub async fn shutdown(&self) {
        self.0.closing.cancel();
        let instances = std::mem::take(&mut *lock(&self.0.instances));
        let (polite, grace) = (self.0.timeouts.polite, self.0.timeouts.grace);
        futures::future::join_all(instances.values().map(|instance| instance.shutdown(polite, grace))).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Ends the servers with this id, also broken ones; the next request starts them again.
    pub async fn restart(&self, id: &ServerId) {
        let gone: Vec<Arc<ServerInstance>> = {
            let mut instances = lock(&self.0.instances);
            let keys: Vec<Key> = instances.keys().filter(|key| key.0 == *id).cloned().collect();
            keys.iter().filter_map(|key| instances.remove(key)).collect()
        };
        let (polite, grace) = (self.0.timeouts.polite, self.0.timeouts.grace);
        futures::future::join_all(gone.iter().map(|instance| instance.shutdown(polite, grace))).await;
        lock(&self.0.skipped).clear(Some(id));
        self.refresh_servers().await;
        self.0.epochs.advance(Epoch::Text);
    }

    /// Lets broken servers start again, for example for a new session.
    pub fn reset_failures(&self) {
        let mut instances = lock(&self.0.instances);
        let before = instances.len();
        instances.retain(|_, instance| !instance.is_broken());
        if instances.len() < before {
            lock(&self.0.skipped).clear(None);
            lock(&self.0.journal).everything_changed();
            self.0.epochs.advance(Epoch::Text);
        }
    }

    /// The servers for a file, in registry order.
    async fn candidates(&self, path: &WorkspacePath) -> Vec<Candidate> {
        let inner = Arc::clone(&self.0);
        let path = path.clone();
        if let Some(known) = inner.known_candidates(&path) {
            return known;
        }
        spawn_blocking(move || inner.find_candidates(&path)).await.unwrap_or_default()
    }

    /// Starts the servers for a file while the tree is being read for the first time. Later, the request itself starts them.
    async fn start_early(&self, path: &WorkspacePath, capability: Capability) {
        if self.0.watch.as_ref().is_none_or(Watch::has_read) {
            return;
        }
        for candidate in self.candidates(path).await {
            if candidate.entry.has(capability) {
                // The request itself reports why a server cannot start.
                let _ = self.instance(&candidate);
            }
        }
    }

    /// The instance of a server, started if necessary.
    fn instance(&self, candidate: &Candidate) -> Result<Arc<ServerInstance>, GapReason> {
        let root = match &candidate.place {
            Ok(root) => root,
            Err(reason) => return Err(GapReason::Unavailable(reason.clone())),
        };
        let mut instances = lock(&self.0.instances);
        if self.0.closing.is_cancelled() {
            return Err(GapReason::Broken);
        }
        let key = (candidate.entry.id.clone(), root.as_path().to_owned());
        Ok(Arc::clone(instances.entry(key).or_insert_with(|| {
            let instance = ServerInstance::new(Arc::clone(&candidate.entry), root.clone());
            self.0.tasks.spawn(Arc::clone(&instance).run(Arc::clone(&self.0)));
            instance
        })))
    }

    /// A running server, started if necessary, that has received all changes on disk.
    async fn client(&self, candidate: &Candidate, call: &CallContext) -> Result<ClientLease, GapReason> {
        let instance = self.instance(candidate)?;
        let client = instance.lease(call).await?;
        self.0.send_changes(&instance, &client, call).await?;
        Ok(client)
    }

    /// Like [`Orchestrator::client`], for the diagnostics of one document: it may not have received changes of other files
    /// that are being checked. Also returns whether there are such changes.
    async fn client_about(
        &self,
        candidate: &Candidate,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<(ClientLease, bool), GapReason> {
        let instance = self.instance(candidate)?;
        let client = instance.lease(call).await?;
        let held = self.0.in_flight.pass(path);
        let sent = self.0.send_changes_but(&held, &instance, &client, call).await;
        sent.map(|()| (client, !held.is_empty()))
    }

    fn live_clients(&self) -> Vec<Arc<Client>> {
        self.0.live()
    }
}

impl Inner {
    fn read(&self, path: &WorkspacePath) -> Result<LineIndex, ReadError> {
        let open =
            lock(&self.instances).values().find_map(|instance| instance.live()?.open_text(path.as_str()));
        read_text(&self.gate, path, open)
    }

    /// The running servers.
    fn live(&self) -> Vec<Arc<Client>> {
        lock(&self.instances).values().filter_map(|instance| instance.live()).collect()
    }

    fn look_for_servers(&self) -> Vec<ServerAvailability> {
        self.finder
            .find_all(&self.registry)
            .into_iter()
            .map(|(entry, availability)| ServerAvailability { entry: Arc::new(entry.clone()), availability })
            .collect()
    }

    /// The innermost allowed root that contains a file.
    fn workspace_of(&self, file: &Utf8Path) -> Option<&Utf8Path> {
        let roots = self.gate.roots().iter().filter(|root| file.starts_with(root));
        roots.max_by_key(|root| root.as_str().len()).map(Utf8PathBuf::as_path)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a file without its byte order mark, which editors and servers do not count. Reuses `known` if the text is the
/// same.
fn read_text(
    gate: &RootGate,
    path: &WorkspacePath,
    known: Option<LineIndex>,
) -> Result<LineIndex, ReadError> {
    let bytes = gate.read(path, MAX_TEXT_BYTES)?;
    if let Some(known) = known.filter(|known| known.text().as_bytes() == without_mark(&bytes)) {
        return Ok(known);
    }
    Ok(LineIndex::new(text_of(&bytes)?))
}

/// The bytes of a file as text.
fn text_of(bytes: &[u8]) -> Result<&str, ReadError> {
    str::from_utf8(without_mark(bytes)).map_err(|_| ReadError::NotUtf8)
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK.as_bytes()).unwrap_or(bytes)
}

fn lines_of(text: String) -> LineIndex {
    match text.strip_prefix(MARK) {
        Some(rest) => LineIndex::new(rest),
        None => LineIndex::new(text),
    }
}
