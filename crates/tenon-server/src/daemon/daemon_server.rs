//! Unix: the daemon process: accepts connections and serves them.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use tenon_contract::error_chain::one_line;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::SetOnce;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client_settings::MissingSettings;
use super::connected_clients::{ClientGuard, ConnectedClients};
use super::connection;
use super::daemon_paths::{DaemonPaths, own_uid};
use super::file_lock::FileLock;
use super::life_holder::LifeHolder;
use super::protocol::{
    self, ClientHello, ConnectionKind, DaemonInfo, DaemonRequest, HandshakeRejection, PROTOCOL,
    ReadLineError, RejectionCode, ServerHello,
};
use super::{BuildId, DaemonError};
use crate::http::BindError;
use crate::service::Service;
use crate::surfaces::explore::ExploreSurface;
use crate::web::{DaemonAccess, DaemonControl, KeepAlive, WebApp};

/// How long connected clients may take to finish when the daemon exits.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often the daemon looks for its socket.
const SOCKET_CHECK: Duration = Duration::from_secs(1);

/// How often in a row the daemon finds its lock held by another process before it exits. Clients hold it for a moment.
const MAX_LOST_LOCKS: u32 = 3;

/// How long the warm-up waits for the client that the daemon was started for. It connects within milliseconds.
const FIRST_CLIENT: Duration = Duration::from_secs(1);

/// How long to pause after a failed accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The listening socket of a workspace's daemon, with the life lock that makes it the only one.
#[derive(Debug)]
pub struct DaemonSocket {
    paths: DaemonPaths,
    listener: BoundSocket,
    life: FileLock,
    lost_locks: u32,
}

/// A listening socket and the file that it was bound to.
#[derive(Debug)]
struct BoundSocket {
    listener: UnixListener,
    path: Utf8PathBuf,
    file: (u64, u64),
}

/// What a daemon that looked for its socket found.
#[derive(Debug, PartialEq, Eq)]
enum SocketCheck {
    Unchanged,
    Renewed,
    /// Another process holds the life lock.
    Superseded,
}

impl DaemonSocket {
    /// Takes the life lock and binds the socket, waiting for a daemon that is exiting. The caller, or the process that
    /// started it, holds the start lock, so a daemon that does not answer cannot be one that is starting.
    pub async fn take(paths: DaemonPaths) -> Result<Self, DaemonError> {
        let mut life = match FileLock::try_take(paths.life_lock())? {
            Some(life) => life,
            None => match connection::connect(&paths, &ClientHello::new(ConnectionKind::Status)).await {
                Err(DaemonError::NotRunning) => {
                    let waited = FileLock::take(paths.life_lock(), connection::SOCKET_PATIENCE).await?;
                    waited.ok_or(DaemonError::Locked { seconds: connection::SOCKET_PATIENCE.as_secs() })?
                }
                Ok(_) => return Err(DaemonError::AlreadyServed),
                Err(error) => return Err(error),
            },
        };
        let listener = BoundSocket::bind(paths.socket())?;
        life.note(&LifeHolder::note(&listener.path))?;
        Ok(Self { paths, listener, life, lost_locks: 0 })
    }

    /// Makes a new socket if the file was removed or replaced, and takes the lock again if its file was.
    fn renew(&mut self) -> Result<SocketCheck, DaemonError> {
        let has_lock = self.life.is_at(self.paths.life_lock());
        if has_lock && self.listener.is_reachable() {
            return Ok(SocketCheck::Unchanged);
        }
        let paths = self.paths.renewed()?;
        if !has_lock {
            let Some(life) = FileLock::try_take(paths.life_lock())? else {
                self.lost_locks += 1;
                let superseded = self.lost_locks >= MAX_LOST_LOCKS;
                return Ok(if superseded { SocketCheck::Superseded } else { SocketCheck::Unchanged });
            };
            self.life = life;
        }
        self.lost_locks = 0;
        if !self.listener.is_reachable() || paths.socket() != self.listener.path {
            self.listener = BoundSocket::bind(paths.socket())?;
        }
        self.paths = paths;
        self.life.note(&LifeHolder::note(&self.listener.path))?;
        Ok(SocketCheck::Renewed)
    }
}

impl BoundSocket {
    fn bind(path: Utf8PathBuf) -> Result<Self, DaemonError> {
        // A leftover: its owner is dead, since we hold the life lock.
        match path.symlink_metadata() {
            Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(&path)?,
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, path.into_string()).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let metadata = path.symlink_metadata()?;
        Ok(Self { listener, path, file: (metadata.dev(), metadata.ino()) })
    }

