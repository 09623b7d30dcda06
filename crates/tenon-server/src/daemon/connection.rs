//! Unix: a client's connection to its daemon.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::Command;
use std::time::Duration;

use camino::Utf8Path;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::UCred;
use tokio::time::Instant;

use super::client_settings::ClientSettings;
use super::daemon_paths::{DaemonPaths, own_uid};
use super::file_lock::FileLock;
use super::life_holder::LifeHolder;
use super::protocol::{
    self, ClientHello, ConnectionKind, DaemonInfo, DaemonRequest, DaemonResponse, ReadLineError,
    RejectionCode, ServerHello,
};
use super::start;
use super::{DaemonError, StopOutcome};
use crate::engine::STEP_CHECKS;

/// How long to wait for another client that is starting the daemon.
const START_LOCK_PATIENCE: Duration = Duration::from_secs(40);

/// How long a daemon that holds its lock may take to open a socket or to end.
pub(super) const SOCKET_PATIENCE: Duration = Duration::from_secs(15);

/// How long to wait before looking for that socket again.
const SOCKET_AGAIN: Duration = Duration::from_millis(50);

/// How long language servers may take to load a workspace. The daemon itself gives up earlier.
const WARM_UP_PATIENCE: Duration = Duration::from_secs(660);

/// How long an answer to a question by symbol name may take.
const EXPLORE_PATIENCE: Duration = Duration::from_secs(90);

/// How long the daemon may take to report the diagnostics of an edit. Its own limit is a little shorter.
const EDIT_DIAGNOSTICS_PATIENCE: Duration = Duration::from_secs(13);

/// How long a daemon may take to exit.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// How long it may take before it is killed with `force`.
const FORCE_PATIENCE: Duration = Duration::from_secs(2);

/// How often to retry when the daemon exits while we connect.
const ATTEMPTS: usize = 5;

/// An open connection after the handshake.
#[derive(Debug)]
pub struct DaemonConnection {
    pub stream: BufReader<UnixStream>,
    pub welcome: DaemonInfo,
}

impl DaemonConnection {
    /// The bytes that came with the handshake, and the stream after them, for use without a runtime.
    pub fn into_blocking(self) -> std::io::Result<(Vec<u8>, BlockingStream)> {
        let early = self.stream.buffer().to_vec();
        let stream = self.stream.into_inner().into_std()?;
        stream.set_nonblocking(false)?;
        Ok((early, stream))
    }

    /// Waits until the daemon closes the connection.
    pub async fn closed(mut self) -> std::io::Result<()> {
        tokio::io::copy_buf(&mut self.stream, &mut tokio::io::sink()).await.map(drop)
    }
}

/// Sends a request about language servers to the running daemon.
pub async fn run(
    paths: &DaemonPaths,
    request: DaemonRequest,
    settings: ClientSettings,
) -> Result<DaemonResponse, DaemonError> {
    run_until(paths, request, settings, std::future::pending()).await
}

/// As [`run`]. When `enough` completes, the daemon answers with what it has.
pub async fn run_until(
    paths: &DaemonPaths,
    request: DaemonRequest,
    settings: ClientSettings,
    enough: impl Future<Output = ()>,
) -> Result<DaemonResponse, DaemonError> {
    let patience = patience(&request);
    let hello = ClientHello::with_settings(ConnectionKind::Servers(request), settings);
    let connection = connect(paths, &hello).await?;
    answer(connection, patience, enough).await
}

/// As [`run`], starting the daemon if needed.
pub async fn run_or_start<E: From<DaemonError>>(
    paths: &DaemonPaths,
    request: DaemonRequest,
    settings: ClientSettings,
    launch: impl FnMut() -> Result<DaemonCommand, E>,
) -> Result<DaemonResponse, E> {
    let patience = patience(&request);
    let hello = ClientHello::with_settings(ConnectionKind::Servers(request), settings);
    let connection = connect_or_start(paths, &hello, launch).await?;
    Ok(answer(connection, patience, std::future::pending()).await?)
}

