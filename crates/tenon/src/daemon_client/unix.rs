//! Unix: the daemon behind a socket.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use std::time::Duration;

use camino::Utf8Path;
use serde_json::{Value, json};
use tenon_server::bridge::{self, Ended};
use tenon_server::daemon::client::{self, Connection, Launch};
use tenon_server::daemon::folder::Place;
use tenon_server::daemon::hello::{Errand, ErrandDone, Hello, ServerLine, Want, Welcome};
use tenon_server::daemon::lock::Lock;
use tenon_server::daemon::serve::{Daemon, DaemonSocket, ExitPolicy};
use tenon_server::daemon::spawn::{self, START_DEADLINE, Started};
use tenon_server::daemon::{DaemonError, Stopped};
use tenon_server::service::Service;
use tenon_server::workspace::Workspace;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{DaemonCheck, Probe, ServeOptions};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::{Invocation, block_on};

/// How long a daemon may take for its first `tools/list`.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// How long threads that wait for the operating system may keep a daemon that has ended.
const LAST_THREADS: Duration = Duration::from_secs(1);

pub(super) fn status(invocation: &Invocation, root: &Utf8Path) -> Result<Option<Welcome>, Failure> {
    let place = Place::of(root, &invocation.environment)?;
    match block_on(client::connect(&place, &Hello::new(Want::Status)))? {
        Ok(connection) => Ok(Some(connection.welcome)),
        Err(DaemonError::NotRunning) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn stop(invocation: &Invocation, root: &Utf8Path, force: bool) -> Result<bool, Failure> {
    let place = Place::of(root, &invocation.environment)?;
    match block_on(client::stop(&place, force))?? {
        Stopped::Ended => Ok(true),
        Stopped::NotRunning => Ok(false),
    }
}

pub(super) fn bridge(
    invocation: &mut Invocation,
    root: &Utf8Path,
    surfaces: Option<Vec<String>>,
) -> Result<Exit, Failure> {
    let connection = block_on(connect_or_start(invocation, root, Want::Mcp { surfaces }))??;
    let log = connection.welcome.log.clone();
    let (early, stream) = connection.into_blocking()?;
    // The files behind stdin and stdout: their own buffers would only delay what passes.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    match bridge::pass(input, output, &early, stream)? {
        Ended::Served | Ended::AgentGone => Ok(Exit::Success),
        Ended::DaemonGone => Err(Failure::new(Exit::Daemon, "the daemon ended in the middle of the session")
            .hint(format!("connect again: the next `tenon mcp` starts a new one; the log is `{log}`"))),
    }
}

pub(super) fn probe(invocation: &Invocation, root: &Utf8Path) -> Result<Probe, Failure> {
    block_on(async {
        let connection = connect_or_start(invocation, root, Want::Mcp { surfaces: None }).await?;
        let welcome = connection.welcome.clone();
        let listed = tokio::time::timeout(PROBE_DEADLINE, list_tools(connection)).await;
        let silent = |_| DaemonError::Silent { seconds: PROBE_DEADLINE.as_secs(), pid: None };
        let tools = listed.map_err(silent)?.map_err(|error| {
            Failure::new(Exit::Daemon, "the daemon does not answer MCP").caused_by(error.to_string())
        })?;
        Ok(Probe { welcome, tools })
    })?
}

/// The handshake and `tools/list`, as any client does them.
async fn list_tools(connection: Connection) -> io::Result<Vec<String>> {
    let mut stream = connection.stream;
    let initialize = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tenon", "version": env!("CARGO_PKG_VERSION")},
    });
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let mut listed = Value::Null;
    for message in messages {
        stream.write_all(format!("{message}\n").as_bytes()).await?;
        if message.get("id").is_some() {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            listed = serde_json::from_str(&line)?;
        }
    }
    let tools = listed["result"]["tools"].as_array().ok_or_else(|| io::Error::other(listed.to_string()))?;
    Ok(tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect())
}

pub(super) fn warm_up(invocation: &Invocation, root: &Utf8Path) -> Result<Vec<ServerLine>, Failure> {
    match request(invocation, root, Errand::WarmUp)? {
        ErrandDone::List(servers) => Ok(servers),
        _ => Err(DaemonError::Unintelligible.into()),
    }
}

pub(super) fn request(
    invocation: &Invocation,
    root: &Utf8Path,
    errand: Errand,
) -> Result<ErrandDone, Failure> {
    let place = Place::of(root, &invocation.environment)?;
    into_result(block_on(client::run(&place, errand))??)
}

pub(super) fn request_or_start(
    invocation: &Invocation,
    root: &Utf8Path,
    errand: Errand,
    patience: Duration,
) -> Result<ErrandDone, Failure> {
    let place = Place::of(root, &invocation.environment)?;
    let asked = async {
        let running = client::run_or_start(&place, errand, || launch(invocation, root));
        let silent = |_| DaemonError::Silent { seconds: patience.as_secs(), pid: None };
        tokio::time::timeout(patience, running).await.map_err(silent)?
    };
    into_result(block_on(asked)??)
}

