//! Answers to requests that never reach a session: status, headers and a JSON-RPC error as body.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use rmcp::model::{ErrorCode, ErrorData, RequestId};

use crate::mcp::envelope::MessageFault;

use super::response;

/// Why a request was rejected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HttpRejection {
    status: StatusCode,
    fault: Box<MessageFault>,
    header: Option<(header::HeaderName, HeaderValue)>,
    closes: bool,
}

impl HttpRejection {
    /// A JSON-RPC error with a specific HTTP status.
    pub(super) fn error(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Self {
        Self { status, fault: Box::new(MessageFault::new(id, error)), header: None, closes: false }
    }

    fn plain(status: StatusCode, why: impl Into<String>) -> Self {
        Self::error(status, None, ErrorData::new(ErrorCode::INVALID_REQUEST, why.into(), None))
    }

    pub(super) fn bad_request(why: impl Into<String>) -> Self {
        Self::plain(StatusCode::BAD_REQUEST, why)
    }

    pub(super) fn envelope(fault: MessageFault) -> Self {
        Self { status: StatusCode::BAD_REQUEST, fault: Box::new(fault), header: None, closes: false }
    }

    pub(super) fn unauthorized() -> Self {
        let mut rejection = Self::plain(StatusCode::UNAUTHORIZED, "a valid bearer token is needed");
        rejection.header = Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        rejection
    }

    pub(super) fn forbidden(why: &str) -> Self {
        Self::plain(StatusCode::FORBIDDEN, why)
    }

    pub(super) fn not_found(why: impl Into<String>) -> Self {
        Self::plain(StatusCode::NOT_FOUND, why)
    }

    pub(super) fn method_not_allowed() -> Self {
        let mut rejection = Self::plain(StatusCode::METHOD_NOT_ALLOWED, "the endpoint takes POST and DELETE");
        rejection.header = Some((header::ALLOW, HeaderValue::from_static("POST, DELETE")));
        rejection
    }

    pub(super) fn internal() -> Self {
        Self::plain(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; the log has the reason")
    }

    pub(super) fn not_acceptable() -> Self {
        let why = "`Accept` must list both application/json and text/event-stream";
        Self::plain(StatusCode::NOT_ACCEPTABLE, why)
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json")
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let mut rejection =
            Self::plain(StatusCode::PAYLOAD_TOO_LARGE, format!("request exceeds {limit} bytes"));
        rejection.closes = true;
        rejection
    }

    pub(super) fn too_slow() -> Self {
        let mut rejection = Self::plain(StatusCode::REQUEST_TIMEOUT, "the body took too long");
        rejection.closes = true;
        rejection
    }

    pub(super) fn broken_body() -> Self {
        let mut rejection = Self::bad_request("the body is incomplete");
        rejection.closes = true;
        rejection
    }

    pub(super) fn too_many_requests() -> Self {
        let mut rejection = Self::plain(StatusCode::TOO_MANY_REQUESTS, "too many requests in flight");
        rejection.header = Some((header::RETRY_AFTER, HeaderValue::from_static("1")));
        rejection
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = response::json(self.status, self.fault.into_message());
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        if self.closes {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
