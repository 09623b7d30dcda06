//! Unix: the daemon process: accepts connections and serves them.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connected_clients::{ClientGuard, ConnectedClients};
use super::connection;
use super::daemon_paths::{DaemonPaths, own_uid};
use super::file_lock::FileLock;
use super::protocol::{
    self, ClientHello, ConnectionKind, DaemonInfo, DaemonRequest, HandshakeRejection, PROTOCOL,
    ReadLineError, RejectionCode, ServerHello,
};
use super::{BuildId, DaemonError};
use crate::service::Service;

/// How long to wait for a daemon that is exiting.
const LIFE_LOCK_PATIENCE: Duration = Duration::from_secs(15);

/// How long connected clients may take to finish when the daemon exits.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long to pause after a failed accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The listening socket of a workspace's daemon, with the life lock that makes it the only one.
#[derive(Debug)]
pub struct DaemonSocket {
    paths: DaemonPaths,
    listener: UnixListener,
    life: FileLock,
}

impl DaemonSocket {
    /// Takes the life lock and binds the socket, waiting for a daemon that is exiting. The caller, or the process that
    /// started it, holds the start lock, so a daemon that does not answer cannot be one that is starting.
    pub async fn take(paths: DaemonPaths) -> Result<Self, DaemonError> {
        let mut life = match FileLock::try_take(&paths.life_lock())? {
            Some(life) => life,
            None => match connection::connect(&paths, &ClientHello::new(ConnectionKind::Status)).await {
                Err(DaemonError::NotRunning) => {
                    let waited = FileLock::take(&paths.life_lock(), LIFE_LOCK_PATIENCE).await?;
                    waited.ok_or(DaemonError::Locked { seconds: LIFE_LOCK_PATIENCE.as_secs() })?
                }
                Ok(_) => return Err(DaemonError::AlreadyServed),
                Err(error) => return Err(error),
            },
        };
        life.note(&format!("{}\n", std::process::id()))?;
        Self::bind(paths, life)
    }

    fn bind(paths: DaemonPaths, life: FileLock) -> Result<Self, DaemonError> {
        let socket = paths.socket();
        // A leftover: its owner is dead, since we hold the life lock.
        match socket.symlink_metadata() {
            Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(&socket)?,
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, socket.into_string()).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { paths, listener, life })
    }
}

/// When a daemon exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitPolicy {
    /// After this time without clients.
    WhenIdle(Duration),
    /// Only at `stop` or a signal: it runs in the foreground.
    OnRequest,
}

/// A running daemon.
pub struct DaemonServer {
    service: Arc<Service>,
    build: BuildId,
    started_at: String,
    clients: ConnectedClients,
    stop: CancellationToken,
    http: Arc<Mutex<Option<String>>>,
    /// Connections that wait for the daemon to exit; they close when it has.
    farewell: Mutex<Vec<BufReader<UnixStream>>>,
}

