//! Streamable HTTP on loopback: `POST /mcp/<surface>` and `POST /mcp`, `DELETE` to end a session.
//!
//! Every request passes the same checks in the same order: path, method, host, origin, token, load,
//! content type, accept, size, envelope, lifecycle. The first failing check answers. `Host` and `Origin`
//! keep web pages out (DNS rebinding); the token keeps other users of the machine out. A session does not
//! authorise anything; it belongs to the token that created it.
//!
//! One thread reads and answers requests; only tool calls go to the workers of the caller's runtime, so
//! a long call does not delay other requests.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use hyper::body::Incoming as Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use indexmap::IndexMap;
use rmcp::model::{ClientRequest, ServerJsonRpcMessage};
use rmcp::service::{Peer, RoleServer};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::mcp::Handler;
use crate::mcp::envelope::{self, IncomingMessage};
use crate::mcp::session::{Session, detached_peer};
use crate::surfaces::Surfaces;
use crate::web::{self, WebApp, WebRequest};
use connections::{Connection, Connections};
use http_sessions::HttpSessions;
use rejection::HttpRejection;
use response::Shape;
use revision::Lifecycle;
use tenon_contract::clock::Entropy;

mod connections;
mod head_checks;
mod http_sessions;
pub(crate) mod port_memory;
mod rejection;
mod request_body;
mod response;
mod revision;

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: String,
    /// The surfaces it may use; `None` for those open to every token.
    pub surfaces: Option<Vec<String>>,
}

/// Decides who may send requests. In production this is `token::TokenFile`.
pub trait Authority: Send + Sync + 'static {
    fn principal(&self, bearer: Option<&str>) -> Option<Principal>;
}

#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    pub request_bytes: usize,
    /// Requests read or answered concurrently; further ones get 429.
    pub in_flight: usize,
    /// Connections with a valid token.
    pub connections: usize,
    /// Connections without one; the oldest gives way to a new one.
    pub unauthenticated: usize,
    /// How long a connection may be open before a request with a valid token.
    pub unauthenticated_timeout: Duration,
    /// How long a client may take to send its headers, and then its body.
    pub read_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            request_bytes: 1024 * 1024,
            in_flight: 256,
            connections: 1024,
            unauthenticated: 64,
            unauthenticated_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(10),
        }
    }
}

/// What the endpoint serves.
pub struct Endpoint {
    pub surfaces: Surfaces,
    /// The surfaces of `/mcp`.
    pub default_surfaces: Vec<String>,
    /// The surfaces of a token that does not restrict them.
    pub open_surfaces: Vec<String>,
    pub authority: Box<dyn Authority>,
    pub entropy: Entropy,
    pub limits: HttpLimits,
}

impl Endpoint {
    /// Serves the available surfaces for which `picks` returns true.
    fn handler(&self, picks: impl Fn(&str) -> bool) -> Handler {
        let names: Vec<&str> = self.surfaces.names().into_iter().filter(|name| picks(name)).collect();
        Handler::new(self.surfaces.select(&names).expect("the names are those of the surfaces themselves"))
    }

    /// Serves the surfaces of `/mcp` that are also in `open`.
    fn configured(&self, open: &[String]) -> Handler {
        let among = |names: &[String], name: &str| names.iter().any(|known| known == name);
        self.handler(|name| among(&self.default_surfaces, name) && among(open, name))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("HTTP is served on loopback addresses only; {0} is not one")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}")]
    Io { addr: SocketAddr, source: std::io::Error },
}

/// Binds `addr`, which must be a loopback address.
pub async fn bind(addr: SocketAddr) -> Result<TcpListener, BindError> {
    if !addr.ip().is_loopback() {
        return Err(BindError::NotLoopback(addr));
    }
    TcpListener::bind(addr).await.map_err(|source| BindError::Io { addr, source })
}

struct Edge {
    endpoint: Endpoint,
    /// The handler of each surface, built once.
    named: IndexMap<&'static str, Handler>,
    /// The handler of `/mcp` for tokens without restrictions.
    configured: Handler,
    /// Shared by all sessionless requests.
    peer: Peer<RoleServer>,
    sessions: HttpSessions,
    slots: Arc<Semaphore>,
    /// Where tool calls run.
    workers: Handle,
    stop: CancellationToken,
    web: Option<Arc<dyn WebApp>>,
}

