//! MCP over a byte stream, one JSON message per line: stdio, the unix socket and inherited pipes.
//!
//! The operating system authenticates the peer. A line above the request cap is read to its end and
//! rejected with its id, without buffering it. At the end of input, requests in flight are answered before the
//! stream closes, so `printf … | tenon mcp` works; when output fails, everything stops.

use std::io;
use std::sync::Arc;

use futures::future::join_all;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Handler;
use super::envelope::{self, IncomingMessage, MessageFault};
use super::json_writer::{self, OutgoingMessage};
use super::progress::{OUTBOX_CAPACITY, Outbox};
use super::request_id::RequestIdScanner;
use super::session::{PendingRequest, Session};

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    pub request_bytes: usize,
    /// Requests answered concurrently; further ones are rejected, so that cancellations still get through.
    pub in_flight: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { request_bytes: 1024 * 1024, in_flight: 128 }
    }
}

/// JSON-RPC code (server range) for a request above the in-flight limit.
const TOO_MANY_REQUESTS: rmcp::model::ErrorCode = rmcp::model::ErrorCode(-32000);

/// Serves one client until its input ends, its output breaks or `stop` is cancelled.
pub async fn serve<R, W>(
    read: R,
    write: W,
    handler: Handler,
    limits: StreamLimits,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let closed = stop.child_token();
    let session = Arc::new(Session::new(handler, closed.clone()));
    let (outbox, messages) = mpsc::channel(OUTBOX_CAPACITY);
    let writer = tokio::spawn(write_messages(write, messages, closed.clone()));
    let slots = Arc::new(Semaphore::new(limits.in_flight));
    let calls = TaskTracker::new();

    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, read), limits.request_bytes);
    let ended = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = closed.cancelled() => break Ok(()),
        };
        let bytes = match line {
            Ok(Line::Text(bytes)) => bytes,
            Ok(Line::TooLong(id)) => {
                let why = format!("message exceeds {} bytes: send less at a time", limits.request_bytes);
                send(&outbox, MessageFault::invalid(id, why).into_message()).await;
                continue;
            }
            Ok(Line::End) => break Ok(()),
            Err(error) => break Err(error),
        };
        if envelope::is_batch(bytes) && session.takes_batches() {
            match envelope::read_batch(bytes) {
                Ok(messages) => {
                    let begun: Vec<Begun> =
                        messages.into_iter().filter_map(|message| begin(&session, &slots, message)).collect();
                    let outbox = outbox.clone();
                    calls.spawn(answer_batch(begun, outbox));
                }
                Err(fault) => send(&outbox, fault.into_message()).await,
            }
            continue;
        }
        match begin(&session, &slots, envelope::read(bytes)) {
            Some(Begun::Request(opening, _slot)) if opening.opens_session() => {
                // The next messages depend on the state after this one.
                send(&outbox, opening.answer(Some(&outbox)).await).await;
            }
            Some(request @ Begun::Request(..)) => {
                let outbox = outbox.clone();
                calls.spawn(async move {
                    let answer = request.answer(&outbox).await;
                    send(&outbox, answer).await;
                });
            }
            Some(Begun::Rejected(error)) => send(&outbox, *error).await,
            None => {}
        }
    };

    session.end_of_input();
    calls.close();
    calls.wait().await;
    drop(outbox);
    let written = writer.await.unwrap_or_else(|_| Err(io::Error::other("the stream writer panicked")));
    ended.and(written)
}

/// A message that gets an answer.
enum Begun {
    Request(Box<PendingRequest>, OwnedSemaphorePermit),
    Rejected(Box<ServerJsonRpcMessage>),
}

impl Begun {
    async fn answer(self, outbox: &Outbox) -> ServerJsonRpcMessage {
        match self {
            Self::Request(request, slot) => {
                let answer = request.answer(Some(outbox)).await;
                drop(slot);
                answer
            }
            Self::Rejected(error) => *error,
        }
    }
}

