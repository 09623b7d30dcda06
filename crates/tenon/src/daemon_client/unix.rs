//! Unix: the daemon listens on a socket.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use camino::Utf8Path;
use tenon_console::Console;
use tenon_server::bridge::{self, BridgeEnd, Heartbeat};
use tenon_server::config::FlagSetting;
use tenon_server::daemon::client_settings::ClientSettings;
use tenon_server::daemon::connection::{self, DaemonCommand, DaemonConnection};
use tenon_server::daemon::daemon_paths::DaemonPaths;
use tenon_server::daemon::daemon_server::{DaemonServer, DaemonSocket, ExitPolicy};
use tenon_server::daemon::file_lock::FileLock;
use tenon_server::daemon::protocol::{
    ClientHello, ConnectionKind, DaemonInfo, DaemonRequest, DaemonResponse,
};
use tenon_server::daemon::start::{self, START_DEADLINE, StartReport};
use tenon_server::daemon::tool_list::list_tools;
use tenon_server::daemon::{DaemonError, StopOutcome};
use tenon_server::service::Service;
use tenon_server::workspace::Workspace;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{DaemonCheck, Probe, ServeOptions};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// The time limit for blocked threads to finish when the daemon exits.
const THREAD_SHUTDOWN: Duration = Duration::from_secs(1);

