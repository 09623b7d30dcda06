//! The language servers of one workspace and the editor that uses them: opened on first use, warmed up in the background.
//!
//! Nothing starts with the process itself: a client's handshake never waits for a language server. The settings and the trust
//! at the time the workspace was opened decide what may run.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::FutureExt;
use tenon_code::DiagnosticsText;
use tenon_code::edit::{Editor, OpenServers};
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
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

mod language_probe;

/// How long a warm-up waits for servers to load their projects. They continue to load after that.
const WARM_UP: Duration = Duration::from_secs(600);

/// How long the diagnostics of a changed file may take, including the start of a server.
const HOOK_DIAGNOSTICS: Duration = Duration::from_secs(11);

/// The most bytes of a server's log in one response line.
const LOG_BYTES: usize = 60 * 1024;

/// See the module.
pub(crate) struct Engine {
    workspace: Arc<Workspace>,
    opened: Arc<OnceCell<Orchestrator>>,
    /// `None` if the root no longer exists.
    editor: Option<Arc<Editor>>,
    closing: CancellationToken,
}

impl Engine {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let opened = Arc::new(OnceCell::new());
        let servers = open_servers(Arc::clone(&workspace), Arc::clone(&opened));
        let editor = Editor::new(workspace.root(), own_paths(&workspace), servers).ok().map(Arc::new);
        Self { workspace, opened, editor, closing: CancellationToken::new() }
    }

    /// The servers of the workspace. The first caller waits until programs are found, but not for a server.
    pub(crate) async fn orchestrator(&self) -> Result<&Orchestrator, OverrideError> {
        open(&self.workspace, &self.opened).await
    }

    /// Edits files of the workspace; the `edit` surface decides whether a client may.
    pub(crate) fn editor(&self) -> Option<&Arc<Editor>> {
        self.editor.as_ref()
    }

    /// Starts the servers that the workspace's languages need, and returns when they are ready.
    pub(crate) async fn warm_up(&self) {
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

    /// The status of the servers; empty before the first use.
    pub(crate) fn status(&self) -> Vec<ServerSummary> {
        let status = self.opened.get().map(Orchestrator::status).unwrap_or_default();
        status.into_iter().map(line).collect()
    }

    /// Runs a request of the daemon protocol. Waits end early once the client is `gone`.
    pub(crate) async fn run(&self, request: DaemonRequest, gone: &CancellationToken) -> DaemonResponse {
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
            DaemonRequest::Probe => match Registry::configured(&self.workspace.config().servers) {
                Ok(registry) => DaemonResponse::Probed(language_probe::probe(orchestrator, &registry).await),
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
            DaemonRequest::EditDiagnostics { files, wait_ms } => DaemonResponse::EditDiagnostics(
                self.diagnostics_text(orchestrator, &files, Duration::from_millis(wait_ms), gone).await,
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

    /// The diagnostics after changes of files, as text for a model. Files outside the workspace, or missing ones, add nothing.
    async fn diagnostics_text(
        &self,
        orchestrator: &Orchestrator,
        files: &[Utf8PathBuf],
        wait: Duration,
        gone: &CancellationToken,
    ) -> String {
        let files = admitted(orchestrator, files);
        let Some(editor) = self.editor.as_ref().filter(|_| !files.is_empty()) else {
            return String::new();
        };
        let call = CallContext::new(Instant::now() + HOOK_DIAGNOSTICS + wait, gone.clone());
        let diagnostics = editor.diagnostics_after(files, wait, &call).await;
        DiagnosticsText::new(&diagnostics, &edit_limits(&self.workspace)).to_string()
    }

    /// Lets broken servers start again; called when the first client connects.
    pub(crate) fn reset_failures(&self) {
        if let Some(orchestrator) = self.opened.get() {
            orchestrator.reset_failures();
        }
    }

    /// Shuts all servers down.
    pub(crate) async fn shutdown(&self) {
        self.closing.cancel();
        if let Some(orchestrator) = self.opened.get() {
            orchestrator.shutdown().await;
        }
    }
}

/// The files that exist inside the workspace.
fn admitted(orchestrator: &Orchestrator, files: &[Utf8PathBuf]) -> Vec<WorkspacePath> {
    files.iter().filter_map(|file| orchestrator.gate().admit_path(file).ok()).collect()
}

/// The last lines, as many as fit one line of the daemon protocol.
fn newest(lines: Vec<String>) -> Vec<String> {
    let mut left = LOG_BYTES;
    let fits = |line: &&String| {
        // Escaping makes a byte at most six bytes long.
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

/// Opens the servers of a workspace on first use.
async fn open<'a>(
    workspace: &Arc<Workspace>,
    opened: &'a OnceCell<Orchestrator>,
) -> Result<&'a Orchestrator, OverrideError> {
    let orchestrator = opened.get_or_try_init(|| async {
        let registry = Registry::configured(&workspace.config().servers)?;
        let mut options = Options::new(workspace.gate().clone(), registry, finder(workspace));
        options.ignore = workspace.config().workspace.ignore.clone();
        Ok(Orchestrator::open(options).await)
    });
    orchestrator.await
}

/// The same for the editor, whose edits succeed without servers.
fn open_servers(workspace: Arc<Workspace>, opened: Arc<OnceCell<Orchestrator>>) -> OpenServers {
    Box::new(move || {
        let (workspace, opened) = (Arc::clone(&workspace), Arc::clone(&opened));
        async move {
            let orchestrator = open(&workspace, &opened).await;
            let warn = |error: &OverrideError| tracing::warn!(%error, "language servers cannot be used");
            orchestrator.inspect_err(warn).ok().cloned()
        }
        .boxed()
    })
}

/// Tenon's own files and folders, wherever the user put them: no edit may change them.
fn own_paths(workspace: &Workspace) -> Vec<Utf8PathBuf> {
    let (dirs, config) = (workspace.dirs(), workspace.config());
    let mut paths = vec![dirs.config_file.clone(), dirs.state.clone(), dirs.data.clone()];
    paths.extend(config.log.folder.clone());
    paths.extend(config.work.store.as_ref().filter(|store| !store.contains("://")).map(Into::into));
    paths
}

/// Finds servers in Tenon's own folder and on `PATH`, as far as the workspace's trust allows.
fn finder(workspace: &Arc<Workspace>) -> Finder {
    let asked = Arc::clone(workspace);
    Finder::from_env(workspace.root().to_owned(), trust(workspace.trust()))
        .with_trust_check(move || trust(&asked.trust_now()))
        .with_managed(Managed::new(workspace.dirs().servers()))
}

fn trust(state: &TrustState) -> Trust {
    if state.is_trusted() { Trust::Trusted } else { Trust::Untrusted }
}
