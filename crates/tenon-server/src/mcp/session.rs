//! One MCP session: lifecycle, requests in flight and their cancellation.
//!
//! Revisions up to 2025-11-25 have a handshake: `initialize`, `notifications/initialized`, then requests;
//! before `initialize` only `ping` is answered. Under the contract's handshake a request also waits for
//! `notifications/initialized`. A 2026-07-28 request names its revision in its own `_meta` and does not
//! depend on earlier messages.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::Service;
use rmcp::model::{
    CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode,
    ErrorData, GetExtensions, GetMeta, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{Peer, RequestContext, RoleServer, serve_directly};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use super::Handler;
use super::progress::{Outbox, ProgressReporter};
use super::revision::{self, Handshake};
use crate::surface::{ClientNumber, InputEnded};

/// JSON-RPC code for a request that its client cancelled (the number LSP uses).
const REQUEST_CANCELLED: ErrorCode = ErrorCode(-32800);

/// The progress of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    New,
    Negotiated,
    Ready,
}

struct State {
    phase: Phase,
    in_flight: BTreeMap<String, CancellationToken>,
}

/// The number of the next client; 0 has no client.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Session {
    handler: Handler,
    client: ClientNumber,
    peer: Peer<RoleServer>,
    state: Mutex<State>,
    closed: CancellationToken,
    input_ended: InputEnded,
}

impl Session {
    /// A session that ends, with every request in flight, when `closed` is cancelled.
    ///
    /// Must be called inside a Tokio runtime: see [`detached_peer`].
    pub(crate) fn new(handler: Handler, closed: CancellationToken) -> Self {
        let peer = detached_peer(&handler);
        Self::with_peer(handler, peer, closed)
    }

    /// A session for one sessionless request. It negotiates nothing, so all of them share one peer.
    pub(crate) fn alone(handler: Handler, peer: Peer<RoleServer>, closed: CancellationToken) -> Self {
        Self::with_peer(handler, peer, closed)
    }

    fn with_peer(handler: Handler, peer: Peer<RoleServer>, closed: CancellationToken) -> Self {
        let state = State { phase: Phase::New, in_flight: BTreeMap::new() };
        let client = ClientNumber(NEXT_CLIENT.fetch_add(1, Ordering::Relaxed));
        Self { handler, client, peer, state: Mutex::new(state), closed, input_ended: InputEnded::default() }
    }

    /// The revision negotiated at `initialize`.
    pub(crate) fn revision(&self) -> Option<ProtocolVersion> {
        self.peer.peer_info().map(|info| info.protocol_version.clone())
    }

    /// Whether the negotiated revision allows several messages at once.
    pub(crate) fn takes_batches(&self) -> bool {
        self.revision().is_some_and(|revision| revision::has_batches(&revision))
    }

    /// Signals the end of input: requests in flight are answered, but waits for news end.
    pub(crate) fn end_of_input(&self) {
        self.input_ended.0.cancel();
    }

