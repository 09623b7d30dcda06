//! MCP over a byte stream, one JSON message per line: stdio, the unix socket and inherited pipes.
//!
//! The operating system authenticates the peer. A line above the request cap is read to its end and
//! rejected with its id, without buffering it. At the end of input, requests in flight are answered before the
//! stream closes, so `printf … | tenon mcp` works; when output fails, everything stops.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Handler;
use super::envelope::{self, IncomingMessage, MessageFault};
use super::json_writer;
use super::progress::OUTBOX_CAPACITY;
use super::request_id::RequestIdScanner;
use super::session::Session;

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
        match envelope::read(bytes) {
            Ok(IncomingMessage::Request { id, request }) => {
                let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                    let error = ErrorData::new(TOO_MANY_REQUESTS, "too many requests in flight", None);
                    send(&outbox, ServerJsonRpcMessage::error(error, Some(id))).await;
                    continue;
                };
                match session.begin(id, *request) {
                    Ok(opening) if opening.opens_session() => {
                        // The next messages depend on the state after this one.
                        send(&outbox, opening.answer(Some(&outbox)).await).await;
                    }
                    Ok(exchange) => {
                        let outbox = outbox.clone();
                        calls.spawn(async move {
                            send(&outbox, exchange.answer(Some(&outbox)).await).await;
                            drop(slot);
                        });
                    }
                    Err(refused) => send(&outbox, *refused).await,
                }
            }
            Ok(IncomingMessage::Notification(notification)) => session.notice(&notification),
            Ok(IncomingMessage::Response) => {}
            Err(fault) => send(&outbox, fault.into_message()).await,
        }
    };

    session.end_of_input();
    calls.close();
    calls.wait().await;
    drop(outbox);
    let written = writer.await.unwrap_or_else(|_| Err(io::Error::other("the stream writer panicked")));
    ended.and(written)
}

/// Waits while the outbox is full (a client that does not read); a closed outbox means that the client is gone.
async fn send(outbox: &mpsc::Sender<ServerJsonRpcMessage>, message: ServerJsonRpcMessage) {
    let _ = outbox.send(message).await;
}

async fn write_messages<W: AsyncWrite + Unpin>(
    mut write: W,
    mut messages: mpsc::Receiver<ServerJsonRpcMessage>,
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
