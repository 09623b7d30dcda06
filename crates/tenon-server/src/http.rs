//! Streamable HTTP on loopback: `POST /mcp/<surface>` and `POST /mcp`, `DELETE` to end a session.
//!
//! Every request passes the same checks in the same order: path, method, host, origin, token, load,
//! content type, accept, size, envelope, lifecycle. The first that fails answers. `Host` and `Origin`
//! keep web pages out (DNS rebinding), the token keeps other users of the machine out; a session is
//! no authorisation and belongs to the token that made it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::model::{ClientRequest, ServerJsonRpcMessage};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::mcp::Handler;
use crate::mcp::envelope::{self, Incoming};
use crate::mcp::session::Session;
use crate::surfaces::Surfaces;
use refusal::Refusal;
use revision::Lifecycle;
use sessions::Sessions;
use tenon_contract::clock::Entropy;

mod body;
mod front;
mod refusal;
mod reply;
mod revision;
mod sessions;

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: String,
    /// The surfaces it may use; `None` for those that are open to every token.
    pub surfaces: Option<Vec<String>>,
}

/// Decides who may send requests. The product's is `token::TokenFile`.
pub trait Authority: Send + Sync + 'static {
    fn principal(&self, bearer: Option<&str>) -> Option<Principal>;
}

#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    pub request_bytes: usize,
    /// Requests read or answered at once; further ones get 429.
    pub in_flight: usize,
    pub connections: usize,
    /// How long a client may take to send its headers, and then its body.
    pub read_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            request_bytes: 1024 * 1024,
            in_flight: 256,
            connections: 1024,
            read_timeout: Duration::from_secs(10),
        }
    }
}

/// What the endpoint serves.
pub struct Endpoint {
    pub surfaces: Surfaces,
    /// The surfaces behind `/mcp`.
    pub default_surfaces: Vec<String>,
    /// The surfaces a token opens that names none itself.
    pub open_surfaces: Vec<String>,
    pub authority: Box<dyn Authority>,
    pub entropy: Entropy,
    pub limits: HttpLimits,
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("HTTP is served on loopback addresses only, and {0} is none")]
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
    sessions: Sessions,
    slots: Arc<Semaphore>,
    stop: CancellationToken,
}

/// How long connections get to finish their answers when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves `listener` until `stop` is cancelled.
pub async fn serve(listener: TcpListener, endpoint: Endpoint, stop: CancellationToken) {
    let limits = endpoint.limits;
    let edge = Arc::new(Edge {
        sessions: Sessions::default(),
        slots: Arc::new(Semaphore::new(limits.in_flight)),
        stop: stop.child_token(),
        endpoint,
    });
    let router = Router::new()
        .route("/mcp", any(configured))
        .route("/mcp/{surface}", any(named))
        .with_state(Arc::clone(&edge));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.read_timeout);

    let seats = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            seat = Arc::clone(&seats).acquire_owned() => {
                let seat = seat.expect("the semaphore is never closed");
                tokio::select! {
                    () = stop.cancelled() => break,
                    accepted = listener.accept() => accepted.map(|(stream, _)| (stream, seat)),
                }
            }
        };
        let (stream, seat) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: the next connection that ends makes room.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::task::yield_now().await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
            drop(seat);
        });
    }
    connections.close();
    connections.wait().await;
}

async fn configured(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    edge.receive(None, request).await
}

async fn named(State(edge): State<Arc<Edge>>, Path(surface): Path<String>, request: Request) -> Response {
    edge.receive(Some(surface), request).await
}

/// What is known of a request once its head has passed.
struct Admitted {
    principal: Principal,
    surface: Option<String>,
    handler: Handler,
    slot: OwnedSemaphorePermit,
}

