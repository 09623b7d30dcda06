//! The language servers of one workspace and the editor that uses them: opened on first use, warmed up in the background.
//!
//! Nothing starts with the process itself: a client's handshake never waits for a language server. The settings and the trust
//! at the time the workspace was opened decide what may run.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::FutureExt;
use tenon_code::edit::{
    BaselineTexts, EditDiagnostics, Editor, EditorOptions, OpenServers, ReportedChange, Unfinished,
};
use tenon_code::explore::{ExploreOptions, Explorer, SinceReport};
use tenon_code::git::{GitError, GitRepository};
use tenon_code::new_findings;
use tenon_code::report_log::{ReportLog, ReportedFiles};
use tenon_code::symbol_edit::SymbolEditor;
use tenon_code::{CodeLimits, CodeTools, EditText, Options};
use tenon_contract::epoch::Epoch;
use tenon_contract::id::sha256_hex;
use tenon_contract::root::WorkspacePath;
use tenon_contract::snapshot::SnapshotLimits;
use tenon_lsp::CallContext;
use tenon_lsp::orchestrator::{self, Orchestrator, ServerStatus};
use tenon_lsp::workspace_check;
use tenon_servers::find::{Finder, SearchPath, Trust};
use tenon_servers::registry::{OverrideError, Registry};
use tenon_servers::walk::Walk;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::daemon::protocol::{DaemonRequest, DaemonResponse, EditedFiles, ServerSummary};
use crate::surfaces::work::StoreHandle;
use crate::trust::TrustState;
use crate::workspace::Workspace;

mod context_pack;
mod language_probe;
mod passages;
mod step_checks;

pub(crate) use passages::PassageError;
use passages::Passages;

/// How long a warm-up waits for servers to load their projects. They continue to load after that.
const WARM_UP: Duration = Duration::from_secs(600);

/// How long the diagnostics of a changed file may take, including the start of a server.
const HOOK_DIAGNOSTICS: Duration = Duration::from_secs(11);

/// How long a question by symbol name may take.
const EXPLORE: Duration = Duration::from_secs(60);

/// How long the checks of steps may take that a person closes: as long as those of an agent.
pub(crate) const STEP_CHECKS: Duration = Duration::from_secs(600);

/// How long one git command may take to find the text before a change.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The most bytes of a server's log in one response line.
const LOG_BYTES: usize = 60 * 1024;

/// See the module.
pub(crate) struct Engine {
    workspace: Arc<Workspace>,
    opened: Arc<OnceCell<Orchestrator>>,
    code: OnceCell<CodeTools>,
    explorer: OnceCell<Arc<Explorer>>,
    passages: OnceCell<Passages>,
    /// Plans, tasks and memory, which questions about passages cover too.
    store: OnceLock<Arc<StoreHandle>>,
    /// `None` if the root no longer exists.
    editor: Option<Arc<Editor>>,
    /// `None` if the settings do not allow to select files.
    reports: Option<Reports>,
    closing: CancellationToken,
}

/// What was reported to agents.
struct Reports {
    log: Arc<ReportLog>,
    /// The epochs of text and files at the last report.
    epochs: Mutex<Option<(u64, u64)>>,
}