    /// Ends the session and cancels requests in flight.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// Registers a request. Lifecycle and id are checked here, in the order in which messages arrive; the returned request
    /// can run at any time.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: RequestId,
        request: ClientRequest,
    ) -> Result<PendingRequest, Box<ServerJsonRpcMessage>> {
        let refused = |error| Box::new(ServerJsonRpcMessage::error(error, Some(id.clone())));
        self.admit(&request).map_err(refused)?;
        let cancel = self.closed.child_token();
        let key = key_of(&id);
        match self.state().in_flight.entry(key.clone()) {
            Entry::Vacant(free) => free.insert(cancel.clone()),
            Entry::Occupied(_) => {
                return Err(refused(ErrorData::invalid_request("a request with this id is in flight", None)));
            }
        };
        let entry = InFlight { session: Arc::clone(self), key, cancel };
        Ok(PendingRequest { entry, id, request })
    }

    /// Handles a notification; it has no response.
    pub(crate) fn notice(&self, notification: &ClientNotification) {
        match notification {
            ClientNotification::InitializedNotification(_) => {
                let mut state = self.state();
                if state.phase == Phase::Negotiated {
                    state.phase = Phase::Ready;
                }
            }
            ClientNotification::CancelledNotification(cancelled) => self.cancel(&cancelled.params),
            _ => {}
        }
    }

    fn cancel(&self, cancelled: &CancelledNotificationParam) {
        let Some(id) = &cancelled.request_id else { return };
        if let Some(cancel) = self.state().in_flight.get(&key_of(id)) {
            cancel.cancel();
        }
    }

    /// Whether the lifecycle allows `request` now.
    fn admit(&self, request: &ClientRequest) -> Result<(), ErrorData> {
        let phase = self.state().phase.clone();
        let refused = |why: &'static str| Err(ErrorData::invalid_request(why, None));
        match request {
            ClientRequest::InitializeRequest(_) if phase == Phase::New => Ok(()),
            ClientRequest::InitializeRequest(_) => refused("the session is initialized already"),
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Ok(()),
            _ if request.get_meta().protocol_version().is_some() => Ok(()),
            _ => match phase {
                Phase::Ready => Ok(()),
                Phase::Negotiated => refused("waiting for `notifications/initialized`"),
                Phase::New => refused("the session is not initialized"),
            },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number and a string are different ids even if they look the same.
fn key_of(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => format!("#{number}"),
        RequestId::String(text) => format!("\"{text}"),
    }
}

/// A request that waits for its response. Dropping it cancels the call.
pub(crate) struct PendingRequest {
    entry: InFlight,
    id: RequestId,
    request: ClientRequest,
}

impl PendingRequest {
    /// Whether this is the `initialize` that later messages wait for.
    pub(crate) fn opens_session(&self) -> bool {
        matches!(self.request, ClientRequest::InitializeRequest(_))
    }

    /// Answers the request. Progress notifications go to `outbox` if the client asked for them.
    pub(crate) async fn answer(self, outbox: Option<&Outbox>) -> ServerJsonRpcMessage {
        let opening = self.opens_session();
        let Self { entry, id, request } = self;
        let InFlight { session, cancel, .. } = &entry;
        let reply = session.handler.reply(id.clone(), request, session, cancel.clone(), outbox).await;
        match reply {
            Ok(result) => {
                if opening {
                    session.state().phase = match session.handler.handshake() {
                        Handshake::Contract => Phase::Negotiated,
                        Handshake::Compatible => Phase::Ready,
                    };
                }
                ServerJsonRpcMessage::response(result, id)
            }
            Err(error) if cancel.is_cancelled() => {
                let message =
                    if session.closed.is_cancelled() { "session closed" } else { "request cancelled" };
                ServerJsonRpcMessage::error(ErrorData::new(REQUEST_CANCELLED, message, error.data), Some(id))
            }
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        }
    }
}

/// Removes a request from those in flight, however it ends.
struct InFlight {
    session: Arc<Session>,
    key: String,
    cancel: CancellationToken,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.session.state().in_flight.remove(&self.key);
    }
}

impl Handler {
    /// Runs one request through `rmcp`'s dispatch.
    async fn reply(
        &self,
        id: RequestId,
        mut request: ClientRequest,
        session: &Session,
        cancel: CancellationToken,
        outbox: Option<&Outbox>,
    ) -> Result<ServerResult, ErrorData> {
        let mut context = RequestContext::new(id, session.peer.clone());
        context.ct = cancel;
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        context.extensions.insert(session.input_ended.clone());
        context.extensions.insert(session.client);
        if let (Some(token), Some(outbox)) = (context.meta.get_progress_token(), outbox) {
            let has_message =
                context.protocol_version().is_none_or(|own| revision::has_progress_message(&own));
            context.extensions.insert(ProgressReporter::new(token, outbox.clone(), has_message));
        }
        self.handle_request(request, context).await
    }
}

/// A peer for the handler's contexts. `rmcp` hands one out only for a running service, so this needs a Tokio runtime.
pub(crate) fn detached_peer(handler: &Handler) -> Peer<RoleServer> {
    serve_directly(handler.clone(), Detached, None).peer().clone()
}

/// The transport of an unused peer: closed from the start.
struct Detached;

impl Transport<RoleServer> for Detached {
    type Error = Infallible;

    fn send(
        &mut self,
        _: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        std::future::ready(None)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Infallible>> + Send {
        std::future::ready(Ok(()))
    }
}