fn patience(request: &DaemonRequest) -> Duration {
    match request {
        DaemonRequest::WarmUp | DaemonRequest::Probe => WARM_UP_PATIENCE,
        DaemonRequest::EditDiagnostics { wait_ms, .. } | DaemonRequest::ChangeDiagnostics { wait_ms, .. } => {
            EDIT_DIAGNOSTICS_PATIENCE + Duration::from_millis(*wait_ms)
        }
        DaemonRequest::Check { wait_seconds, .. } | DaemonRequest::CheckNew { wait_seconds, .. } => {
            Duration::from_secs(*wait_seconds) + protocol::DEADLINE
        }
        DaemonRequest::StepChecks(_) => STEP_CHECKS + protocol::DEADLINE,
        DaemonRequest::Explore(_) | DaemonRequest::Ask { .. } | DaemonRequest::Pack(_) => EXPLORE_PATIENCE,
        DaemonRequest::List | DaemonRequest::Restart { .. } | DaemonRequest::Logs { .. } => {
            protocol::DEADLINE
        }
    }
}

async fn answer(
    connection: DaemonConnection,
    patience: Duration,
    enough: impl Future<Output = ()>,
) -> Result<DaemonResponse, DaemonError> {
    let (read, mut write) = tokio::io::split(connection.stream);
    let mut read = BufReader::new(read);
    let answer = protocol::read_answer(&mut read, patience);
    tokio::pin!(answer);
    let done = tokio::select! {
        done = &mut answer => done,
        () = enough => {
            // Closing our side tells the daemon to stop waiting.
            write.shutdown().await?;
            answer.await
        }
    };
    done.map_err(|error| match error {
        ReadLineError::Io(error) => DaemonError::Io(error),
        ReadLineError::Late => {
            DaemonError::Timeout { seconds: patience.as_secs(), pid: connection.welcome.pid.try_into().ok() }
        }
        ReadLineError::Closed | ReadLineError::Malformed => DaemonError::InvalidResponse,
    })
}

/// How to start a daemon.
pub struct DaemonCommand {
    pub program: Command,
    pub environment: BTreeMap<String, String>,
}

/// Connects to a running daemon.
pub async fn connect(paths: &DaemonPaths, hello: &ClientHello) -> Result<DaemonConnection, DaemonError> {
    for _ in 0..ATTEMPTS {
        match attempt(paths, hello).await? {
            Attempt::Connected(connection) => return Ok(*connection),
            Attempt::NotRunning => return Err(DaemonError::NotRunning),
            Attempt::Leaving => {}
        }
    }
    Err(DaemonError::NotRunning)
}

/// Whether the daemon runs: `false` only if it accepts a connection and does not answer. One that is gone ends its
/// connections itself.
pub async fn is_alive(paths: &DaemonPaths) -> bool {
    let answered = attempt(paths, &ClientHello::new(ConnectionKind::Ping)).await;
    !matches!(answered, Err(DaemonError::Timeout { .. }))
}

/// Connects to the daemon, starting it if needed. `launch` is called once per start.
pub async fn connect_or_start<E: From<DaemonError>>(
    paths: &DaemonPaths,
    hello: &ClientHello,
    mut launch: impl FnMut() -> Result<DaemonCommand, E>,
) -> Result<DaemonConnection, E> {
    for _ in 0..ATTEMPTS {
        if let Attempt::Connected(connection) = attempt(paths, hello).await? {
            return Ok(*connection);
        }
        let locked =
            FileLock::take(&paths.start_lock(), START_LOCK_PATIENCE).await.map_err(DaemonError::from)?;
        let _starting = locked.ok_or(DaemonError::Locked { seconds: START_LOCK_PATIENCE.as_secs() })?;
        match attempt(paths, hello).await? {
            Attempt::Connected(connection) => return Ok(*connection),
            Attempt::NotRunning | Attempt::Leaving => {
                let DaemonCommand { program, environment } = launch()?;
                start::start(program, environment).await?;
            }
        }
        if let Attempt::Connected(connection) = attempt(paths, hello).await? {
            return Ok(*connection);
        }
    }
    Err(DaemonError::Start("daemon exits immediately after starting".to_owned()).into())
}

