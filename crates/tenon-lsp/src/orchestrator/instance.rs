//! One server instance: started once, observed until it exits, broken if it exits by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::WorkspacePath;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, watch};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::pending_changes::PendingChanges;
use crate::call_context::{CallContext, Interrupted};
use crate::client::{Client, FairSlots, Start};
use crate::model::GapReason;
use crate::server_log::ServerLog;
use tenon_servers::find::Unavailable;
use tenon_servers::registry::ServerEntry;

/// The state of an instance.
#[derive(Clone)]
pub(super) enum InstanceState {
    Starting,
    Running(Arc<Client>),
    Broken(String),
    Unavailable(String),
}

/// A server that sees no tried text until this is dropped. Do not take a second one of the same server meanwhile: a try that
/// waits for the first would block it.
pub(super) struct ClientLease {
    client: Arc<Client>,
    /// `None` for the try itself.
    _texts: Option<OwnedRwLockReadGuard<()>>,
}

impl ClientLease {
    /// For a call that holds the lock for writing.
    pub(super) fn of_try(client: Arc<Client>) -> Self {
        Self { client, _texts: None }
    }
}

impl std::ops::Deref for ClientLease {
    type Target = Arc<Client>;

    fn deref(&self) -> &Arc<Client> {
        &self.client
    }
}

pub(super) struct ServerInstance {
    pub(super) entry: Arc<ServerEntry>,
    pub(super) root: WorkspacePath,
    pub(super) log: ServerLog,
    pub(super) pending_changes: Mutex<PendingChanges>,
    /// Held while pending changes are sent.
    pub(super) sending_changes: tokio::sync::Mutex<()>,
    /// The turn of a change: the others wait here, not for `sending_changes`, so that a question waits for one of them.
    pub(super) change_turn: FairSlots,
    /// Held for reading while the server is asked something, for writing while it sees a text that is only tried. Taken
    /// before the turn of a change.
    pub(super) texts: Arc<RwLock<()>>,
    state: watch::Sender<InstanceState>,
    /// Whether it has ever answered `initialize`.
    has_run: AtomicBool,
    /// The folder whose compilation database it reads and beside which it stores its index.
    database_folder: OnceLock<Utf8PathBuf>,
    /// Cancelled when we end the server, so that its exit does not count as a crash.
    leaving: CancellationToken,
}

impl ServerInstance {
    pub(super) fn new(entry: Arc<ServerEntry>, root: WorkspacePath) -> Arc<Self> {
        let awaited = entry.library_source.as_ref().map(|library| library.missing.as_str());
        Arc::new(Self {
            log: ServerLog::awaiting(awaited),
            entry,
            root,
            pending_changes: Mutex::default(),
            sending_changes: tokio::sync::Mutex::default(),
            change_turn: FairSlots::new(1),
            texts: Arc::default(),
            state: watch::Sender::new(InstanceState::Starting),
            has_run: AtomicBool::new(false),
            database_folder: OnceLock::new(),
            leaving: CancellationToken::new(),
        })
    }

    pub(super) fn state(&self) -> InstanceState {
        self.state.borrow().clone()
    }

