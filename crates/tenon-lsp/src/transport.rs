//! JSON-RPC over two byte streams: requests end exactly once, notifications keep their order, and the peer is always
//! answered.
//!
//! Invariants:
//! - A request ends once: by its answer, by its caller giving up (then `$/cancelRequest` is sent and a late answer is
//!   ignored), or by the end of the connection, which ends all pending requests.
//! - Messages are sent in the order of the calls; answers to the peer's requests have their own queue, so that a full queue
//!   never blocks the reader.
//! - The reader handles the peer's messages in order, through a [`Peer`] that must not block.
//! - An answer that is too large ends its request with an error. Any other message that is too large ends the connection.
//! - The connection ends if the peer stops reading, or stops in the middle of a frame, for [`STALL`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::Decoder;
use tokio_util::sync::CancellationToken;

use crate::call_context::{CallContext, Interrupted};
use crate::codec::{CodecError, FrameDecoder, MAX_BODY_BYTES};
use crate::message::{self, Message, Params, Payload, RequestId, RpcError};

/// The most queued frames. A healthy server reads within milliseconds; callers wait while the queue is full.
const OUTGOING: usize = 256;
/// The most queued answers to the peer's requests. More end the connection.
const ANSWERS: usize = 1024;
/// The size of one read, as much as a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How long a write or a begun frame may stay unfinished.
const STALL: Duration = Duration::from_secs(30);

/// Handles the peer's messages. Runs in the reader, so it must return at once.
pub trait Peer: Send + Sync + 'static {
    /// An error ends the connection before any later message is read.
    fn notification(&self, method: &str, params: Payload) -> Result<(), Closed>;
    /// Returns the answer to a request.
    fn request(&self, method: &str, params: Payload) -> Result<Value, RpcError>;
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    #[error("the peer closed its output")]
    EndOfStream,
    #[error("invalid frame: {0}")]
    Unframed(String),
    #[error("the pipe broke: {0}")]
    Io(String),
    #[error("the peer stopped reading or writing")]
    Stalled,
    #[error("the peer sends requests without reading the answers")]
    Flooded,
    #[error("it sends more diagnostics than Tenon keeps")]
    TooManyDiagnostics,
    #[error("a process that it needs has exited")]
    WorkerExited,
    #[error("we closed it")]
    Locally,
}

