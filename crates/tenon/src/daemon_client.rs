//! Between commands and the daemon: find it, start it, be it.
//!
//! Systems without unix sockets have no daemon yet; there, `tenon mcp` serves in its own process and the commands about the
//! daemon say so.

#[cfg(not(unix))]
#[path = "daemon_client/non_unix.rs"]
mod system;
#[cfg(unix)]
#[path = "daemon_client/unix.rs"]
mod system;

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_lsp::workspace_check::Report;
use tenon_server::config::Flag;
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::hello::{Errand, ErrandDone, Proof, ServerLine, Welcome};
use tenon_server::service::Service;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// What a daemon answered to a real `tools/list`.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) welcome: Welcome,
    pub(crate) tools: Vec<String>,
}

/// What a daemon's servers said about files.
#[derive(Debug)]
pub(crate) struct DaemonCheck {
    pub(crate) report: Report,
    /// Whether the person at the terminal did not want to wait for all of it.
    pub(crate) interrupted: bool,
}

/// What a foreground server is told.
#[derive(Debug, Default)]
pub(crate) struct ServeOptions {
    pub(crate) http: bool,
    pub(crate) port: Option<u16>,
    pub(crate) flags: Vec<Flag>,
}

/// How the daemon of `root` is; `None` when there is none.
pub(crate) fn status(invocation: &Invocation, root: &Utf8Path) -> Result<Option<Welcome>, Failure> {
    system::status(invocation, root)
}

/// Ends the daemon of `root`; `false` when there is none.
pub(crate) fn stop(invocation: &Invocation, root: &Utf8Path, force: bool) -> Result<bool, Failure> {
    system::stop(invocation, root, force)
}

/// Connects stdin and stdout with the daemon of `root`, which is started if need be.
pub(crate) fn bridge(
    invocation: &mut Invocation,
    root: &Utf8Path,
    surfaces: Option<Vec<String>>,
) -> Result<Exit, Failure> {
    system::bridge(invocation, root, surfaces)
}

/// Makes sure that the daemon of `root` runs and answers.
pub(crate) fn probe(invocation: &Invocation, root: &Utf8Path) -> Result<Probe, Failure> {
    system::probe(invocation, root)
}

/// Waits until the language servers of the running daemon have loaded the workspace. How they are then.
pub(crate) fn warm_up(invocation: &Invocation, root: &Utf8Path) -> Result<Vec<ServerLine>, Failure> {
    system::warm_up(invocation, root)
}

/// Has the language servers of the running daemon answer, one question of each kind for each language.
pub(crate) fn prove(invocation: &Invocation, root: &Utf8Path) -> Result<Vec<Proof>, Failure> {
    match request(invocation, root, Errand::Prove)? {
        ErrandDone::Proved(proofs) => Ok(proofs),
        _ => Err(DaemonError::Unintelligible.into()),
    }
}

/// Has the running daemon do something about its language servers.
pub(crate) fn request(
    invocation: &Invocation,
    root: &Utf8Path,
    errand: Errand,
) -> Result<ErrandDone, Failure> {
    system::request(invocation, root, errand)
}

/// Has the daemon of `root`, which is started if need be, tell what changes to files led to, within `patience` and what the
/// user waits for other files.
pub(crate) fn edit_diagnostics(
    invocation: &Invocation,
    root: &Utf8Path,
    files: Vec<Utf8PathBuf>,
    patience: Duration,
) -> Result<String, Failure> {
    let wait_ms = invocation.workspace(root, vec![])?.config().edit.wait_ms;
    let patience = patience + Duration::from_millis(wait_ms);
    match system::request_or_start(invocation, root, Errand::Aftermath { files, wait_ms }, patience)? {
        ErrandDone::Aftermath(text) => Ok(text),
        _ => Err(DaemonError::Unintelligible.into()),
    }
}

/// Has the daemon of `root` check files, if one runs that knows the settings of today. `None` when none can.
pub(crate) fn check_files(invocation: &Invocation, root: &Utf8Path, errand: Errand) -> Option<DaemonCheck> {
    system::check_files(invocation, root, errand)
}

/// Serves `root` in the foreground.
pub(crate) fn serve(
    invocation: &mut Invocation,
    root: &Utf8Path,
    serving: ServeOptions,
) -> Result<Exit, Failure> {
    system::serve(invocation, root, serving)
}

/// Is the daemon of `root`, detached from whoever started it.
pub(crate) fn run_daemon(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Exit {
    system::run_daemon(invocation, root, start_lock_held)
}

/// Serves `root` on stdin and stdout in this process, without a daemon.
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
        let serving = service.serve_stream(tokio::io::stdin(), tokio::io::stdout(), handler, stop);
        let warming = async {
            service.engine().warm_up().await;
            std::future::pending().await
        };
        let served = tokio::select! {
            served = serving => served,
            never = warming => never,
        };
        service.engine().shutdown().await;
        served
    })??;
    Ok(Exit::Success)
}
