//! Answers: plain JSON, or an event stream for a request that asked for progress.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::stream;
use rmcp::model::{ClientRequest, ErrorCode, GetMeta, RequestId, ServerJsonRpcMessage};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::mcp::progress::{OUTBOX_CAPACITY, Outbox};
use crate::mcp::session::{Exchange, Session};

/// Whose rules map JSON-RPC errors to statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// 2025-11-25: an error answer is an answer, 200.
    Session,
    /// 2026-07-28: some errors have a status of their own.
    Alone,
}

pub(super) fn outbox() -> (Outbox, mpsc::Receiver<ServerJsonRpcMessage>) {
    mpsc::channel(OUTBOX_CAPACITY)
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, message: &ServerJsonRpcMessage) -> Response {
    let bytes = serde_json::to_vec(message).expect("protocol messages serialise");
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
) -> Response {
    let wants_progress = request.get_meta().get_progress_token().is_some();
    let exchange = match session.begin(id, request) {
        Ok(exchange) => exchange,
        Err(refused) => return json(status(&refused, shape), &refused),
    };
    if wants_progress {
        return event_stream(exchange, slot);
    }
    let (outbox, _unread) = outbox();
    let message = exchange.answer(&outbox).await;
    drop(slot);
    json(status(&message, shape), &message)
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

/// Progress as it comes, then the answer, then the end.
fn event_stream(exchange: Exchange, slot: OwnedSemaphorePermit) -> Response {
    let (outbox, messages) = outbox();
    let work = Box::pin(async move {
        let message = exchange.answer(&outbox).await;
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
                // What was reported before the end is delivered before the answer.
                let mut last = Vec::new();
                while let Ok(progress) = messages.try_recv() {
                    last.extend_from_slice(&event(&progress));
                }
                last.extend_from_slice(&event(&answer));
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

fn event(message: &ServerJsonRpcMessage) -> Bytes {
    let mut bytes = b"event: message\ndata: ".to_vec();
    serde_json::to_writer(&mut bytes, message).expect("protocol messages serialise");
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}