impl Edge {
    async fn receive(&self, surface: Option<String>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let admitted = match self.admit(surface, &parts.method, &parts.uri, &parts.headers) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                body::discard(body).await;
                return refusal.into_response();
            }
        };
        let outcome = if parts.method == Method::DELETE {
            body::discard(body).await;
            self.end_session(&admitted, &parts.headers)
        } else {
            self.post(admitted, &parts.headers, body).await
        };
        outcome.unwrap_or_else(Refusal::into_response)
    }

    /// Every check that needs no body: path, method, host, origin, token, load.
    fn admit(
        &self,
        surface: Option<String>,
        method: &Method,
        uri: &axum::http::Uri,
        headers: &HeaderMap,
    ) -> Result<Admitted, Refusal> {
        if let Some(name) = &surface {
            self.endpoint.surfaces.select(&[name]).map_err(|error| Refusal::not_found(error.to_string()))?;
        }
        if method != Method::POST && method != Method::DELETE {
            return Err(Refusal::method_not_allowed());
        }
        front::check_host(uri, headers)?;
        front::check_origin(headers)?;
        let principal =
            self.endpoint.authority.principal(front::bearer(headers)).ok_or_else(Refusal::unauthorized)?;
        let open = principal.surfaces.as_ref().unwrap_or(&self.endpoint.open_surfaces);
        let wanted: Vec<&String> = match &surface {
            Some(name) if open.contains(name) => vec![name],
            Some(_) => return Err(Refusal::forbidden("the token does not open this surface")),
            None => self.endpoint.default_surfaces.iter().filter(|name| open.contains(name)).collect(),
        };
        let set =
            self.endpoint.surfaces.select(&wanted).map_err(|error| Refusal::not_found(error.to_string()))?;
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| Refusal::too_many_requests())?;
        Ok(Admitted { principal, surface, handler: Handler::new(set), slot })
    }

    fn end_session(&self, admitted: &Admitted, headers: &HeaderMap) -> Result<Response, Refusal> {
        let id = front::session_id(headers)?;
        self.sessions.end(id, &admitted.principal.id, admitted.surface.as_deref())?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }

    async fn post(&self, admitted: Admitted, headers: &HeaderMap, body: Body) -> Result<Response, Refusal> {
        let head = front::check_content_type(headers).and_then(|()| front::check_accept(headers));
        if let Err(refusal) = head {
            body::discard(body).await;
            return Err(refusal);
        }
        let limits = self.endpoint.limits;
        let bytes = body::read(headers, body, limits.request_bytes, limits.read_timeout).await?;
        let incoming = envelope::read(&bytes).map_err(Refusal::envelope)?;
        match revision::lifecycle(headers, &incoming)? {
            Lifecycle::Alone => {
                let session = Arc::new(Session::new(admitted.handler.clone(), self.stop.child_token()));
                match incoming {
                    Incoming::Request { id, request } => {
                        Ok(reply::answer(&session, id, *request, reply::Shape::Alone, admitted.slot).await)
                    }
                    Incoming::Notification(_) | Incoming::Response => Ok(reply::empty(StatusCode::ACCEPTED)),
                }
            }
            Lifecycle::Opening => self.open_session(admitted, incoming).await,
            Lifecycle::Session => self.continue_session(admitted, headers, incoming).await,
        }
    }

    /// `initialize`: the one request that comes without a session and leaves with one.
    async fn open_session(&self, admitted: Admitted, incoming: Incoming) -> Result<Response, Refusal> {
        let Incoming::Request { id, request } = incoming else {
            unreachable!("only `initialize` requests open a session")
        };
        let session = Arc::new(Session::new(admitted.handler.clone(), self.stop.child_token()));
        let (outbox, _unread) = reply::outbox();
        let answer = match session.begin(id, *request) {
            Ok(opening) => opening.answer(&outbox).await,
            Err(refused) => *refused,
        };
        let mut response = reply::json(StatusCode::OK, &answer);
        if matches!(answer, ServerJsonRpcMessage::Response(_)) {
            let id = self.endpoint.entropy.token();
            let value = id.parse().expect("hex digits make a header value");
            self.sessions.add(id, session, &admitted.principal.id, admitted.surface.as_deref());
            response.headers_mut().insert(front::SESSION_ID, value);
        }
        Ok(response)
    }

    async fn continue_session(
        &self,
        admitted: Admitted,
        headers: &HeaderMap,
        incoming: Incoming,
    ) -> Result<Response, Refusal> {
        let id = front::session_id(headers)?;
        let session = self.sessions.find(id, &admitted.principal.id, admitted.surface.as_deref())?;
        revision::check_session(headers, &session)?;
        match incoming {
            Incoming::Request { id, request } => {
                debug_assert!(!matches!(*request, ClientRequest::InitializeRequest(_)), "it opens a session");
                Ok(reply::answer(&session, id, *request, reply::Shape::Session, admitted.slot).await)
            }
            Incoming::Notification(notification) => {
                session.notice(&notification);
                Ok(reply::empty(StatusCode::ACCEPTED))
            }
            Incoming::Response => Ok(reply::empty(StatusCode::ACCEPTED)),
        }
    }
}