    pub(super) fn live(&self) -> Option<Arc<Client>> {
        match &*self.state.borrow() {
            InstanceState::Running(client) if client.is_alive() => Some(Arc::clone(client)),
            _ => None,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        match &*self.state.borrow() {
            InstanceState::Broken(_) | InstanceState::Unavailable(_) => true,
            InstanceState::Running(client) => !client.is_alive(),
            InstanceState::Starting => false,
        }
    }

    /// The folder that holds its index, once it was started.
    pub(super) fn index_folder(&self) -> &Utf8Path {
        self.database_folder.get().map_or_else(|| self.root.as_path(), Utf8PathBuf::as_path)
    }

    pub(super) fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// The running server, as long as no tried text is shown to it. Waits while it is starting or sees one.
    pub(super) async fn lease(&self, call: &CallContext) -> Result<ClientLease, GapReason> {
        let client = self.client(call).await?;
        let texts = call.bound(Arc::clone(&self.texts).read_owned()).await.map_err(|_| GapReason::Pending)?;
        Ok(ClientLease { client, _texts: Some(texts) })
    }

    /// The running server. Waits while it is starting.
    pub(super) async fn client(&self, call: &CallContext) -> Result<Arc<Client>, GapReason> {
        let mut state = self.state.subscribe();
        let settled = call.bound(state.wait_for(|state| !matches!(state, InstanceState::Starting))).await;
        match settled {
            Ok(Ok(state)) => match &*state {
                InstanceState::Running(client) if client.is_alive() => Ok(Arc::clone(client)),
                InstanceState::Unavailable(reason) => Err(GapReason::Unavailable(reason.clone())),
                _ => Err(GapReason::Broken),
            },
            Ok(Err(_)) => Err(GapReason::Broken),
            Err(Interrupted::Deadline) => Err(GapReason::Indexing),
            Err(Interrupted::Cancelled) => Err(GapReason::Pending),
        }
    }

    /// Starts the server and waits for its exit.
    pub(super) async fn run(self: Arc<Self>, orchestrator: Arc<Inner>) {
        let finder = orchestrator.finder.clone();
        let (entry, root) = (Arc::clone(&self.entry), self.root.clone());
        let found = spawn_blocking(move || {
            let program = finder.find(&entry, root.as_path())?;
            Ok(program.prepare().map(|()| program))
        });
        let program = match found.await {
            Ok(Ok(Ok(program))) => program,
            Ok(Ok(Err(error))) => {
                let reason = format!("cannot write its private folder: {error}");
                self.state.send_replace(InstanceState::Broken(reason));
                return;
            }
            Ok(Err(unavailable)) => {
                let unavailable: Unavailable = unavailable;
                self.state.send_replace(InstanceState::Unavailable(unavailable.reason.to_string()));
                return;
            }
            Err(_) => {
                self.state.send_replace(InstanceState::Broken("looking for its program failed".to_owned()));
                return;
            }
        };
        let _ = self.database_folder.set(program.database_folder(self.root.as_path()).to_owned());
        let start = Start {
            entry: Arc::clone(&self.entry),
            program,
            root: self.root.clone(),
            group: orchestrator.group,
            epoch: orchestrator.epoch.clone(),
            log: self.log.clone(),
        };
        let mut call = CallContext::within(orchestrator.timeouts.start);
        call.cancel = self.leaving.clone();
        // A server reads files after `initialize`; no later change may be missed.
        let watching = async {
            if let Some(watch) = &orchestrator.watch {
                watch.flush(&call).await;
            }
        };
        let client = match Client::start(start, &call, watching).await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(server = %self.entry.id, root = %self.root.as_str(), %error, "server did not start");
                let said = self.log.last().map(|line| format!(": {line}")).unwrap_or_default();
                self.state.send_replace(InstanceState::Broken(format!("{error}{said}")));
                return;
            }
        };
        tracing::info!(server = %self.entry.id, root = %self.root.as_str(), pid = client.pid(), "started");
        self.has_run.store(true, Ordering::Relaxed);
        self.state.send_replace(InstanceState::Running(Arc::clone(&client)));
        let reason = client.ended().await;
        if !self.leaving.is_cancelled() {
            tracing::warn!(server = %self.entry.id, root = %self.root.as_str(), reason, "server exited");
        }
        self.state.send_replace(InstanceState::Broken(reason));
    }

    /// Ends the server, or its start.
    pub(super) async fn shutdown(&self, polite: Duration, grace: Duration) {
        self.leaving.cancel();
        let mut state = self.state.subscribe();
        // A cancelled start ends at once by killing the process.
        let state = state
            .wait_for(|state| !matches!(state, InstanceState::Starting))
            .await
            .map(|state| state.clone());
        if let Ok(InstanceState::Running(client)) = state {
            client.shutdown(polite, grace).await;
        }
    }
}
