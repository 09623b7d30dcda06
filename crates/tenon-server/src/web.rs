//! A web application that the HTTP edge serves beside MCP, and what it may use of the daemon.
//!
//! The edge checks the `Host` and the size of a request; everything else, sessions and forms included, is the application's.
//! The application asks the same tools as agents ([`DaemonAccess::call`]), so that people see what agents see.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use tenon_code::{CodeError, WorkspaceProblems};
use tenon_contract::epoch::Epoch;
use tenon_lsp::CallContext;
use tenon_lsp::workspace_check::CheckReport;
use tenon_work::ChangeSubscription;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::activity::ActivityLog;
use crate::daemon::protocol::{DaemonRequest, DaemonResponse, ServerSummary};
use crate::engine::Engine;
use crate::surface::{Arguments, Caller, SurfaceSet, ToolOutcome};
use crate::workspace::Workspace;

/// The folder of the application's addresses.
pub const PREFIX: &str = "/console";

/// A request below [`PREFIX`], with its whole body.
#[derive(Debug)]
pub struct WebRequest {
    pub head: Parts,
    pub body: Bytes,
}

/// See the module.
pub trait WebApp: Send + Sync + 'static {
    /// Whether a request is of a signed-in browser. Connections without one are closed after a few seconds.
    fn is_signed_in(&self, head: &Parts) -> bool;

    fn answer(self: Arc<Self>, request: WebRequest) -> BoxFuture<'static, Response>;

    /// A path that signs a browser in, once.
    fn sign_in_path(&self) -> String;

    /// Whether browsers that an earlier daemon of the workspace signed in may return.
    fn has_sessions(&self) -> bool;
}

/// Keeps the daemon from exiting when idle, until it is dropped.
pub type KeepAlive = Box<dyn std::any::Any + Send + Sync>;

/// What only the process of a daemon can do.
pub trait DaemonControl: Send + Sync + 'static {
    /// `None` if the daemon is exiting.
    fn keep_alive(&self) -> Option<KeepAlive>;

    /// Counts the console as a client while it changes something: commands do not end the daemon as idle. `None` if it is
    /// exiting.
    fn enter(&self) -> Option<KeepAlive>;

    /// Ends the daemon.
    fn stop(&self);

    fn started_at(&self) -> String;
}

/// How long a restart of a language server may take.
const RESTART: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone)]
pub struct DaemonAccess {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) surfaces: SurfaceSet,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) control: Arc<dyn DaemonControl>,
}

impl DaemonAccess {
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The workspace as a new daemon would open it, with the settings and the trust on disk.
    pub fn reopened(&self) -> Option<Workspace> {
        self.workspace.reopened().ok()
    }

    pub fn activity(&self) -> &Arc<ActivityLog> {
        &self.activity
    }

    pub fn control(&self) -> &Arc<dyn DaemonControl> {
        &self.control
    }

    /// Runs a tool of any surface that a client can get. The call is not recorded as a client's.
    pub async fn call(&self, tool: &str, arguments: Arguments) -> ToolOutcome {
        self.surfaces.call(tool, arguments, Caller::default()).await
    }

    /// Commits to the store, of this daemon and of other processes; `None` if the store does not exist yet or cannot be opened.
    pub async fn store_changes(&self) -> Option<ChangeSubscription> {
        let store = self.engine.store().filter(|store| store.exists())?;
        store.work().await.ok()?.store().subscribe().await.ok()
    }

    /// The problems that are new since a revision of the repository.
    pub async fn new_problems(&self, since: &str, wait: Duration) -> Result<CheckReport, String> {
        let severities = self.workspace.config().edit.severities.iter().copied().collect();
        let request =
            DaemonRequest::CheckNew { since: since.to_owned(), severities, wait_seconds: wait.as_secs() };
        match self.engine.run(request, &CancellationToken::new()).await {
            DaemonResponse::Checked(report) => Ok(report),
            DaemonResponse::Failed(why) => Err(why),
            _ => Err("the daemon gave an unexpected answer".to_owned()),
        }
    }

    /// The language servers; empty before the first use.
    pub fn servers(&self) -> Vec<ServerSummary> {
        self.engine.status()
    }

    /// Restarts the language servers with this id.
    pub async fn restart_server(&self, id: &str) -> Result<(), String> {
        let request = DaemonRequest::Restart { id: id.to_owned() };
        let gone = CancellationToken::new();
        let running = self.engine.run(request, &gone);
        match tokio::time::timeout(RESTART, running).await {
            Ok(DaemonResponse::Failed(why)) => Err(why),
            Ok(_) => Ok(()),
            Err(_) => Err(format!("`{id}` did not restart within {} s", RESTART.as_secs())),
        }
    }

    /// The problems of the whole workspace, if they are known within `wait`.
    pub async fn problems(&self, wait: Duration) -> Result<WorkspaceProblems, ProblemsError> {
        let tools =
            self.engine.code_tools().await.map_err(|error| ProblemsError::NoServers(error.to_string()))?;
        let call = CallContext::new(Instant::now() + wait, CancellationToken::new());
        Ok(tools.workspace_problems(&call).await?)
    }

    /// Changes whenever texts, files or diagnostics of the workspace do; `None` before the first question about code.
    pub fn code_epochs(&self) -> Option<[u64; 3]> {
        let epochs = self.engine.opened()?.epochs();
        Some([Epoch::Text, Epoch::Fs, Epoch::Diagnostics].map(|epoch| epochs.get(epoch)))
    }

    /// The syntax index, brought up to date.
    pub async fn index(&self) -> Result<tenon_code::explore::IndexReader, String> {
        let explorer = self.engine.explorer().await.map_err(|error| error.to_string())?;
        let call = CallContext::new(Instant::now() + Duration::from_secs(20), CancellationToken::new());
        Ok(explorer.index_reader(&call).await)
    }
}

/// Why the problems of the workspace are not known.
#[derive(Debug, thiserror::Error)]
pub enum ProblemsError {
    #[error("no language server can be used: {0}")]
    NoServers(String),
    #[error(transparent)]
    Code(#[from] CodeError),
}
