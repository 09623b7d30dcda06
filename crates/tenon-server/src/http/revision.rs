//! Which protocol revision a request uses, and whether its headers agree with its body.
//!
//! 2026-07-28 repeats in headers what intermediaries route by (`MCP-Protocol-Version`, `Mcp-Method`,
//! `Mcp-Name`). A header that is missing or differs from the body is rejected: otherwise an intermediary
//! and this server could see two different requests.

use axum::http::{HeaderMap, HeaderName, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, ProtocolVersion, RequestId};

use super::head_checks::PROTOCOL_VERSION;
use super::rejection::HttpRejection;
use crate::mcp::envelope::IncomingMessage;
use crate::mcp::method_not_found;
use crate::mcp::revision::{self, Handshake};
use crate::mcp::session::Session;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How a message relates to a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// `initialize`, up to 2025-11-25.
    Opening,
    /// Everything after it.
    Session,
    /// A sessionless request of 2026-07-28.
    Alone,
}

pub(super) fn lifecycle(
    headers: &HeaderMap,
    incoming: &IncomingMessage,
    handshake: Handshake,
) -> Result<Lifecycle, HttpRejection> {
    let (id, request) = match incoming {
        IncomingMessage::Request { id, request } => (Some(id), Some(request.as_ref())),
        IncomingMessage::Notification(_) | IncomingMessage::Response => (None, None),
    };
    let header = version_header(headers, id, handshake)?;
    let stateless = header == Some(ProtocolVersion::V_2026_07_28.as_str());
    let (Some(id), Some(request)) = (id, request) else {
        return Ok(if stateless { Lifecycle::Alone } else { Lifecycle::Session });
    };
    if stateless && request.method() == "initialize" {
        return Err(HttpRejection::error(StatusCode::NOT_FOUND, Some(id.clone()), method_not_found()));
    }
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return Ok(Lifecycle::Opening);
    }
    let version = request.get_meta().protocol_version();
    let discovers = matches!(request, ClientRequest::DiscoverRequest(_));
    match (&version, header) {
        (Some(version), Some(header)) if version.as_str() != header => {
            return Err(mismatch(id, "`MCP-Protocol-Version` differs from the request's `_meta`"));
        }
        (Some(_), None) => return Err(mismatch(id, "`MCP-Protocol-Version` is missing")),
        (None, _) if !stateless && !discovers => return Ok(Lifecycle::Session),
        _ => {}
    }
    let missing = request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28);
    if !missing.is_empty() {
        let message = format!("the request's `_meta` is missing {}", missing.join(", "));
        let error = ErrorData::invalid_params(message, None);
        return Err(HttpRejection::error(StatusCode::BAD_REQUEST, Some(id.clone()), error));
    }
    check_routing(headers, id, request)?;
    Ok(Lifecycle::Alone)
}

/// Checks that a request names the revision that its session negotiated, if that revision has the header.
pub(super) fn check_session(
    headers: &HeaderMap,
    session: &Session,
    handshake: Handshake,
) -> Result<(), HttpRejection> {
    let agreed = session.revision();
    match (version_header(headers, None, handshake)?, agreed) {
        (Some(header), Some(agreed)) if agreed.as_str() == header => Ok(()),
        (Some(_), _) => Err(HttpRejection::bad_request(
            "`MCP-Protocol-Version` is not the revision that this session negotiated",
        )),
        (None, Some(agreed)) if !revision::has_version_header(&agreed) => Ok(()),
        (None, _) => Err(HttpRejection::bad_request("`MCP-Protocol-Version` is missing")),
    }
}

/// The version header, if it names a supported revision.
fn version_header<'h>(
    headers: &'h HeaderMap,
    id: Option<&RequestId>,
    handshake: Handshake,
) -> Result<Option<&'h str>, HttpRejection> {
    let mut values = headers.get_all(PROTOCOL_VERSION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let value = value.ok_or_else(|| HttpRejection::bad_request("`MCP-Protocol-Version` is malformed"))?;
    if handshake.revisions().iter().any(|revision| revision.as_str() == value) {
        return Ok(Some(value));
    }
    let shown: String = value.chars().take(32).collect();
    let asked = serde_json::from_value(shown.into()).expect("any string is a version");
    let error = ErrorData::unsupported_protocol_version(asked, handshake.revisions());
    Err(HttpRejection::error(StatusCode::BAD_REQUEST, id.cloned(), error))
}

fn mismatch(id: &RequestId, why: &'static str) -> HttpRejection {
    HttpRejection::error(StatusCode::BAD_REQUEST, Some(id.clone()), ErrorData::header_mismatch(why, None))
}

fn check_routing(headers: &HeaderMap, id: &RequestId, request: &ClientRequest) -> Result<(), HttpRejection> {
    if routed(headers, &METHOD).as_deref() != Some(request.method()) {
        return Err(mismatch(id, "`Mcp-Method` is missing or differs from the body"));
    }
    let name = match request {
        ClientRequest::CallToolRequest(call) => Some(call.params.name.as_ref()),
        _ => None,
    };
    let named = headers.contains_key(NAME).then(|| routed(headers, &NAME));
    match (name, named) {
        (Some(name), Some(Some(header))) if header == name => Ok(()),
        (None, None) => Ok(()),
        (None, Some(_)) if !matches!(request, ClientRequest::CallToolRequest(_)) => Ok(()),
        _ => Err(mismatch(id, "`Mcp-Name` is missing or differs from the body")),
    }
}

/// A header's value, decoded where it had to be encoded to fit a header.
fn routed(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
