//! Responses with the headers that every response of the console has.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;

/// No script or style inside pages, no other hosts, no frames.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(crate) fn respond(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(crate) fn html(status: StatusCode, text: String) -> Response {
    respond(status, "text/html; charset=utf-8", text)
}

pub(crate) fn text(status: StatusCode, text: &'static str) -> Response {
    respond(status, "text/plain; charset=utf-8", text)
}

/// Sends the browser to another page of the console with GET.
pub(crate) fn see_other(path: &str) -> Response {
    let mut response = respond(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    // Paths are built from ASCII and encoded values.
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/console/"));
    response.headers_mut().insert(header::LOCATION, location);
    response
}