impl From<CodecError> for Closed {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Io(error) => Self::Io(error.to_string()),
            unframed => Self::Unframed(unframed.to_string()),
        }
    }
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error("the connection ended: {0}")]
    Closed(#[from] Closed),
    #[error("the server returned an error: {0}")]
    Refused(#[from] RpcError),
    #[error("the answer exceeds {MAX_BODY_BYTES} bytes")]
    TooLarge,
    #[error("the request cannot be serialised as JSON")]
    Unwritable(#[from] serde_json::Error),
}

type Outcome = Result<Payload, RequestError>;
type OnReply = Box<dyn FnOnce(&Result<Payload, RpcError>) + Send>;

struct PendingRequest {
    /// `None` if only the time of the answer matters.
    reply: Option<oneshot::Sender<Outcome>>,
    /// Runs in the reader, before any later message of the peer is handled.
    on_reply: Option<OnReply>,
}

#[derive(Default)]
struct RequestTable {
    next_id: i64,
    waiting: BTreeMap<i64, PendingRequest>,
    closed: Option<Closed>,
}

struct Shared {
    table: Mutex<RequestTable>,
    outgoing: mpsc::Sender<Bytes>,
    /// Cancelled when the connection ends.
    ended: CancellationToken,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, why: Closed) {
        let open = {
            let mut table = self.table();
            if table.closed.is_some() {
                return;
            }
            table.closed = Some(why.clone());
            std::mem::take(&mut table.waiting)
        };
        for waiting in open.into_values() {
            if let Some(reply) = waiting.reply {
                // A missing receiver means that the caller has given up.
                let _ = reply.send(Err(why.clone().into()));
            }
        }
        self.ended.cancel();
    }

    fn closed_error(&self) -> Closed {
        self.table().closed.clone().unwrap_or(Closed::Locally)
    }

    /// Removes a request that has been answered.
    fn take(&self, id: Option<&RequestId>) -> Option<PendingRequest> {
        let waiting = match id {
            Some(RequestId::Number(number)) => self.table().waiting.remove(number),
            _ => None,
        };
        if waiting.is_none() {
            tracing::debug!(?id, "response without a pending request");
        }
        waiting
    }

    /// Ends the request whose answer is too large.
    fn complete_too_large(&self, id: &RequestId) {
        let Some(waiting) = self.take(Some(id)) else {
            return;
        };
        if let Some(on_reply) = waiting.on_reply {
            let error = RequestError::TooLarge.to_string();
            on_reply(&Err(RpcError::new(RpcError::INTERNAL_ERROR, error)));
        }
        if let Some(reply) = waiting.reply {
            let _ = reply.send(Err(RequestError::TooLarge));
        }
    }

    fn complete(&self, id: Option<RequestId>, outcome: Result<Payload, RpcError>) {
        let Some(waiting) = self.take(id.as_ref()) else {
            return;
        };
        if let Some(on_reply) = waiting.on_reply {
            on_reply(&outcome);
        }
        if let Some(reply) = waiting.reply {
            let _ = reply.send(outcome.map_err(RequestError::Refused));
        }
    }
}

/// Our end of a connection. Clones share it.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    /// Returns a connection and the future that runs it. The future returns why the connection ended.
    pub fn open<R, W>(
        reader: R,
        writer: W,
        peer: Arc<dyn Peer>,
    ) -> (Self, impl Future<Output = Closed> + Send + 'static)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let shared = Arc::new(Shared { table: Mutex::default(), outgoing, ended: CancellationToken::new() });
        let connection = Self { shared: Arc::clone(&shared) };
        let run = async move {
            let (answers, answer_queue) = mpsc::channel(ANSWERS);
            let why = tokio::select! {
                why = read_loop(&shared, reader, &*peer, answers) => why,
                why = write_loop(writer, queue, answer_queue) => why,
                () = shared.ended.cancelled() => Closed::Locally,
            };
            shared.close(why);
            shared.closed_error()
        };
        (connection, run)
    }

    /// Sends a notification after everything sent before.
    pub async fn notify<P: Params + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
    ) -> Result<(), RequestError> {
        self.send(call, message::notification(method, params)?).await
    }

    /// Sends a request after everything sent before. The answer is awaited with [`PendingReply::wait`].
    pub async fn request<P: Params + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
    ) -> Result<PendingReply, RequestError> {
        self.start(call, method, params, None).await
    }

    /// Like [`Connection::request`]; `on_reply` sees the answer before any later message of the peer is handled.
    pub(crate) async fn request_with<P: Params + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
        on_reply: impl FnOnce(&Result<Payload, RpcError>) + Send + 'static,
    ) -> Result<PendingReply, RequestError> {
        self.start(call, method, params, Some(Box::new(on_reply))).await
    }

    /// Sends a request for which only the time of the answer matters. It is never cancelled.
    pub async fn request_mark<P: Params + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
        on_reply: impl FnOnce(&Result<Payload, RpcError>) + Send + 'static,
    ) -> Result<(), RequestError> {
        let permit = self.reserve(call).await?;
        permit.send(self.mark_frame(method, params, on_reply)?);
        Ok(())
    }

    /// The frame of such a request, which the caller sends in a reserved place.
    pub(crate) fn mark_frame<P: Params + ?Sized>(
        &self,
        method: &str,
        params: &P,
        on_reply: impl FnOnce(&Result<Payload, RpcError>) + Send + 'static,
    ) -> Result<Bytes, RequestError> {
        let id = self.next_id();
        let frame = message::request(&RequestId::Number(id), method, params)?;
        self.expect(id, PendingRequest { reply: None, on_reply: Some(Box::new(on_reply)) })?;
        Ok(frame)
    }

    async fn start<P: Params + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
        on_reply: Option<OnReply>,
    ) -> Result<PendingReply, RequestError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id();
        let frame = message::request(&RequestId::Number(id), method, params)?;
        self.expect(id, PendingRequest { reply: Some(sender), on_reply })?;
        let mut reply =
            PendingReply { id, receiver, shared: Arc::clone(&self.shared), sent: false, uncancelled: false };
        self.send(call, frame).await?;
        reply.sent = true;
        Ok(reply)
    }

    fn next_id(&self) -> i64 {
        let mut table = self.shared.table();
        table.next_id += 1;
        table.next_id
    }

    /// Registers a request before it is sent, so that its answer cannot arrive too early.
    fn expect(&self, id: i64, waiting: PendingRequest) -> Result<(), Closed> {
        let mut table = self.shared.table();
        match &table.closed {
            Some(why) => Err(why.clone()),
            None => {
                table.waiting.insert(id, waiting);
                Ok(())
            }
        }
    }

    /// Reserves a place in the queue, so that sending itself neither waits nor can be interrupted.
    pub(crate) async fn reserve(&self, call: &CallContext) -> Result<SendPermit<'_>, RequestError> {
        match call.bound(self.shared.outgoing.reserve()).await? {
            Ok(permit) if !self.shared.ended.is_cancelled() => Ok(SendPermit(permit)),
            _ => Err(self.shared.closed_error().into()),
        }
    }

    async fn send(&self, call: &CallContext, frame: Bytes) -> Result<(), RequestError> {
        match call.bound(self.shared.outgoing.send(frame)).await? {
            Ok(()) if self.shared.ended.is_cancelled() => Err(self.shared.closed_error().into()),
            Ok(()) => Ok(()),
            Err(_) => Err(self.shared.closed_error().into()),
        }
    }

    /// Ends the connection and all pending requests.
    pub fn close(&self) {
        self.shared.close(Closed::Locally);
    }

    /// Waits for the end of the connection.
    pub async fn ended(&self) {
        self.shared.ended.cancelled().await;
    }
}