/// How long connections may take to finish their answers when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves `listener` until `stop` is cancelled. Must be called inside the runtime that runs the tool calls.
pub async fn serve(listener: TcpListener, endpoint: Endpoint, stop: CancellationToken) {
    serve_beside(listener, endpoint, None, stop).await;
}

/// As [`serve`], with a web application beside MCP.
pub async fn serve_beside(
    listener: TcpListener,
    endpoint: Endpoint,
    web: Option<Arc<dyn WebApp>>,
    stop: CancellationToken,
) {
    let edge = Edge { web, ..Edge::new(endpoint, stop.child_token()) };
    let (sender, ended) = oneshot::channel();
    let serving = move || {
        let served = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            runtime.block_on(async {
                accept_all(TcpListener::from_std(listener.into_std()?)?, edge, stop).await;
                Ok(())
            })
        });
        // The receiver is gone if this future was dropped.
        let _ = sender.send(served);
    };
    let served = match std::thread::Builder::new().name("http".to_owned()).spawn(serving) {
        Ok(_) => ended.await.unwrap_or_else(|_| Err(io::Error::other("the thread panicked"))),
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::error!(%error, "the connection thread failed");
    }
}

async fn accept_all(listener: TcpListener, edge: Edge, stop: CancellationToken) {
    let limits = edge.endpoint.limits;
    let edge = Arc::new(edge);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.read_timeout);

    let open = Connections::new(limits);
    let connections = TaskTracker::new();
    let mut pause = AcceptPause::default();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = async { (open.seat().await, listener.accept().await) } => accepted,
        };
        let (seat, stream) = match accepted {
            (seat, Ok((stream, _))) => (seat, stream),
            (_, Err(error)) => {
                // Usually out of file descriptors: a connection that closes frees one. Until then, do not spin.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(pause.next()) => continue,
                }
            }
        };
        pause = AcceptPause::default();
        let _ = stream.set_nodelay(true);
        let edge = Arc::clone(&edge);
        let opened = open.open(seat);
        let service = {
            let opened = Arc::clone(&opened);
            service_fn(move |request| {
                let (edge, opened) = (Arc::clone(&edge), Arc::clone(&opened));
                async move { Ok::<_, Infallible>(edge.receive(request, &opened).await) }
            })
        };
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = opened.must_close() => Ok(()),
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

/// The pause after a failed accept: longer after each failure in a row.
struct AcceptPause(Duration);

impl Default for AcceptPause {
    fn default() -> Self {
        Self(Duration::from_millis(50))
    }
}

impl AcceptPause {
    const LONGEST: Duration = Duration::from_secs(1);

    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(Self::LONGEST);
        pause
    }
}

/// A request whose head has passed all checks.
struct Admitted {
    principal: Principal,
    /// The surface that the path names.
    surface: Option<&'static str>,
    handler: Handler,
    slot: OwnedSemaphorePermit,
}

impl Edge {
    fn new(endpoint: Endpoint, stop: CancellationToken) -> Self {
        let names = endpoint.surfaces.names().into_iter();
        let named = names.map(|name| (name, endpoint.handler(|other| other == name))).collect();
        let configured = endpoint.configured(&endpoint.open_surfaces);
        let peer = detached_peer(&configured);
        let slots = Arc::new(Semaphore::new(endpoint.limits.in_flight));
        let workers = Handle::current();
        let sessions = HttpSessions::default();
        Self { named, configured, peer, sessions, slots, workers, stop, web: None, endpoint }
    }