impl Engine {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        let opened = Arc::new(OnceCell::new());
        let log = report_log(&workspace).map(Arc::new);
        let options = EditorOptions {
            own_paths: own_paths(&workspace),
            journal: workspace.dirs().state.join("edits"),
            servers: open_servers(Arc::clone(&workspace), Arc::clone(&opened)),
            baselines: baselines(workspace.root().to_owned(), log.clone()),
            severities: workspace.config().edit.severities.iter().copied().collect(),
        };
        let editor = Editor::new(workspace.root(), options).ok().map(Arc::new);
        let reports = log.map(|log| Reports { log, epochs: Mutex::default() });
        Self {
            workspace,
            opened,
            code: OnceCell::new(),
            explorer: OnceCell::new(),
            passages: OnceCell::new(),
            store: OnceLock::new(),
            editor,
            reports,
            closing: CancellationToken::new(),
        }
    }

    /// Lets questions about passages cover tasks and notes.
    pub(crate) fn use_store(&self, store: &Arc<StoreHandle>) {
        // The first one stays.
        let _ = self.store.set(Arc::clone(store));
    }

    /// The store, if a surface uses one.
    pub(crate) fn store(&self) -> Option<&Arc<StoreHandle>> {
        self.store.get()
    }

    /// The code tools, which all surfaces share: diagnostics of the workspace are computed once.
    pub(crate) async fn code_tools(&self) -> Result<&CodeTools, OverrideError> {
        let tools = self.code.get_or_try_init(|| async {
            Ok(CodeTools::new(Options {
                engine: self.orchestrator().await?.clone(),
                limits: self.code_limits(),
                snapshots: SnapshotLimits::default(),
                clock: self.workspace.clock().clone(),
            }))
        });
        tools.await
    }

    /// The configured limits of the code tools, clamped to the contract's.
    pub(crate) fn code_limits(&self) -> CodeLimits {
        let limits = &self.workspace.config().limits;
        let asked = CodeLimits {
            response_bytes: limits.max_response_bytes,
            timeout: Duration::from_millis(limits.request_timeout_ms),
            items: limits.max_items_nonpaged,
            page_size: limits.max_page_size,
            workspace_diagnostics: limits.max_workspace_diagnostics_items_total,
            workspace_symbols: limits.max_workspace_symbols_items_total,
            references: limits.max_references_items_total,
        };
        asked.clamped()
    }

    /// Answers questions by symbol names.
    pub(crate) async fn explorer(self: &Arc<Self>) -> Result<&Arc<Explorer>, OverrideError> {
        let explorer = self.explorer.get_or_try_init(|| async {
            let code = self.code_tools().await?.clone();
            let root = self.workspace.root().to_owned();
            let name = &sha256_hex(root.as_str())[..16];
            let store = self.workspace.dirs().state.join("index").join(name);
            let options = ExploreOptions {
                root,
                store,
                clock: self.workspace.clock().clone(),
                severities: self.workspace.config().edit.severities.iter().copied().collect(),
                reported: reported_files(&self.workspace),
                since_report: since_report(Arc::downgrade(self)),
            };
            Ok(Arc::new(Explorer::new(code, options)))
        });
        explorer.await
    }

    /// The servers of the workspace. The first caller waits until programs are found, but not for a server.
    pub(crate) async fn orchestrator(&self) -> Result<&Orchestrator, OverrideError> {
        open(&self.workspace, &self.opened).await
    }

    /// The servers, if a question has opened them.
    pub(crate) fn opened(&self) -> Option<&Orchestrator> {
        self.opened.get()
    }

    /// Edits files of the workspace; the `edit` surface decides whether a client may.
    pub(crate) fn editor(&self) -> Option<&Arc<Editor>> {
        self.editor.as_ref()
    }

    /// Edits by symbol names, and tries edits; `None` if the root no longer exists.
    pub(crate) async fn symbol_editor(self: &Arc<Self>) -> Result<Option<SymbolEditor>, OverrideError> {
        let explorer = self.explorer().await?;
        let wait = self.workspace.config().edit.wait();
        let editor = self.editor.as_ref();
        Ok(editor.map(|editor| SymbolEditor::new(Arc::clone(editor), Arc::clone(explorer), wait)))
    }

    /// Reads the syntax index, so that the first question by name finds it.
    pub(crate) async fn read_index(self: &Arc<Self>) {
        match self.explorer().await {
            Ok(explorer) => {
                let call = CallContext::new(Instant::now() + WARM_UP, self.closing.clone());
                explorer.read_files(&call).await;
            }
            Err(error) => tracing::warn!(%error, "cannot read the index"),
        }
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
    pub(crate) async fn run(
        self: &Arc<Self>,
        request: DaemonRequest,
        gone: &CancellationToken,
    ) -> DaemonResponse {
        let orchestrator = match self.orchestrator().await {
            Ok(orchestrator) => orchestrator,
            Err(error) => return DaemonResponse::Failed(error.to_string()),
        };
        let known = |id: &str| {
            let status = orchestrator.status();
            let found = status.into_iter().find(|status| status.id.as_str() == id).map(|status| status.id);
            found.ok_or_else(|| format!("no language server is called `{id}`"))
        };
        match request {
            DaemonRequest::List => DaemonResponse::List(self.status()),
            DaemonRequest::WarmUp => {
                orchestrator.refresh_servers().await;
                self.warm_up().await;
                DaemonResponse::List(self.status())
            }
            DaemonRequest::Probe => match Registry::configured(&self.workspace.config().servers) {
                Ok(registry) => match self.explorer().await {
                    Ok(explorer) => {
                        DaemonResponse::Probed(language_probe::probe(orchestrator, explorer, &registry).await)
                    }
                    Err(error) => DaemonResponse::Failed(error.to_string()),
                },
                Err(error) => DaemonResponse::Failed(error.to_string()),
            },
            DaemonRequest::Restart { id } => match known(&id) {
                Ok(id) => {
                    orchestrator.restart(&id).await;
                    DaemonResponse::Restarted
                }
                Err(why) => DaemonResponse::Failed(why),
            },
            DaemonRequest::Logs { id } => match known(&id) {
                Ok(id) => DaemonResponse::Logs(newest(orchestrator.logs(&id))),
                Err(why) => DaemonResponse::Failed(why),
            },
            DaemonRequest::EditDiagnostics { files, wait_ms } => {
                let wait = Duration::from_millis(wait_ms);
                let gate = orchestrator.gate();
                let EditedFiles { files, created } = files;
                let change = |file: &Utf8PathBuf| {
                    let is_new = created.contains(file);
                    Some(ReportedChange { path: gate.admit_target(file).ok()?, before: None, is_new })
                };
                let changed: Vec<ReportedChange> = files.iter().filter_map(change).collect();
                let found = self.diagnostics_after(changed, Unfinished::Retry, wait, gone).await;
                if !gone.is_cancelled() {
                    let unfinished = found.as_ref().map_or(&[][..], |found| &found.unfinished);
                    self.note_report(orchestrator, &files, unfinished).await;
                }
                let found = found.filter(|found| !found.is_silent());
                DaemonResponse::EditDiagnostics(
                    found.map_or_else(String::new, |found| EditText::for_hook(&found).to_string()),
                )
            }
            DaemonRequest::ChangeDiagnostics { wait_ms, only_new } => {
                let wait = Duration::from_millis(wait_ms);
                match self.change_text(orchestrator, only_new, wait, gone).await {
                    Ok(text) => DaemonResponse::EditDiagnostics(text),
                    Err(error) => DaemonResponse::Failed(error.to_string()),
                }
            }
            DaemonRequest::CheckNew { since, severities, wait_seconds } => {
                let Some(files) = reported_files(&self.workspace) else {
                    return DaemonResponse::Failed("cannot select files".to_owned());
                };
                let call = CallContext::new(Instant::now() + Duration::from_secs(wait_seconds), gone.clone());
                match new_findings::since(orchestrator, &files, &since, &severities, &call).await {
                    Ok(report) => DaemonResponse::Checked(report),
                    Err(error) => DaemonResponse::Failed(error.to_string()),
                }
            }
            DaemonRequest::StepChecks(checks) => {
                let call = CallContext::new(Instant::now() + STEP_CHECKS, gone.clone());
                DaemonResponse::StepChecks(self.run_step_checks(&checks, &call).await)
            }
            DaemonRequest::Explore(request) => {
                let call = CallContext::new(Instant::now() + EXPLORE, gone.clone());
                match self.explorer().await {
                    Ok(explorer) => match explorer.answer(request, &call).await {
                        Ok(text) => DaemonResponse::Explored(text),
                        Err(error) => DaemonResponse::NotExplored(error.to_string()),
                    },
                    Err(error) => DaemonResponse::Failed(error.to_string()),
                }
            }
            DaemonRequest::Ask { request, json } => {
                let call = CallContext::new(Instant::now() + EXPLORE, gone.clone());
                match self.find_passages(request, &call).await {
                    Ok(answer) if json => DaemonResponse::Explored(
                        serde_json::to_string(&answer).expect("strings and numbers are JSON"),
                    ),
                    Ok(answer) => DaemonResponse::Explored(answer.text()),
                    Err(error) => DaemonResponse::NotExplored(error.to_string()),
                }
            }
            DaemonRequest::Pack(request) => {
                let call = CallContext::new(Instant::now() + EXPLORE, gone.clone());
                match self.context_pack(request, &call).await {
                    Ok(text) => DaemonResponse::Explored(text),
                    Err(error) => DaemonResponse::NotExplored(error.to_string()),
                }
            }
            DaemonRequest::Check { files, severities, wait_seconds } => {
                let files = admitted(orchestrator, &files);
                let call = CallContext::new(Instant::now() + Duration::from_secs(wait_seconds), gone.clone());
                DaemonResponse::Checked(
                    workspace_check::run(orchestrator, &files, &severities, &call, &mut |_| {}).await,
                )
            }
        }
    }

    /// What changes of files did to the diagnostics.
    async fn diagnostics_after(
        &self,
        files: Vec<ReportedChange>,
        unfinished: Unfinished,
        wait: Duration,
        gone: &CancellationToken,
    ) -> Option<EditDiagnostics> {
        let editor = self.editor.as_ref().filter(|_| !files.is_empty())?;
        let call = CallContext::new(Instant::now() + HOOK_DIAGNOSTICS + wait, gone.clone());
        Some(editor.diagnostics_after(files, unfinished, wait, &call).await)
    }

    /// Takes note that these files were reported on, except for unfinished ones: the end of the turn reports the rest.
    async fn note_report(
        &self,
        orchestrator: &Orchestrator,
        files: &[Utf8PathBuf],
        unfinished: &[WorkspacePath],
    ) {
        let Some(reports) = &self.reports else {
            return;
        };
        let _turn = reports.epochs.lock().await;
        let gate = orchestrator.gate();
        let mut files: Vec<WorkspacePath> =
            files.iter().filter_map(|file| gate.admit_target(file).ok()).collect();
        files.retain(|file| !unfinished.contains(file));
        if let Err(error) = reports.log.note(&files).await {
            tracing::debug!(%error, "cannot keep the state of the last report");
        }
    }

    /// What all changes since the last report did to the diagnostics, as text for a model.
    async fn change_text(
        &self,
        orchestrator: &Orchestrator,
        only_new: bool,
        wait: Duration,
        gone: &CancellationToken,
    ) -> Result<String, GitError> {
        let call = CallContext::new(Instant::now() + HOOK_DIAGNOSTICS + wait, gone.clone());
        orchestrator.catch_up(&call).await;
        let epochs = orchestrator.epochs();
        let epochs = (epochs.get(Epoch::Text), epochs.get(Epoch::Fs));
        let Some(reports) = &self.reports else {
            return Ok(String::new());
        };
        // One report at a time: the next one starts where this one ends.
        let mut reported = reports.epochs.lock().await;
        if *reported == Some(epochs) {
            return Ok(String::new());
        }
        let changes = reports.log.changes().await?;
        // A shell command that changed nothing does not repeat what is pending.
        let unfinished = if only_new { Unfinished::Retry } else { Unfinished::Skip };
        let found = self.diagnostics_after(changes.files.clone(), unfinished, wait, gone).await;
        let unfinished = found.as_ref().map(|found| found.unfinished.clone()).unwrap_or_default();
        let found = found.filter(|found| !found.is_silent());
        let text = match &found {
            Some(found) if !only_new || !found.new.is_empty() => EditText::for_hook(found).to_string(),
            _ => String::new(),
        };
        // The client left without the report; the next one gets it.
        if gone.is_cancelled() {
            return Ok(text);
        }
        if let Err(error) = reports.log.finish(changes, &unfinished).await {
            tracing::warn!(%error, "cannot keep the state of the last report");
        }
        // What was not checked may be new; it is reported next time.
        *reported = unfinished.is_empty().then_some(epochs);
        Ok(text)
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
        if let Some(passages) = self.passages.get() {
            passages.close().await;
        }
        if let Some(explorer) = self.explorer.get() {
            explorer.close().await;
        }
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
        let mut options = orchestrator::Options::new(workspace.gate().clone(), registry, finder(workspace));
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

/// What changed since the last report to an agent, as text.
fn since_report(engine: Weak<Engine>) -> SinceReport {
    Box::new(move |call| {
        let engine = engine.clone();
        async move {
            let Some(engine) = engine.upgrade() else { return Ok(String::new()) };
            let orchestrator = match engine.orchestrator().await {
                Ok(orchestrator) => orchestrator,
                Err(error) => return Ok(format!("not checked: {error}")),
            };
            let wait = engine.workspace.config().edit.wait();
            engine.change_text(orchestrator, false, wait, &call.cancel).await
        }
        .boxed()
    })
}

/// The texts of files at the last report, else in git's index, else in `HEAD`.
fn baselines(root: Utf8PathBuf, log: Option<Arc<ReportLog>>) -> BaselineTexts {
    Box::new(move |paths| {
        let (root, log) = (root.clone(), log.clone());
        async move {
            let mut texts: Vec<Option<String>> = Vec::new();
            for path in &paths {
                texts.push(match &log {
                    Some(log) => log.text(path).await,
                    None => None,
                });
            }
            if texts.iter().all(Option::is_some) {
                return texts;
            }
            let opened = GitRepository::open(&root, &SearchPath::from_env(), GIT_TIMEOUT).await;
            let repository = match opened {
                Ok(repository) => repository,
                Err(error) => {
                    tracing::debug!(%error, "no baseline from git");
                    return texts;
                }
            };
            for (path, text) in paths.iter().zip(&mut texts).filter(|(_, text)| text.is_none()) {
                if let Ok(below) = path.as_path().strip_prefix(&root) {
                    *text = repository.text_before(below).await.ok().flatten();
                }
            }
            texts
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

/// The files that reports cover; `None` if the settings are invalid.
fn reported_files(workspace: &Workspace) -> Option<ReportedFiles> {
    let config = workspace.config();
    Some(ReportedFiles {
        gate: workspace.gate().clone(),
        walk: Walk::new(workspace.root(), &config.workspace.ignore).ok()?,
        registry: Registry::configured(&config.servers).ok()?,
        search: SearchPath::from_env(),
    })
}

/// The state of the last report, in a file of the user.
fn report_log(workspace: &Workspace) -> Option<ReportLog> {
    let files = reported_files(workspace)?;
    let name = &sha256_hex(workspace.root().as_str())[..16];
    let record = workspace.dirs().state.join("reports").join(format!("{name}.json"));
    Some(ReportLog::new(files, record))
}

/// Like [`Workspace::finder`], but checks trust before every start.
fn finder(workspace: &Arc<Workspace>) -> Finder {
    let asked = Arc::clone(workspace);
    workspace.finder().with_trust_check(move || trust(&asked.trust_now()))
}

fn trust(state: &TrustState) -> Trust {
    if state.is_trusted() { Trust::Trusted } else { Trust::Untrusted }
}