/// Stops the daemon and waits until its process has ended. With `force`, a daemon that does not end in time is killed.
pub async fn stop(paths: &DaemonPaths, force: bool) -> Result<StopOutcome, DaemonError> {
    let polite = async {
        let connection = connect(paths, &ClientHello::new(ConnectionKind::Stop)).await?;
        Ok(connection.closed().await?)
    };
    let patience = if force { FORCE_PATIENCE } else { STOP_PATIENCE };
    let pid = daemon_pid(paths).await?;
    match tokio::time::timeout(patience, polite).await {
        Ok(Err(DaemonError::NotRunning)) => return Ok(StopOutcome::NotRunning),
        Ok(asked) if !force => asked?,
        Err(_) if !force => return Err(DaemonError::Timeout { seconds: patience.as_secs(), pid }),
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => {
            // It may have ended in the meantime.
            if let Some(pid) = pid {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
    // The connection closes just before the process ends; the lock is released only when it has.
    match FileLock::take(paths.life_lock(), STOP_PATIENCE).await? {
        Some(_) => Ok(StopOutcome::Ended),
        None => Err(DaemonError::Locked { seconds: STOP_PATIENCE.as_secs() }),
    }
}

/// The pid of the daemon: of the peer process, from the kernel, or of the holder of the life lock.
async fn daemon_pid(paths: &DaemonPaths) -> Result<Option<i32>, DaemonError> {
    let socket = paths.socket();
    match UnixStream::connect(&socket).await {
        Ok(stream) => Ok(own(&stream, &socket)?.pid()),
        Err(_) => {
            let holder = LifeHolder::find(paths.life_lock())?;
            Ok(holder.and_then(|holder| holder.verified_pid(paths.life_lock())))
        }
    }
}

/// The credentials of the peer, which must belong to the same user.
fn own(stream: &UnixStream, socket: &Utf8Path) -> Result<UCred, DaemonError> {
    let peer = stream.peer_cred()?;
    match peer.uid() == own_uid() {
        true => Ok(peer),
        false => Err(DaemonError::OtherOwner { socket: socket.to_owned() }),
    }
}

enum Attempt {
    Connected(Box<DaemonConnection>),
    NotRunning,
    /// The daemon has exited or is exiting.
    Leaving,
}

/// Connects to the socket. If no process listens there although the life lock is held, waits until the holder has opened a
/// socket or has ended.
async fn attempt(paths: &DaemonPaths, hello: &ClientHello) -> Result<Attempt, DaemonError> {
    let socket = paths.socket();
    let mut connected = attempt_at(&socket, hello).await?;
    let deadline = Instant::now() + SOCKET_PATIENCE;
    while let Attempt::NotRunning = connected {
        let Some(holder) = LifeHolder::find(paths.life_lock())? else { return Ok(Attempt::NotRunning) };
        connected = attempt_at(&socket, hello).await?;
        if let (Attempt::NotRunning, Some(noted)) = (&connected, &holder.socket) {
            connected = attempt_at(noted, hello).await?;
        }
        if let Attempt::NotRunning = connected {
            if Instant::now() >= deadline {
                return Err(DaemonError::NoSocket { socket, seconds: SOCKET_PATIENCE.as_secs() });
            }
            tokio::time::sleep(SOCKET_AGAIN).await;
        }
    }
    Ok(connected)
}

async fn attempt_at(socket: &Utf8Path, hello: &ClientHello) -> Result<Attempt, DaemonError> {
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) => {
            use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
            return match error.kind() {
                ConnectionRefused | NotFound => Ok(Attempt::NotRunning),
                // The daemon closed the socket while we connected.
                ConnectionReset => Ok(Attempt::Leaving),
                _ => Err(error.into()),
            };
        }
    };
    let peer = own(&stream, socket)?;
    let mut stream = BufReader::new(stream);
    // A daemon that exits now breaks or closes the pipe.
    if protocol::write_line(&mut stream, hello).await.is_err() {
        return Ok(Attempt::Leaving);
    }
    match protocol::read_line::<ServerHello>(&mut stream).await {
        Ok(ServerHello::Welcome(welcome)) => {
            Ok(Attempt::Connected(Box::new(DaemonConnection { stream, welcome })))
        }
        Ok(ServerHello::Rejected(rejection)) if rejection.code == RejectionCode::Leaving => {
            Ok(Attempt::Leaving)
        }
        Ok(ServerHello::Rejected(rejection)) => Err(DaemonError::Rejected(rejection)),
        Err(ReadLineError::Closed | ReadLineError::Io(_)) => Ok(Attempt::Leaving),
        Err(ReadLineError::Malformed) => Err(DaemonError::InvalidResponse),
        Err(ReadLineError::Late) => {
            Err(DaemonError::Timeout { seconds: protocol::DEADLINE.as_secs(), pid: peer.pid() })
        }
    }
}