    /// Whether the file is still the one that was bound.
    fn is_reachable(&self) -> bool {
        let there = self.path.symlink_metadata();
        there.is_ok_and(|there| there.file_type().is_socket() && (there.dev(), there.ino()) == self.file)
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if self.is_reachable() {
            let _ = std::fs::remove_file(&self.path);
        }
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
    /// Whether the first client asks by name.
    first_asks_by_name: SetOnce<bool>,
    stop: CancellationToken,
    http: Arc<Mutex<Option<String>>>,
    tasks: TaskTracker,
    /// The web console.
    web: Arc<dyn WebApp>,
    /// The address of the console, once it is served.
    console: tokio::sync::OnceCell<String>,
    /// Connections that wait for the daemon to exit; they close when it has.
    farewell: Mutex<Vec<BufReader<UnixStream>>>,
}

impl DaemonServer {
    pub fn new(
        service: Service,
        console: impl FnOnce(DaemonAccess) -> Arc<dyn WebApp>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let clients = ConnectedClients::default();
        let started_at = service.workspace().clock().rfc3339();
        let control = Arc::new(Control { clients: clients.clone(), started_at: started_at.clone() });
        Arc::new(Self {
            started_at,
            web: console(service.access(control)),
            service: Arc::new(service),
            build: BuildId::current(),
            clients,
            first_asks_by_name: SetOnce::new(),
            stop,
            tasks: TaskTracker::new(),
            console: tokio::sync::OnceCell::new(),
            http: Arc::default(),
            farewell: Mutex::default(),
        })
    }