pub(super) fn status(invocation: &Invocation, root: &Utf8Path) -> Result<Option<DaemonInfo>, Failure> {
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    match block_on(connection::connect(&paths, &ClientHello::new(ConnectionKind::Status)))? {
        Ok(connection) => Ok(Some(connection.welcome)),
        Err(DaemonError::NotRunning) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn stop(invocation: &Invocation, root: &Utf8Path, force: bool) -> Result<bool, Failure> {
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    match block_on(connection::stop(&paths, force))?? {
        StopOutcome::Ended => Ok(true),
        StopOutcome::NotRunning => Ok(false),
    }
}

pub(super) fn bridge(
    invocation: &mut Invocation,
    root: &Utf8Path,
    surfaces: Option<Vec<String>>,
) -> Result<Exit, Failure> {
    let connection = block_on(connect_or_start(invocation, root, ConnectionKind::Mcp { surfaces }))??;
    let log = connection.welcome.log.clone();
    let deferred = connection.welcome.deferred_settings.join(", ");
    if !deferred.is_empty() {
        invocation.eprint(format!("warning: the running daemon has other settings: {deferred}"));
        invocation
            .eprint("  hint: they change no answer; run `tenon restart` when its other clients are done");
    }
    let (early, stream) = connection.into_blocking()?;
    // Unbuffered: the standard handles' buffers would only delay messages.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    let heartbeat = Heartbeat::new(move || block_on(connection::is_alive(&paths)).unwrap_or(true));
    match bridge::pass(input, output, &early, stream, heartbeat)? {
        BridgeEnd::DaemonSilent => Err(Failure::new(Exit::Daemon, "the daemon is stopped or hangs")
            .hint("run `tenon stop --force` to kill it, then reconnect")
            .hint(format!("its log is `{log}`"))),
        BridgeEnd::Served | BridgeEnd::AgentGone => Ok(Exit::Success),
        BridgeEnd::DaemonGone => Err(Failure::new(Exit::Daemon, "the daemon exited during the session")
            .hint(format!("reconnect to start a new daemon; its log is `{log}`"))),
    }
}

pub(super) fn probe(invocation: &Invocation, root: &Utf8Path) -> Result<Probe, Failure> {
    block_on(async {
        let connection = connect_or_start(invocation, root, ConnectionKind::Mcp { surfaces: None }).await?;
        let daemon = connection.welcome.clone();
        let tools = list_tools(connection).await?;
        Ok(Probe { daemon, tools })
    })?
}

pub(super) fn console_link(invocation: &Invocation, root: &Utf8Path) -> Result<String, Failure> {
    let connection = block_on(connect_or_start(invocation, root, ConnectionKind::Console))??;
    connection.welcome.console.ok_or_else(|| DaemonError::InvalidResponse.into())
}

pub(super) fn request(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
) -> Result<DaemonResponse, Failure> {
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    let settings = settings(invocation, &[])?;
    into_result(block_on(connection::run(&paths, request, settings))??)
}

pub(super) fn request_or_start(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
    timeout: Duration,
) -> Result<DaemonResponse, Failure> {
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    let settings = settings(invocation, &[])?;
    let response = async {
        let running = connection::run_or_start(&paths, request, settings, || launch(invocation, root));
        let no_answer = |_| DaemonError::Timeout { seconds: timeout.as_secs(), pid: None };
        tokio::time::timeout(timeout, running).await.map_err(no_answer)?
    };
    into_result(block_on(response)??)
}

pub(super) fn check_files(
    invocation: &Invocation,
    root: &Utf8Path,
    request: DaemonRequest,
) -> Option<DaemonCheck> {
    let paths = DaemonPaths::of(root, &invocation.environment).ok()?;
    let settings = settings(invocation, &[]).ok()?;
    let response = async {
        // Registered first: an interrupt before that would end the process.
        let mut interrupts = signal(SignalKind::interrupt())?;
        let status = connection::connect(&paths, &ClientHello::new(ConnectionKind::Status)).await?;
        if status.welcome.outdated {
            return Err(DaemonError::NotRunning);
        }
        let mut interrupted = false;
        let interrupt = async {
            interrupts.recv().await;
            interrupted = true;
        };
        let response = connection::run_until(&paths, request, settings, interrupt).await?;
        Ok((response, interrupted))
    };
    match block_on(response).ok()? {
        Ok((DaemonResponse::Checked(report), interrupted)) => Some(DaemonCheck { report, interrupted }),
        Ok(_) | Err(_) => None,
    }
}

/// Turns a response that reports a failure into an error.
fn into_result(response: DaemonResponse) -> Result<DaemonResponse, Failure> {
    match response {
        DaemonResponse::Failed(reason) => Err(Failure::new(Exit::Config, reason)),
        response => Ok(response),
    }
}

async fn connect_or_start(
    invocation: &Invocation,
    root: &Utf8Path,
    want: ConnectionKind,
) -> Result<DaemonConnection, Failure> {
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    let hello = ClientHello::with_settings(want, settings(invocation, &[])?);
    connection::connect_or_start(&paths, &hello, || launch(invocation, root)).await
}

/// The settings that the environment and `flags` make: the daemon honours them or rejects the connection.
fn settings(invocation: &Invocation, flags: &[FlagSetting]) -> Result<ClientSettings, Failure> {
    Ok(ClientSettings::of(&invocation.environment, &invocation.dirs()?, flags)?)
}

/// The command that starts the daemon of `root`.
fn launch(invocation: &Invocation, root: &Utf8Path) -> Result<DaemonCommand, Failure> {
    // Reports invalid settings here, with their line, instead of a daemon that fails to start.
    invocation.workspace(root, vec![])?;
    let mut program = Command::new(current_program()?);
    program.args(["daemon", "--start-lock-held", "--root"]).arg(root);
    Ok(DaemonCommand { program, environment: start::environment(&invocation.environment, root) })
}

/// The running program, even if its file has been replaced since it started.
fn current_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

pub(super) fn serve(
    invocation: &mut Invocation,
    root: &Utf8Path,
    serving: ServeOptions,
) -> Result<Exit, Failure> {
    let settings = settings(invocation, &serving.flags)?;
    let workspace = invocation.workspace(root, serving.flags)?;
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    let _life = run_to_completion(async {
        let stop = stop_on_signals()?;
        let starting = FileLock::take(&paths.start_lock(), START_DEADLINE).await?;
        let running = match DaemonSocket::take(paths.clone()).await {
            Ok(socket) => {
                start_log(&workspace);
                let daemon =
                    DaemonServer::new(Service::new(workspace), |access| Console::new(access), stop.clone());
                Some(tokio::spawn(daemon.run(socket, ExitPolicy::OnRequest)))
            }
            // The running daemon can serve HTTP for us.
            Err(DaemonError::AlreadyServed) if serving.http => None,
            Err(error) => return Err(error.into()),
        };
        drop(starting);
        let status = if running.is_some() { "serving" } else { "using the running daemon for" };
        invocation.eprint(format!("{status} {root}; press Ctrl-C to stop"));
        let served = match serving.http {
            true => keep_http_open(invocation, &paths, serving.port, settings, &stop).await,
            false => Ok(()),
        };
        if served.is_err() {
            stop.cancel();
        }
        let life = match running {
            Some(running) => {
                Some(running.await.map_err(|_| Failure::new(Exit::Internal, "the daemon task panicked"))?)
            }
            None => None,
        };
        served.map(|()| life)
    })??;
    Ok(Exit::Success)
}

/// Makes the daemon serve HTTP until `stop` is cancelled or the daemon exits, and prints the address.
async fn keep_http_open(
    invocation: &mut Invocation,
    paths: &DaemonPaths,
    port: Option<u16>,
    settings: ClientSettings,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let hello = ClientHello::with_settings(ConnectionKind::Http { port }, settings);
    let held = connection::connect(paths, &hello).await?;
    let address = held.welcome.http.clone().unwrap_or_default();
    invocation.eprint("clients must send `Authorization: Bearer TOKEN`; `tenon token show` prints a token");
    invocation.print(format!("{address}/mcp"))?;
    tokio::select! {
        _ = held.closed() => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}

pub(super) fn run_daemon(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Exit {
    let detached = start::detach().map_err(Failure::from);
    match detached.and_then(|()| serve_detached(invocation, root, start_lock_held)) {
        Ok(()) => Exit::Success,
        Err(failure) => {
            let _ = start::announce(&StartReport::Failed(failure.to_string()));
            failure.exit
        }
    }
}

fn serve_detached(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Result<(), Failure> {
    let workspace = invocation.workspace(root, vec![])?;
    let paths = DaemonPaths::of(root, &invocation.environment)?;
    start_log(&workspace);
    let _life = run_to_completion(async {
        let stop = stop_on_signals()?;
        let starting = match start_lock_held {
            true => None,
            false => FileLock::take(&paths.start_lock(), START_DEADLINE).await?,
        };
        let socket = DaemonSocket::take(paths).await?;
        let exit_policy = ExitPolicy::WhenIdle(workspace.config().daemon.idle);
        let daemon = DaemonServer::new(Service::new(workspace), |access| Console::new(access), stop);
        start::announce(&StartReport::Ready)?;
        drop(starting);
        Ok::<_, Failure>(daemon.run(socket, exit_policy).await)
    })??;
    Ok(())
}

/// Runs a daemon until it exits. Two to four worker threads: it keeps answering while one is busy, and stays small.
fn run_to_completion<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(cores.clamp(2, 4)).enable_all().build()?;
    let output = runtime.block_on(work);
    runtime.shutdown_timeout(THREAD_SHUTDOWN);
    Ok(output)
}

fn start_log(workspace: &Workspace) {
    let settings = &workspace.config().log;
    let file = tenon_server::log::open(workspace.log_path(), settings, workspace.clock().clone());
    tenon_server::log::to_file(file, settings.level, workspace.clock().clone());
}

/// A token that is cancelled by SIGINT, SIGTERM or SIGHUP.
fn stop_on_signals() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}
