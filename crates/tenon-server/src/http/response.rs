//! Responses: plain JSON, or an event stream for a request that asked for progress.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::stream;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, GetMeta, RequestId, ServerJsonRpcMessage};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::mcp::envelope::{IncomingMessage, MessageFault};
use crate::mcp::json_writer::{self, OutgoingMessage};
use crate::mcp::progress::{OUTBOX_CAPACITY, Outbox};
use crate::mcp::session::{PendingRequest, Session};

/// Which revision's rules map JSON-RPC errors to HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Up to 2025-11-25: every error is a response with status 200.
    Session,
    /// 2026-07-28: some errors have their own status.
    Alone,
}

fn outbox() -> (Outbox, mpsc::Receiver<OutgoingMessage>) {
    mpsc::channel(OUTBOX_CAPACITY)
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, message: impl Into<OutgoingMessage>) -> Response {
    let mut bytes = Vec::with_capacity(128);
    json_writer::write(&mut bytes, &message.into());
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Runs a request and answers it. Dropping the response before its end cancels the request.
pub(super) async fn answer(
    session: &Arc<Session>,
    id: RequestId,
    request: ClientRequest,
    shape: Shape,
    slot: OwnedSemaphorePermit,
    workers: &Handle,
) -> Response {
    let calls = matches!(request, ClientRequest::CallToolRequest(_));
    let wants_progress = request.get_meta().get_progress_token().is_some();
    let exchange = match session.begin(id.clone(), request) {
        Ok(exchange) => exchange,
        Err(refused) => return json(status(&refused, shape), *refused),
    };
    if wants_progress {
        let (outbox, messages) = outbox();
        let work = work(workers, id, async move { exchange.answer(Some(&outbox)).await });
        return event_stream(work, messages, slot);
    }
    let message = if calls {
        work(workers, id, async move { exchange.answer(None).await }).await
    } else {
        exchange.answer(None).await
    };
    drop(slot);
    json(status(&message, shape), message)
}

/// Answers a batch: its requests one after the other, so that it takes no more of the server than one request.
pub(super) async fn answer_batch(
    session: &Arc<Session>,
    messages: Vec<Result<IncomingMessage, MessageFault>>,
    slot: OwnedSemaphorePermit,
    workers: &Handle,
) -> Response {
    let mut begun: Vec<Result<(RequestId, PendingRequest), ServerJsonRpcMessage>> = Vec::new();
    for message in messages {
        match message {
            Ok(IncomingMessage::Request { id, request }) => {
                let pending = session.begin(id.clone(), *request).map_err(|refused| *refused);
                begun.push(pending.map(|pending| (id, pending)));
            }
            Ok(IncomingMessage::Notification(notification)) => session.notice(&notification),
            Ok(IncomingMessage::Response) => {}
            Err(fault) => begun.push(Err(fault.into_message())),
        }
    }
    if begun.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    let mut answers = Vec::with_capacity(begun.len());
    for one in begun {
        answers.push(match one {
            Ok((id, pending)) => work(workers, id, async move { pending.answer(None).await }).await,
            Err(error) => error,
        });
    }
    drop(slot);
    json(StatusCode::OK, OutgoingMessage::Batch(answers))
}

/// Runs the call on a worker; dropping the future aborts it there.
fn work(
    workers: &Handle,
    id: RequestId,
    answer: impl Future<Output = ServerJsonRpcMessage> + Send + 'static,
) -> impl Future<Output = ServerJsonRpcMessage> + Send + 'static {
    let task = AbortOnDropHandle::new(workers.spawn(answer));
    async move {
        task.await.unwrap_or_else(|_| {
            let error = ErrorData::internal_error("call did not complete", None);
            ServerJsonRpcMessage::error(error, Some(id))
        })
    }
}

fn status(message: &ServerJsonRpcMessage, shape: Shape) -> StatusCode {
    let ServerJsonRpcMessage::Error(error) = message else {
        return StatusCode::OK;
    };
    match (shape, error.error.code) {
        (Shape::Session, _) => StatusCode::OK,
        (Shape::Alone, ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (
            Shape::Alone,
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH,
        ) => StatusCode::BAD_REQUEST,
        (Shape::Alone, _) => StatusCode::OK,
    }
}

/// Progress events, then the answer.
fn event_stream(
    work: impl Future<Output = ServerJsonRpcMessage> + Send + 'static,
    messages: mpsc::Receiver<OutgoingMessage>,
    slot: OwnedSemaphorePermit,
) -> Response {
    let work = Box::pin(async move {
        let message = work.await;
        drop(slot);
        message
    });
    let events = stream::unfold((Some(work), messages), |(work, mut messages)| async move {
        let mut work = work?;
        let done = {
            let mut news = pin!(messages.recv());
            tokio::select! {
                biased;
                Some(message) = &mut news => Err(message),
                message = &mut work => Ok(message),
            }
        };
        match done {
            Err(progress) => Some((event(&progress), (Some(work), messages))),
            Ok(answer) => {
                // Progress reported before the end is delivered before the answer.
                let mut last = Vec::new();
                while let Ok(progress) = messages.try_recv() {
                    last.extend_from_slice(&event(&progress));
                }
                last.extend_from_slice(&event(&answer.into()));
                Some((Bytes::from(last), (None, messages)))
            }
        }
    });
    let frames = futures::StreamExt::map(events, Ok::<_, Infallible>);
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn event(message: &OutgoingMessage) -> Bytes {
    let mut bytes = b"event: message\ndata: ".to_vec();
    json_writer::write(&mut bytes, message);
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}