pub(super) fn check_files(invocation: &Invocation, root: &Utf8Path, errand: Errand) -> Option<DaemonCheck> {
    let place = Place::of(root, &invocation.environment).ok()?;
    let asked = async {
        // Before anything is asked, so that no interrupt comes too early.
        let mut interrupts = signal(SignalKind::interrupt())?;
        let status = client::connect(&place, &Hello::new(Want::Status)).await?;
        if status.welcome.outdated {
            return Err(DaemonError::NotRunning);
        }
        let mut interrupted = false;
        let enough = async {
            interrupts.recv().await;
            interrupted = true;
        };
        let done = client::run_until(&place, errand, enough).await?;
        Ok((done, interrupted))
    };
    match block_on(asked).ok()? {
        Ok((ErrandDone::Checked(report), interrupted)) => Some(DaemonCheck { report, interrupted }),
        Ok(_) | Err(_) => None,
    }
}

fn into_result(done: ErrandDone) -> Result<ErrandDone, Failure> {
    match done {
        ErrandDone::Failed(why) => Err(Failure::new(Exit::Config, why)),
        done => Ok(done),
    }
}

async fn connect_or_start(
    invocation: &Invocation,
    root: &Utf8Path,
    want: Want,
) -> Result<Connection, Failure> {
    let place = Place::of(root, &invocation.environment)?;
    client::connect_or_start(&place, &Hello::new(want), || launch(invocation, root)).await
}

/// How the daemon of `root` is started.
fn launch(invocation: &Invocation, root: &Utf8Path) -> Result<Launch, Failure> {
    // A mistake in the settings is told here, with its line, rather than by a daemon that does not come up.
    invocation.workspace(root, vec![])?;
    let mut program = Command::new(own_program()?);
    program.args(["daemon", "--start-lock-held", "--root"]).arg(root);
    Ok(Launch { program, environment: spawn::environment(&invocation.environment, root) })
}

/// The program that runs here, even if its file has been replaced since it started.
fn own_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

pub(super) fn serve(
    invocation: &mut Invocation,
    root: &Utf8Path,
    serving: ServeOptions,
) -> Result<Exit, Failure> {
    let workspace = invocation.workspace(root, serving.flags)?;
    let place = Place::of(root, &invocation.environment)?;
    let _life = run_to_completion(async {
        let stop = stop_on_signals()?;
        let starting = Lock::take(&place.start_lock(), START_DEADLINE).await?;
        let running = match DaemonSocket::take(place.clone()).await {
            Ok(socket) => {
                start_log(&workspace);
                let daemon = Daemon::new(Service::new(workspace), stop.clone());
                Some(tokio::spawn(daemon.run(socket, ExitPolicy::OnRequest)))
            }
            // HTTP can be had from the daemon that is there; everything else is there already.
            Err(DaemonError::AlreadyServed) if serving.http => None,
            Err(error) => return Err(error.into()),
        };
        drop(starting);
        let words = if running.is_some() { "serving" } else { "joined the daemon of" };
        invocation.eprint(format!("{words} {root}; end with Ctrl-C"));
        let attended = match serving.http {
            true => keep_http_open(invocation, &place, serving.port, &stop).await,
            false => Ok(()),
        };
        if attended.is_err() {
            stop.cancel();
        }
        let life = match running {
            Some(running) => {
                Some(running.await.map_err(|_| Failure::new(Exit::Internal, "the server panicked"))?)
            }
            None => None,
        };
        attended.map(|()| life)
    })??;
    Ok(Exit::Success)
}

/// Has the daemon serve HTTP, and says where, until `stop` or the daemon's end.
async fn keep_http_open(
    invocation: &mut Invocation,
    place: &Place,
    port: Option<u16>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let held = client::connect(place, &Hello::new(Want::Http { port })).await?;
    let address = held.welcome.http.clone().unwrap_or_default();
    invocation.eprint("clients send `Authorization: Bearer …`; `tenon token show` prints a token");
    invocation.print(format!("{address}/mcp"))?;
    tokio::select! {
        _ = held.closed() => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}

pub(super) fn run_daemon(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Exit {
    let detached = spawn::detach().map_err(Failure::from);
    match detached.and_then(|()| serve_detached(invocation, root, start_lock_held)) {
        Ok(()) => Exit::Success,
        Err(failure) => {
            let _ = spawn::announce(&Started::Failed(failure.to_string()));
            failure.exit
        }
    }
}

fn serve_detached(invocation: &Invocation, root: &Utf8Path, start_lock_held: bool) -> Result<(), Failure> {
    let workspace = invocation.workspace(root, vec![])?;
    let place = Place::of(root, &invocation.environment)?;
    start_log(&workspace);
    let _life = run_to_completion(async {
        let stop = stop_on_signals()?;
        let starting = match start_lock_held {
            true => None,
            false => Lock::take(&place.start_lock(), START_DEADLINE).await?,
        };
        let socket = DaemonSocket::take(place).await?;
        let exit_policy = ExitPolicy::WhenIdle(workspace.config().daemon.idle);
        let daemon = Daemon::new(Service::new(workspace), stop);
        spawn::announce(&Started::Ready)?;
        drop(starting);
        Ok::<_, Failure>(daemon.run(socket, exit_policy).await)
    })??;
    Ok(())
}

/// Runs a daemon to its end. Threads: enough to keep answering while one is busy, few enough to be small.
fn run_to_completion<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(cores.clamp(2, 4)).enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_THREADS);
    Ok(done)
}

fn start_log(workspace: &Workspace) {
    let settings = &workspace.config().log;
    let file = tenon_server::log::open(workspace.log_path(), settings);
    tenon_server::log::to_file(file, settings.level, workspace.clock().clone());
}

/// A token that is cancelled when somebody asks this process to end.
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
