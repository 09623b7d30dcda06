//! How commands reach the workspace's daemon: connect to it, start it, or run it in this process.
//!
//! Systems without Unix sockets have no daemon yet. There, `tenon mcp` serves from its own process, and commands that need
//! the daemon report that it is unsupported.

#[cfg(not(unix))]
#[path = "daemon_client/non_unix.rs"]
mod system;
#[cfg(unix)]
#[path = "daemon_client/unix.rs"]
mod system;

use std::time::Duration;

use camino::Utf8Path;
use tenon_lsp::workspace_check::CheckReport;
use tenon_server::config::FlagSetting;
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{
    DaemonInfo, DaemonRequest, DaemonResponse, EditedFiles, LanguageProbe, ServerSummary,
};
use tenon_server::service::Service;
use tenon_server::stdio;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// A daemon's answer to a `tools/list` request.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) daemon: DaemonInfo,
    pub(crate) tools: Vec<String>,
}

/// The result of a check that the daemon ran.
#[derive(Debug)]
pub(crate) struct DaemonCheck {
    pub(crate) report: CheckReport,
    /// Whether the user interrupted the check, so that the report covers only part of the files.
    pub(crate) interrupted: bool,
}

/// The options of `tenon serve`.
#[derive(Debug, Default)]
pub(crate) struct ServeOptions {
    pub(crate) http: bool,
    pub(crate) port: Option<u16>,
    pub(crate) flags: Vec<FlagSetting>,
}

/// The status of the daemon of `root`, or `None` if it is not running.
pub(crate) fn status(invocation: &Invocation, root: &Utf8Path) -> Result<Option<DaemonInfo>, Failure> {
    system::status(invocation, root)
}

/// Stops the daemon of `root`. Returns `false` if it was not running.
pub(crate) fn stop(invocation: &Invocation, root: &Utf8Path, force: bool) -> Result<bool, Failure> {
    system::stop(invocation, root, force)
}

/// Connects stdin and stdout to the daemon of `root`, starting it if necessary.
pub(crate) fn bridge(
    invocation: &mut Invocation,
    root: &Utf8Path,
    surfaces: Option<Vec<String>>,
) -> Result<Exit, Failure> {
    system::bridge(invocation, root, surfaces)
}

/// Starts the daemon of `root` if necessary, and checks that it answers MCP requests.
pub(crate) fn probe(invocation: &Invocation, root: &Utf8Path) -> Result<Probe, Failure> {
    system::probe(invocation, root)
}

/// Makes the daemon of `root` serve the console, starting it if necessary. Returns a link that signs a browser in, once.
pub(crate) fn console_link(invocation: &Invocation, root: &Utf8Path) -> Result<String, Failure> {
    system::console_link(invocation, root)
}

/// Waits until the running daemon's language servers have loaded the workspace, and returns their states.
pub(crate) fn warm_up(invocation: &Invocation, root: &Utf8Path) -> Result<Vec<ServerSummary>, Failure> {
    match request(invocation, root, DaemonRequest::WarmUp)? {
        DaemonResponse::List(servers) => Ok(servers),
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

/// Runs one definition and one diagnostics request per language through the running daemon.
pub(crate) fn prove(invocation: &Invocation, root: &Utf8Path) -> Result<Vec<LanguageProbe>, Failure> {
    match request(invocation, root, DaemonRequest::Probe)? {
        DaemonResponse::Probed(proofs) => Ok(proofs),
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

/// Sends a request about language servers to the running daemon.
pub(crate) fn request(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
) -> Result<DaemonResponse, Failure> {
    system::request(invocation, root, request)
}

/// Sends a request to the daemon of `root`, starting it if necessary.
pub(crate) fn request_or_start(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
    timeout: Duration,
) -> Result<DaemonResponse, Failure> {
    system::request_or_start(invocation, root, request, timeout)
}

/// Asks the daemon of `root`, starting it if necessary, for the diagnostics that edits of `files` caused.
///
/// Waits for `timeout` plus the user's `edit.wait_ms`.
pub(crate) fn edit_diagnostics(
    invocation: &Invocation,
    root: &Utf8Path,
    files: EditedFiles,
    timeout: Duration,
) -> Result<String, Failure> {
    report(invocation, root, timeout, |wait_ms| DaemonRequest::EditDiagnostics { files, wait_ms })
}

/// The same for all files that changed since the last report. With `only_new`, nothing unless some diagnostics are new.
pub(crate) fn change_diagnostics(
    invocation: &Invocation,
    root: &Utf8Path,
    only_new: bool,
    timeout: Duration,
) -> Result<String, Failure> {
    report(invocation, root, timeout, |wait_ms| DaemonRequest::ChangeDiagnostics { wait_ms, only_new })
}

fn report(
    invocation: &Invocation,
    root: &Utf8Path,
    timeout: Duration,
    request: impl FnOnce(u64) -> DaemonRequest,
) -> Result<String, Failure> {
    let wait_ms = invocation.workspace(root, vec![])?.config().edit.wait_ms;
    let timeout = timeout + Duration::from_millis(wait_ms);
    match system::request_or_start(invocation, root, request(wait_ms), timeout)? {
        DaemonResponse::EditDiagnostics(text) => Ok(text),
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

/// Checks files through the daemon of `root`. `None` if it is not running or has outdated settings.
pub(crate) fn check_files(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
) -> Option<DaemonCheck> {
    system::check_files(invocation, root, request)
}

/// Serves `root` in the foreground.
pub(crate) fn serve(
    invocation: &mut Invocation,
    root: &Utf8Path,
    serving: ServeOptions,
) -> Result<Exit, Failure> {
    system::serve(invocation, root, serving)
}

/// Runs the daemon of `root` in this process, detached from the process that started it.
pub(crate) fn run_daemon(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Exit {
    system::run_daemon(invocation, root, start_lock_held)
}

/// Serves `root` on stdin and stdout from this process, without a daemon.
pub(crate) fn serve_in_process(
    invocation: &Invocation,
    root: &Utf8Path,
    surfaces: Option<&[String]>,
) -> Result<Exit, Failure> {
    let workspace = invocation.workspace(root, vec![])?;
    tenon_server::log::to_stderr();
    let service = Service::new(workspace);
    let handler = service.handler(surfaces).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let stop = CancellationToken::new();
    block_on(async {
        let serving = service.serve_stream(stdio::stdin(), stdio::stdout(), handler, stop);
        let warming = async {
            service.warm_up().await;
            std::future::pending().await
        };
        let served = tokio::select! {
            served = serving => served,
            never = warming => never,
        };
        service.shutdown().await;
        served
    })??;
    Ok(Exit::Success)
}