    async fn receive(&self, request: Request<Body>, connection: &Connection) -> Response {
        let (parts, body) = request.into_parts();
        if let Some(web) = &self.web
            && let Some("" | "/") =
                parts.uri.path().strip_prefix(web::PREFIX).map(|rest| rest.get(..1).unwrap_or(rest))
        {
            let answered = self.answer_web(Arc::clone(web), parts, body, connection).await;
            return answered.unwrap_or_else(HttpRejection::into_response);
        }
        let admitted = match self.admit(&parts.method, &parts.uri, &parts.headers, connection) {
            Ok(admitted) => admitted,
            Err(rejection) => {
                request_body::discard(body).await;
                return rejection.into_response();
            }
        };
        let outcome = if parts.method == Method::DELETE {
            request_body::discard(body).await;
            self.end_session(&admitted, &parts.headers)
        } else {
            self.post(admitted, &parts.headers, body).await
        };
        outcome.unwrap_or_else(HttpRejection::into_response)
    }

    /// Passes a request to the web application, on the workers.
    async fn answer_web(
        &self,
        web: Arc<dyn WebApp>,
        head: axum::http::request::Parts,
        body: Body,
        connection: &Connection,
    ) -> Result<Response, HttpRejection> {
        if let Err(rejection) = head_checks::check_host(&head.uri, &head.headers) {
            request_body::discard(body).await;
            return Err(rejection);
        }
        let limits = self.endpoint.limits;
        let slots = Arc::clone(&self.slots);
        let _slot = slots.try_acquire_owned().map_err(|_| HttpRejection::too_many_requests())?;
        let bytes =
            request_body::read(&head.headers, body, limits.request_bytes, limits.read_timeout).await?;
        if web.is_signed_in(&head) {
            connection.authenticate();
        }
        let request = WebRequest { head, body: bytes.into() };
        let answering = AbortOnDropHandle::new(self.workers.spawn(web.answer(request)));
        answering.await.map_err(|_| HttpRejection::internal())
    }

    /// Every check that needs no body: path, method, host, origin, token, load.
    fn admit(
        &self,
        method: &Method,
        uri: &axum::http::Uri,
        headers: &HeaderMap,
        connection: &Connection,
    ) -> Result<Admitted, HttpRejection> {
        let named = self.find(uri.path())?;
        if method != Method::POST && method != Method::DELETE {
            return Err(HttpRejection::method_not_allowed());
        }
        head_checks::check_host(uri, headers)?;
        head_checks::check_origin(headers)?;
        let principal = self
            .endpoint
            .authority
            .principal(head_checks::bearer(headers))
            .ok_or_else(HttpRejection::unauthorized)?;
        connection.authenticate();
        let open = principal.surfaces.as_ref().unwrap_or(&self.endpoint.open_surfaces);
        let handler = match (named, &principal.surfaces) {
            (Some((name, handler)), _) if open.iter().any(|open| open == name) => handler.clone(),
            (Some(_), _) => return Err(HttpRejection::forbidden("the token does not allow this surface")),
            (None, None) => self.configured.clone(),
            (None, Some(open)) => self.endpoint.configured(open),
        };
        let slot =
            Arc::clone(&self.slots).try_acquire_owned().map_err(|_| HttpRejection::too_many_requests())?;
        Ok(Admitted { principal, surface: named.map(|(name, _)| name), handler, slot })
    }

    /// The surface that a path names, if any.
    fn find(&self, path: &str) -> Result<Option<(&'static str, &Handler)>, HttpRejection> {
        let Some(below) = path.strip_prefix("/mcp") else {
            return Err(HttpRejection::not_found("only `/mcp` is served here"));
        };
        if self.named.is_empty() {
            return Err(HttpRejection::not_found("MCP is not served here; run `tenon serve --http`"));
        }
        if below.is_empty() {
            return Ok(None);
        }
        let name = head_checks::unescaped(below.strip_prefix('/').unwrap_or(below));
        match self.named.get_key_value(&*name) {
            Some((name, handler)) if below.starts_with('/') => Ok(Some((name, handler))),
            _ => Err(HttpRejection::not_found(self.endpoint.surfaces.unknown(&name).to_string())),
        }
    }

    fn end_session(&self, admitted: &Admitted, headers: &HeaderMap) -> Result<Response, HttpRejection> {
        let id = head_checks::session_id(headers)?;
        self.sessions.end(id, &admitted.principal.id, admitted.surface)?;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }

    async fn post(
        &self,
        admitted: Admitted,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response, HttpRejection> {
        let head = head_checks::check_content_type(headers).and_then(|()| head_checks::check_accept(headers));
        if let Err(rejection) = head {
            request_body::discard(body).await;
            return Err(rejection);
        }
        let limits = self.endpoint.limits;
        let bytes = request_body::read(headers, body, limits.request_bytes, limits.read_timeout).await?;
        if envelope::is_batch(&bytes)
            && let Some(session) = self.batch_session(&admitted, headers)?
        {
            let messages = envelope::read_batch(&bytes).map_err(HttpRejection::envelope)?;
            return Ok(response::answer_batch(&session, messages, admitted.slot, &self.workers).await);
        }
        let incoming = envelope::read(&bytes).map_err(HttpRejection::envelope)?;
        match revision::lifecycle(headers, &incoming, admitted.handler.handshake())? {
            Lifecycle::Alone => {
                let session =
                    Arc::new(Session::alone(admitted.handler, self.peer.clone(), self.stop.child_token()));
                match incoming {
                    IncomingMessage::Request { id, request } => Ok(response::answer(
                        &session,
                        id,
                        *request,
                        Shape::Alone,
                        admitted.slot,
                        &self.workers,
                    )
                    .await),
                    IncomingMessage::Notification(_) | IncomingMessage::Response => {
                        Ok(response::empty(StatusCode::ACCEPTED))
                    }
                }
            }
            Lifecycle::Opening => self.open_session(admitted, incoming).await,
            Lifecycle::Session => self.continue_session(admitted, headers, incoming).await,
        }
    }

    /// The session of a batch, if it negotiated a revision that has batches.
    fn batch_session(
        &self,
        admitted: &Admitted,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Session>>, HttpRejection> {
        let Ok(id) = head_checks::session_id(headers) else { return Ok(None) };
        match self.sessions.find(id, &admitted.principal.id, admitted.surface) {
            Ok(session) if session.takes_batches() => {
                revision::check_session(headers, &session, admitted.handler.handshake())?;
                Ok(Some(session))
            }
            _ => Ok(None),
        }
    }

    /// `initialize`: the only request that opens a session.
    async fn open_session(
        &self,
        admitted: Admitted,
        incoming: IncomingMessage,
    ) -> Result<Response, HttpRejection> {
        let IncomingMessage::Request { id, request } = incoming else {
            unreachable!("only `initialize` requests open a session")
        };
        let handler = admitted.handler.clone().connected(self.endpoint.surfaces.activity());
        let session = Arc::new(Session::new(handler, self.stop.child_token()));
        let answer = match session.begin(id, *request) {
            Ok(opening) => opening.answer(None).await,
            Err(refused) => *refused,
        };
        let is_open = matches!(answer, ServerJsonRpcMessage::Response(_));
        let mut response = response::json(StatusCode::OK, answer);
        if is_open {
            let id = self.endpoint.entropy.token();
            let value = id.parse().expect("hex digits make a header value");
            self.sessions.add(id, session, &admitted.principal.id, admitted.surface);
            response.headers_mut().insert(head_checks::SESSION_ID, value);
        }
        Ok(response)
    }

    async fn continue_session(
        &self,
        admitted: Admitted,
        headers: &HeaderMap,
        incoming: IncomingMessage,
    ) -> Result<Response, HttpRejection> {
        let id = head_checks::session_id(headers)?;
        let session = self.sessions.find(id, &admitted.principal.id, admitted.surface)?;
        revision::check_session(headers, &session, admitted.handler.handshake())?;
        match incoming {
            IncomingMessage::Request { id, request } => {
                debug_assert!(!matches!(*request, ClientRequest::InitializeRequest(_)), "it opens a session");
                Ok(response::answer(&session, id, *request, Shape::Session, admitted.slot, &self.workers)
                    .await)
            }
            IncomingMessage::Notification(notification) => {
                session.notice(&notification);
                Ok(response::empty(StatusCode::ACCEPTED))
            }
            IncomingMessage::Response => Ok(response::empty(StatusCode::ACCEPTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_after_failed_accepts_grows_to_a_second() {
        let mut pause = AcceptPause::default();
        let pauses: Vec<u128> = (0..7).map(|_| pause.next().as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
    }
}