impl DaemonServer {
    pub fn new(service: Service, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            started_at: service.workspace().clock().rfc3339(),
            service: Arc::new(service),
            build: BuildId::current(),
            clients: ConnectedClients::default(),
            stop,
            http: Arc::default(),
            farewell: Mutex::default(),
        })
    }

    /// Serves clients until the daemon exits. Everything it started has ended when this returns.
    ///
    /// Clients wait for the life lock to see that the daemon has ended, so hold it to the end of the process.
    #[must_use = "dropping the life lock signals that the process has ended"]
    pub async fn run(self: Arc<Self>, socket: DaemonSocket, exit_policy: ExitPolicy) -> FileLock {
        let DaemonSocket { paths, listener, life } = socket;
        let tasks = TaskTracker::new();
        let client = (exit_policy == ExitPolicy::OnRequest).then(|| self.clients.enter());
        tasks.spawn({
            let daemon = Arc::clone(&self);
            async move {
                let idle = match exit_policy {
                    ExitPolicy::WhenIdle(idle) => idle,
                    ExitPolicy::OnRequest => Duration::MAX,
                };
                daemon.clients.watch(idle, daemon.stop.clone()).await;
            }
        });
        // Starts after the socket is bound, so the first handshake does not wait for language servers.
        tasks.spawn({
            let daemon = Arc::clone(&self);
            async move {
                tokio::select! {
                    () = daemon.service.engine().warm_up() => {}
                    () = daemon.stop.cancelled() => {}
                }
            }
        });
        tracing::info!(root = %self.service.workspace().root(), pid = std::process::id(), "serving");
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let daemon = Arc::clone(&self);
                    tasks.spawn(async move { daemon.receive(stream).await });
                }
                Err(error) => {
                    // Usually out of file descriptors: a connection that closes frees one. Until then, do not spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        // From here on new clients find no socket; those in the queue see the connection close and start another daemon.
        self.clients.leave();
        let _ = std::fs::remove_file(paths.socket());
        drop(listener);
        drop(client);
        tasks.close();
        self.service.engine().shutdown().await;
        if tokio::time::timeout(FAREWELL, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "clients did not finish in time");
        }
        tracing::info!("ended");
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).clear();
        life
    }

    async fn receive(self: Arc<Self>, stream: UnixStream) {
        let Ok(peer) = stream.peer_cred() else { return };
        if peer.uid() != own_uid() {
            tracing::warn!(uid = peer.uid(), "rejected a connection of another user");
            return;
        }
        let mut stream = BufReader::with_capacity(4 * 1024, stream);
        let hello = tokio::select! {
            hello = protocol::read_line::<ClientHello>(&mut stream) => hello,
            () = self.stop.cancelled() => return,
        };
        let outcome = match hello {
            Ok(hello) => self.admit(hello, &mut stream).await,
            Err(ReadLineError::Malformed) => {
                Err(HandshakeRejection::new(RejectionCode::Malformed, "invalid handshake"))
            }
            Err(_) => return,
        };
        match outcome {
            Ok(Some(admitted)) => self.attend(admitted, stream).await,
            Ok(None) => {}
            Err(rejection) => {
                let _ = protocol::write_line(&mut stream, &ServerHello::Rejected(rejection)).await;
            }
        }
    }

    /// Answers the handshake and returns what the connection is for.
    async fn admit(
        &self,
        hello: ClientHello,
        stream: &mut BufReader<UnixStream>,
    ) -> Result<Option<Admitted>, HandshakeRejection> {
        if hello.tenon != PROTOCOL {
            let message = format!(
                "daemon version {} uses protocol {PROTOCOL}, not {}",
                env!("CARGO_PKG_VERSION"),
                hello.tenon
            );
            return Err(HandshakeRejection::new(RejectionCode::Protocol, message));
        }
        let leaving = || HandshakeRejection::new(RejectionCode::Leaving, "the daemon is exiting");
        let current = self.is_current().await;
        let admitted = match hello.want {
            ConnectionKind::Status => None,
            ConnectionKind::Stop => Some(Admitted::Stop),
            // A client that can start a daemon wants a current one.
            ConnectionKind::Servers(DaemonRequest::EditDiagnostics { .. })
            | ConnectionKind::Mcp { .. }
            | ConnectionKind::Http { .. }
                if self.must_leave(&hello.build, current) =>
            {
                return Err(leaving());
            }
            ConnectionKind::Servers(request) => {
                Some(Admitted::Servers { request, _client: self.clients.enter().ok_or_else(leaving)? })
            }
            ConnectionKind::Mcp { surfaces } => {
                let handler = self.service.handler(surfaces.as_deref());
                let handler = handler
                    .map_err(|error| HandshakeRejection::new(RejectionCode::Surface, error.to_string()))?;
                let client = self.clients.enter().ok_or_else(leaving)?;
                if self.clients.count() == 1 {
                    self.service.engine().reset_failures();
                }
                Some(Admitted::Mcp { handler, client })
            }
            ConnectionKind::Http { port } => {
                let bound = self.service.bind_http(port).await;
                let listener =
                    bound.map_err(|error| HandshakeRejection::new(RejectionCode::Http, chain(&error)))?;
                let client = self.clients.enter().ok_or_else(leaving)?;
                let address = listener.local_addr().map_err(|error| {
                    HandshakeRejection::new(RejectionCode::Http, format!("cannot determine port: {error}"))
                })?;
                self.set_http(Some(format!("http://{address}")));
                Some(Admitted::Http { listener, client })
            }
        };
        let welcomed = protocol::write_line(stream, &ServerHello::Welcome(self.welcome(current))).await;
        if welcomed.is_err() && !matches!(admitted, Some(Admitted::Stop)) {
            return Ok(None);
        }
        Ok(admitted)
    }

    /// Whether the daemon is outdated and idle; if so, it decides to exit.
    fn must_leave(&self, build: &str, current: bool) -> bool {
        (build != self.build.as_str() || !current) && self.clients.leave_if_idle()
    }

    /// Whether the settings and the trust decision on disk are still the ones being served.
    async fn is_current(&self) -> bool {
        let workspace = Arc::clone(self.service.workspace());
        // Reads files and hashes the pinned ones.
        tokio::task::spawn_blocking(move || workspace.is_current()).await.unwrap_or(false)
    }

    fn welcome(&self, current: bool) -> DaemonInfo {
        DaemonInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            root: self.service.workspace().root().to_owned(),
            started_at: self.started_at.clone(),
            clients: self.clients.count(),
            surfaces: self.service.surfaces().into_iter().map(str::to_owned).collect(),
            log: self.service.workspace().log_path(),
            http: self.http.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            outdated: !current,
        }
    }

    fn set_http(&self, address: Option<String>) {
        *self.http.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }

    async fn attend(&self, admitted: Admitted, stream: BufReader<UnixStream>) {
        match admitted {
            Admitted::Mcp { handler, client } => {
                tracing::info!(clients = self.clients.count(), "client connected");
                let (read, write) = tokio::io::split(stream);
                let served = self.service.serve_stream(read, write, handler, self.stop.clone()).await;
                drop(client);
                let error = served.err().map(|error| error.to_string());
                tracing::info!(clients = self.clients.count(), error, "client disconnected");
            }
            Admitted::Http { listener, client } => {
                tracing::info!(address = ?listener.local_addr().ok(), "serving HTTP");
                let (ended, mut stream) = (self.stop.child_token(), stream);
                let holder = async {
                    tokio::select! {
                        () = until_closed(&mut stream) => ended.cancel(),
                        () = ended.cancelled() => {}
                    }
                };
                tokio::join!(self.service.serve_http(listener, ended.clone()), holder);
                self.set_http(None);
                drop(client);
            }
            Admitted::Servers { request, .. } => {
                let mut stream = stream;
                let gone = CancellationToken::new();
                let running = self.service.engine().run(request, &gone);
                tokio::pin!(running);
                let done = tokio::select! {
                    done = &mut running => done,
                    // The client is gone; the request ends as early as it can.
                    () = until_closed(&mut stream) => {
                        gone.cancel();
                        running.await
                    }
                };
                let _ = protocol::write_line(&mut stream, &done).await;
            }
            Admitted::Stop => {
                self.farewell.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                self.clients.leave();
            }
        }
    }
}

enum Admitted {
    Mcp { handler: crate::mcp::Handler, client: ClientGuard },
    Http { listener: tokio::net::TcpListener, client: ClientGuard },
    Servers { request: DaemonRequest, _client: ClientGuard },
    Stop,
}

/// Reads and discards until the peer closes.
async fn until_closed(stream: &mut BufReader<UnixStream>) {
    let mut bytes = [0; 512];
    while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