    /// Serves clients until the daemon exits. Everything it started has ended when this returns.
    ///
    /// Clients wait for the life lock to see that the daemon has ended, so hold it to the end of the process.
    #[must_use = "dropping the life lock signals that the process has ended"]
    pub async fn run(self: Arc<Self>, socket: DaemonSocket, exit_policy: ExitPolicy) -> FileLock {
        let mut socket = socket;
        let tasks = self.tasks.clone();
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
                    () = daemon.warm_up(exit_policy) => {}
                    () = daemon.stop.cancelled() => {}
                }
            }
        });
        if self.web.has_sessions()
            && let Err(error) = self.console_address().await
        {
            tracing::warn!(error = one_line(&error), "cannot serve the console again");
        }
        tracing::info!(root = %self.service.workspace().root(), pid = std::process::id(), "serving");
        let mut check = tokio::time::interval(SOCKET_CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut check_failed = false;
        loop {
            let accepted = tokio::select! {
                accepted = socket.listener.listener.accept() => accepted,
                () = self.stop.cancelled() => break,
                _ = check.tick() => {
                    let checked = socket.renew();
                    match &checked {
                        Ok(SocketCheck::Unchanged) => {}
                        Ok(SocketCheck::Renewed) => {
                            tracing::warn!(path = %socket.listener.path, "the socket was removed; made a new one");
                        }
                        Ok(SocketCheck::Superseded) => {
                            tracing::error!("another daemon serves this workspace");
                            self.clients.leave();
                        }
                        Err(error) if !check_failed => {
                            tracing::warn!(error = one_line(error), "the socket was removed; cannot make a new one");
                        }
                        Err(_) => {}
                    }
                    check_failed = checked.is_err();
                    continue;
                }
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
        let DaemonSocket { listener, life, .. } = socket;
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

    /// Starts the language servers. If the first client asks by name, the syntax index is read first: both need all
    /// processors, and questions by name are answered without a server.
    async fn warm_up(&self, exit_policy: ExitPolicy) {
        let engine = self.service.engine();
        if exit_policy != ExitPolicy::OnRequest {
            let first = tokio::time::timeout(FIRST_CLIENT, self.first_asks_by_name.wait()).await;
            if first == Ok(&true) {
                engine.read_index().await;
            }
        }
        engine.warm_up().await;
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
        let current = hello.want == ConnectionKind::Ping || self.is_current().await;
        let missing = hello.settings.missing_in(self.service.workspace(), &hello.want);
        if self.makes_way(&hello, current, &missing) {
            return Err(leaving());
        }
        if !missing.decisive.is_empty() && hello.want.needs_settings() {
            let message = format!("the running daemon has other settings: {}", missing.decisive.join(", "));
            return Err(HandshakeRejection::new(RejectionCode::Settings, message));
        }
        let admitted = match hello.want {
            ConnectionKind::Status | ConnectionKind::Ping => None,
            ConnectionKind::Stop => Some(Admitted::Stop),
            ConnectionKind::Servers(request) => {
                let _ = self.first_asks_by_name.set(request.asks_by_name());
                Some(Admitted::Servers { request, _client: self.clients.enter().ok_or_else(leaving)? })
            }
            ConnectionKind::Mcp { surfaces } => {
                let unknown = || HandshakeRejection::new(RejectionCode::Malformed, "unknown settings");
                let session = hello.settings.for_session().ok_or_else(unknown)?;
                let handler = self.service.session_handler(surfaces.as_deref(), &session);
                let handler = handler
                    .map_err(|error| HandshakeRejection::new(RejectionCode::Surface, error.to_string()))?;
                let _ = self.first_asks_by_name.set(handler.serves(ExploreSurface::NAME));
                let client = self.clients.enter().ok_or_else(leaving)?;
                if self.clients.count() == 1 {
                    self.service.engine().reset_failures();
                }
                Some(Admitted::Mcp { handler, client })
            }
            ConnectionKind::Console => {
                let rejected =
                    |error: BindError| HandshakeRejection::new(RejectionCode::Http, one_line(&error));
                let mut info = self.welcome(current);
                info.console = Some(self.console_link().await.map_err(rejected)?);
                let _ = protocol::write_line(stream, &ServerHello::Welcome(info)).await;
                return Ok(None);
            }
            ConnectionKind::Http { port } => {
                let bound = self.service.bind_http(port).await;
                let listener =
                    bound.map_err(|error| HandshakeRejection::new(RejectionCode::Http, one_line(&error)))?;
                let _ = self.first_asks_by_name.set(false);
                let client = self.clients.enter().ok_or_else(leaving)?;
                let address = listener.local_addr().map_err(|error| {
                    HandshakeRejection::new(RejectionCode::Http, format!("cannot determine port: {error}"))
                })?;
                self.set_http(Some(format!("http://{address}")));
                Some(Admitted::Http { listener, client })
            }
        };
        let mut welcome = self.welcome(current);
        welcome.deferred_settings = missing.deferred;
        let welcomed = protocol::write_line(stream, &ServerHello::Welcome(welcome)).await;
        if welcomed.is_err() && !matches!(admitted, Some(Admitted::Stop)) {
            return Ok(None);
        }
        Ok(admitted)
    }

    /// Whether the daemon exits so that this client can start another one. It does if it is idle and outdated, or lacks
    /// settings that the client makes.
    fn makes_way(&self, hello: &ClientHello, current: bool, missing: &MissingSettings) -> bool {
        let outdated = hello.build != self.build.as_str() || !current;
        let is_due = match &hello.want {
            ConnectionKind::Servers(DaemonRequest::EditDiagnostics { .. }) | ConnectionKind::Mcp { .. } => {
                outdated || !missing.is_empty()
            }
            ConnectionKind::Servers(request)
                if request.asks_by_name() || matches!(request, DaemonRequest::ChangeDiagnostics { .. }) =>
            {
                !missing.is_empty()
            }
            ConnectionKind::Http { .. } | ConnectionKind::Console => outdated,
            ConnectionKind::Servers(_)
            | ConnectionKind::Status
            | ConnectionKind::Ping
            | ConnectionKind::Stop => false,
        };
        is_due && self.clients.leave_if_idle()
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
            console: None,
            outdated: !current,
            deferred_settings: vec![],
        }
    }

    /// A link that signs a browser in to the console.
    async fn console_link(&self) -> Result<String, BindError> {
        Ok(format!("{}{}", self.console_address().await?, self.web.sign_in_path()))
    }

    /// Serves the console, if it is not served yet. Returns its address.
    async fn console_address(&self) -> Result<&str, BindError> {
        let address = self.console.get_or_try_init(|| async {
            let listener = self.service.bind_console().await?;
            let unknown = |source| BindError::Io { addr: ([127, 0, 0, 1], 0).into(), source };
            let address = listener.local_addr().map_err(unknown)?;
            tracing::info!(%address, "serving the console");
            let (service, web, stop) = (Arc::clone(&self.service), Arc::clone(&self.web), self.stop.clone());
            self.tasks.spawn(async move { service.serve_console(listener, web, stop).await });
            Ok(format!("http://{address}"))
        });
        Ok(address.await?)
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

/// What the console may do with the daemon.
struct Control {
    clients: ConnectedClients,
    started_at: String,
}

impl DaemonControl for Control {
    fn keep_alive(&self) -> Option<KeepAlive> {
        Some(Box::new(self.clients.watch_page()?))
    }

    fn enter(&self) -> Option<KeepAlive> {
        Some(Box::new(self.clients.enter()?))
    }

    fn stop(&self) {
        self.clients.leave();
    }

    fn started_at(&self) -> String {
        self.started_at.clone()
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