/// A reserved place for frames that are sent together.
pub(crate) struct SendPermit<'a>(mpsc::Permit<'a, Bytes>);

impl SendPermit<'_> {
    pub(crate) fn send(self, frames: impl Into<Bytes>) {
        self.0.send(frames.into());
    }
}

/// The pending answer to one request. Dropping it cancels the request.
pub struct PendingReply {
    id: i64,
    receiver: oneshot::Receiver<Outcome>,
    shared: Arc<Shared>,
    sent: bool,
    uncancelled: bool,
}

impl PendingReply {
    /// Lets the request run when this is dropped; the late answer is ignored.
    #[must_use]
    pub(crate) fn without_cancel(mut self) -> Self {
        self.uncancelled = true;
        self
    }

    pub async fn wait(mut self, call: &CallContext) -> Result<Payload, RequestError> {
        let ending = call.bound(&mut self.receiver).await?;
        ending.unwrap_or_else(|_| Err(self.shared.closed_error().into()))
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let was_open = {
            let mut table = self.shared.table();
            match table.waiting.get_mut(&self.id) {
                None => false,
                // The time of the answer still matters, if the request was sent.
                Some(waiting) if waiting.on_reply.is_some() && self.sent => {
                    waiting.reply = None;
                    true
                }
                Some(_) => table.waiting.remove(&self.id).is_some(),
            }
        };
        if !was_open || !self.sent || self.uncancelled {
            return;
        }
        if let Ok(frame) = message::notification("$/cancelRequest", &json!({ "id": self.id })) {
            // If the queue is full the server is busy anyway; its late answer is ignored.
            let _ = self.shared.outgoing.try_send(frame);
        }
    }
}

async fn read_loop(
    shared: &Shared,
    mut reader: impl AsyncRead + Unpin,
    peer: &dyn Peer,
    answers: mpsc::Sender<Bytes>,
) -> Closed {
    let mut decoder = FrameDecoder::default();
    let mut buffer = BytesMut::new();
    let mut skipped = 0;
    loop {
        match decoder.decode(&mut buffer) {
            Ok(Some(frame)) => {
                if let Err(why) = handle(shared, peer, &answers, &frame) {
                    return why;
                }
                continue;
            }
            Ok(None) => {}
            Err(CodecError::BodySkipped { length, head }) => match message::response_id(&head) {
                Some(id) => {
                    tracing::warn!(?id, length, "skipped an answer that is too large");
                    shared.complete_too_large(&id);
                    continue;
                }
                None => return CodecError::BodySkipped { length, head }.into(),
            },
            Err(error) => return error.into(),
        }
        if decoder.skipped() > skipped {
            skipped = decoder.skipped();
            tracing::debug!(skipped, "skipped noise between frames");
        }
        if buffer.capacity() == buffer.len() {
            buffer.reserve(READ_BYTES);
        }
        let read = reader.read_buf(&mut buffer);
        let read = if decoder.is_inside_frame() {
            match tokio::time::timeout(STALL, read).await {
                Ok(read) => read,
                Err(_) => return Closed::Stalled,
            }
        } else {
            read.await
        };
        match read {
            Ok(0) => {
                return match decoder.decode_eof(&mut buffer) {
                    Ok(_) => Closed::EndOfStream,
                    Err(error) => error.into(),
                };
            }
            Ok(_) => {}
            Err(error) => return CodecError::Io(error).into(),
        }
    }
}

fn handle(
    shared: &Shared,
    peer: &dyn Peer,
    answers: &mpsc::Sender<Bytes>,
    frame: &Bytes,
) -> Result<(), Closed> {
    match Message::parse(frame) {
        Ok(Message::Response { id, outcome }) => shared.complete(id, outcome),
        Ok(Message::Notification { method, params }) => peer.notification(&method, params)?,
        Ok(Message::Request { id, method, params }) => {
            let outcome = peer.request(&method, params);
            let answer = message::response(Some(&id), outcome.as_ref())
                .expect("JSON values and strings always serialise");
            answers.try_send(answer).map_err(|_| Closed::Flooded)?;
        }
        Err(error) => tracing::debug!(%error, "dropped a frame"),
    }
    Ok(())
}

async fn write_loop(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Bytes>,
    mut answers: mpsc::Receiver<Bytes>,
) -> Closed {
    loop {
        let frame = tokio::select! {
            biased;
            Some(answer) = answers.recv() => answer,
            Some(frame) = queue.recv() => frame,
            else => return Closed::Locally,
        };
        match write_frame(&mut writer, frame).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => return Closed::Stalled,
            Err(error) => return Closed::Io(error.to_string()),
        }
    }
}

/// Writes a frame. Each piece that the peer reads restarts the stall timeout.
async fn write_frame(writer: &mut (impl AsyncWrite + Unpin), mut frame: Bytes) -> std::io::Result<()> {
    while frame.has_remaining() {
        let written = tokio::time::timeout(STALL, writer.write(&frame)).await??;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        frame.advance(written);
    }
    tokio::time::timeout(STALL, writer.flush()).await?
}