/// Takes a message, in the order of arrival. `None` if it gets no answer.
fn begin(
    session: &Arc<Session>,
    slots: &Arc<Semaphore>,
    message: Result<IncomingMessage, MessageFault>,
) -> Option<Begun> {
    match message {
        Ok(IncomingMessage::Request { id, request }) => {
            let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
                let error = ErrorData::new(TOO_MANY_REQUESTS, "too many requests in flight", None);
                return Some(Begun::Rejected(Box::new(ServerJsonRpcMessage::error(error, Some(id)))));
            };
            Some(match session.begin(id, *request) {
                Ok(request) => Begun::Request(Box::new(request), slot),
                Err(refused) => Begun::Rejected(refused),
            })
        }
        Ok(IncomingMessage::Notification(notification)) => {
            session.notice(&notification);
            None
        }
        Ok(IncomingMessage::Response) => None,
        Err(fault) => Some(Begun::Rejected(Box::new(fault.into_message()))),
    }
}

/// Answers the requests of a batch at the same time, and sends their answers as one.
async fn answer_batch(begun: Vec<Begun>, outbox: Outbox) {
    if begun.is_empty() {
        return;
    }
    let answers = join_all(begun.into_iter().map(|one| one.answer(&outbox))).await;
    let _ = outbox.send(OutgoingMessage::Batch(answers)).await;
}

/// Waits while the outbox is full (a client that does not read); a closed outbox means that the client is gone.
async fn send(outbox: &Outbox, message: ServerJsonRpcMessage) {
    let _ = outbox.send(message.into()).await;
}

async fn write_messages<W: AsyncWrite + Unpin>(
    mut write: W,
    mut messages: mpsc::Receiver<OutgoingMessage>,
    closed: CancellationToken,
) -> io::Result<()> {
    // When writing ends, the session ends: its answers could not be delivered.
    let _closing = closed.drop_guard();
    let mut bytes = Vec::new();
    while let Some(message) = messages.recv().await {
        bytes.clear();
        json_writer::write(&mut bytes, &message);
        bytes.push(b'\n');
        write.write_all(&bytes).await?;
        write.flush().await?;
        // One large answer must not keep its memory for the life of the connection.
        bytes.shrink_to(64 * 1024);
    }
    write.shutdown().await
}

enum Line<'a> {
    Text(&'a [u8]),
    /// With its id, if it had one.
    TooLong(Option<RequestId>),
    End,
}

/// Lines of at most `cap` bytes; blank lines are skipped.
struct Lines<R> {
    read: R,
    cap: usize,
    line: Vec<u8>,
    /// The id of a line that is too long to buffer.
    skim: Option<RequestIdScanner>,
    complete: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    fn new(read: R, cap: usize) -> Self {
        Self { read, cap, line: Vec::new(), skim: None, complete: false }
    }

    /// The next line. Cancel-safe: what was read so far stays for the next call.
    async fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if std::mem::take(&mut self.complete) {
                self.line.clear();
                self.line.shrink_to(64 * 1024);
            }
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                // A last line without a newline still counts.
                self.complete = true;
                return Ok(match (self.skim.take(), self.line.trim_ascii().is_empty()) {
                    (Some(skim), _) => Line::TooLong(skim.id()),
                    (None, true) => Line::End,
                    (None, false) => Line::Text(&self.line),
                });
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.unwrap_or(available.len());
            if let Some(skim) = &mut self.skim {
                skim.pass(&available[..taken]);
            } else {
                self.line.extend_from_slice(&available[..taken]);
                if self.line.len() > self.cap {
                    self.skim.insert(RequestIdScanner::default()).pass(&self.line);
                    self.line.clear();
                }
            }
            self.read.consume(taken + usize::from(newline.is_some()));
            if newline.is_some() {
                self.complete = true;
                if let Some(skim) = self.skim.take() {
                    return Ok(Line::TooLong(skim.id()));
                }
                if !self.line.trim_ascii().is_empty() {
                    return Ok(Line::Text(&self.line));
                }
            }
        }
    }
}
