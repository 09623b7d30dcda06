//! The language-server engine of one served workspace: opened when it is first needed, and warmed up in the background.
//!
//! Nothing starts with the process itself: a client's handshake never waits for a language server. What may run is
//! decided by the settings and the trust that the workspace was opened under.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::aftermath::{Aftermath, Touched};
use tenon_lsp::block::Block;
use tenon_lsp::orchestrator::{Options, Orchestrator, ServerStatus};
use tenon_lsp::workspace_check;
use tenon_servers::find::{Finder, Trust};
use tenon_servers::install::Managed;
use tenon_servers::registry::{OverrideError, Registry};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::daemon::protocol::{DaemonRequest, DaemonResponse, ServerSummary};
use crate::service::edit_limits;
use crate::trust::TrustState;
use crate::workspace::Workspace;

mod proof;

/// How long servers may take to load their projects before warming up gives up on them. They go on loading.
const WARM_UP: Duration = Duration::from_secs(600);

/// How long what an edit led to may take to show in its own file, with a server's start.
const AFTERMATH: Duration = Duration::from_secs(11);

/// How much of a server's log travels to a person: the daemon's lines have an end.
const LOG_BYTES: usize = 60 * 1024;

/// See the module.
pub struct Engine {
    workspace: Arc<Workspace>,
    opened: OnceCell<Orchestrator>,
    closing: CancellationToken,
}

impl Engine {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, opened: OnceCell::new(), closing: CancellationToken::new() }
    }

    /// The servers of the workspace. The first caller waits for the look around; none waits for a server.
    pub async fn orchestrator(&self) -> Result<&Orchestrator, OverrideError> {
        self.opened
            .get_or_try_init(|| async {
                let registry = Registry::configured(&self.workspace.config().servers)?;
                let mut options =
                    Options::new(self.workspace.gate().clone(), registry, finder(&self.workspace));
                options.ignore = self.workspace.config().workspace.ignore.clone();
                Ok(Orchestrator::open(options).await)
            })
            .await
    }

    /// Starts the servers of the languages that the workspace has, and returns when they are ready.
    pub async fn warm_up(&self) {
        let orchestrator = match self.orchestrator().await {
            Ok(orchestrator) => orchestrator,
            Err(error) => return tracing::warn!(%error, "no language server can be used"),
        };
        let call = CallContext::new(Instant::now() + WARM_UP, self.closing.clone());
        orchestrator
            .warm_up(&call, |warmth| match &warmth.why {
                None => tracing::info!(server = %warmth.server, project = %warmth.project.as_path(), "ready"),
                Some(why) => tracing::warn!(server = %warmth.server, ?why, "not ready"),
            })
            .await;
    }

    /// How the servers are; nothing before anyone has asked for one.
    pub fn status(&self) -> Vec<ServerSummary> {
        let status = self.opened.get().map(Orchestrator::status).unwrap_or_default();
        status.into_iter().map(line).collect()
    }

    /// Does what a person asked of the servers. What can be left undone is, once that person is `gone`.
    pub async fn run(&self, request: DaemonRequest, gone: &CancellationToken) -> DaemonResponse {
        let orchestrator = match self.orchestrator().await {
            Ok(orchestrator) => orchestrator,
            Err(error) => return DaemonResponse::Failed(error.to_string()),
        };
        let known = |id: &str| {
            let status = orchestrator.status();
            let found = status.into_iter().find(|status| status.id.as_str() == id).map(|status| status.id);
            found.ok_or_else(|| DaemonResponse::Failed(format!("no language server is called `{id}`")))
        };
        match request {
            DaemonRequest::List => DaemonResponse::List(self.status()),
            DaemonRequest::WarmUp => {
                orchestrator.refresh_servers().await;
                self.warm_up().await;
                DaemonResponse::List(self.status())
            }
            DaemonRequest::Prove => match Registry::configured(&self.workspace.config().servers) {
                Ok(registry) => DaemonResponse::Proved(proof::prove(orchestrator, &registry).await),
                Err(error) => DaemonResponse::Failed(error.to_string()),
            },
            DaemonRequest::Restart { id } => match known(&id) {
                Ok(id) => {
                    orchestrator.restart(&id).await;
                    DaemonResponse::Restarted
                }
                Err(failed) => failed,
            },
            DaemonRequest::Logs { id } => match known(&id) {
                Ok(id) => DaemonResponse::Logs(newest(orchestrator.logs(&id))),
                Err(failed) => failed,
            },
            DaemonRequest::Aftermath { files, wait_ms } => DaemonResponse::Aftermath(
                self.aftermath(orchestrator, &files, Duration::from_millis(wait_ms), gone).await,
            ),
            DaemonRequest::Check { files, severities, wait_seconds } => {
                let files = admitted(orchestrator, &files);
                let call = CallContext::new(Instant::now() + Duration::from_secs(wait_seconds), gone.clone());
                DaemonResponse::Checked(
                    workspace_check::run(orchestrator, &files, &severities, &call, &mut |_| {}).await,
                )
            }
        }
    }

    /// What changes to files led to, in words for a model. Files that are not ours, or not there, led to nothing.
    async fn aftermath(
        &self,
        orchestrator: &Orchestrator,
        files: &[Utf8PathBuf],
        wait: Duration,
        gone: &CancellationToken,
    ) -> String {
        let ours = admitted(orchestrator, files).into_iter();
        let touched: Vec<Touched> = ours.map(|path| Touched { path, text: None, before: None }).collect();
        if touched.is_empty() {
            return String::new();
        }
        let call = CallContext::new(Instant::now() + AFTERMATH + wait, gone.clone());
        let aftermath = Aftermath::of(orchestrator, &touched, wait, &call).await;
        Block::new(&aftermath, &edit_limits(&self.workspace)).to_string()
    }

    /// Gives broken servers another chance: a client has come while there was none.
    pub fn reset_failures(&self) {
        if let Some(orchestrator) = self.opened.get() {
            orchestrator.reset_failures();
        }
    }

    /// Ends all servers.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        if let Some(orchestrator) = self.opened.get() {
            orchestrator.shutdown().await;
        }
    }
}

/// The files that are ours and there.
fn admitted(orchestrator: &Orchestrator, files: &[Utf8PathBuf]) -> Vec<WorkspacePath> {
    files.iter().filter_map(|file| orchestrator.gate().admit_path(file).ok()).collect()
}

/// As many of the last lines as fit the daemon's one line of answer.
fn newest(lines: Vec<String>) -> Vec<String> {
    let mut left = LOG_BYTES;
    let fits = |line: &&String| {
        // An escaped byte takes six.
        left = left.saturating_sub(6 * line.len() + 3);
        left > 0
    };
    let kept = lines.iter().rev().take_while(fits).count();
    lines[lines.len() - kept..].to_vec()
}

fn line(status: ServerStatus) -> ServerSummary {
    ServerSummary {
        id: status.id.to_string(),
        status: status.state,
        language: status.language,
        server_pid: status.pid,
        detail: status.detail,
        project: status.project,
        ready: status.ready,
    }
}

/// Looks for servers as the workspace's trust allows it, in our own folder and on PATH.
fn finder(workspace: &Arc<Workspace>) -> Finder {
    let asked = Arc::clone(workspace);
    Finder::from_env(workspace.root().to_owned(), trust(workspace.trust()))
        .with_trust_check(move || trust(&asked.trust_now()))
        .with_managed(Managed::new(workspace.dirs().servers()))
}

fn trust(state: &TrustState) -> Trust {
    if state.is_trusted() { Trust::Trusted } else { Trust::Untrusted }
}
