//! The JSON-RPC envelope: bytes in, one typed message or one fault out.
//!
//! Stricter than `rmcp`'s own parser: one object (a batch only where the revision has them), `jsonrpc` exactly `"2.0"`, an id that
//! is a string or an integer, `params` an object, and no mixture of request and response.

use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, DiscoverRequest,
    ErrorData, InitializeRequest, JsonRpcError, ListToolsRequest, PingRequest, RequestId,
    ServerJsonRpcMessage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::request_id::RequestIdScanner;

/// One message from a client.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    Request {
        id: RequestId,
        request: Box<ClientRequest>,
    },
    Notification(Box<ClientNotification>),
    /// A response to a request that the server never sends; it is ignored.
    Response,
}

/// Bytes that are not a valid message, with the id for the error response as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MessageFault {
    id: Option<RequestId>,
    error: ErrorData,
}

impl MessageFault {
    /// The sender expects a response if the message has an id.
    fn unreadable(bytes: &[u8]) -> Self {
        let mut skim = RequestIdScanner::default();
        skim.pass(bytes);
        let why = "the message is not valid JSON in UTF-8, contains a lone surrogate or a number out of range, or is nested too deeply";
        Self { id: skim.id(), error: ErrorData::parse_error(why, None) }
    }

    pub(crate) fn invalid(id: Option<RequestId>, why: impl Into<String>) -> Self {
        Self { id, error: ErrorData::invalid_request(why.into(), None) }
    }

    pub(crate) fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { id, error }
    }

    pub(crate) fn into_message(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::Error(JsonRpcError::new(self.id, self.error))
    }
}

/// The most messages of a batch.
const MAX_BATCH: usize = 100;

/// Whether `bytes` can only be a batch.
pub(crate) fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Reads the messages of a batch, each on its own.
pub(crate) fn read_batch(bytes: &[u8]) -> Result<Vec<Result<IncomingMessage, MessageFault>>, MessageFault> {
    let values: Vec<Value> = serde_json::from_slice(bytes).map_err(|_| MessageFault::unreadable(bytes))?;
    match values.len() {
        0 => Err(MessageFault::invalid(None, "a batch has at least one message")),
        1..=MAX_BATCH => Ok(values.into_iter().map(read_value).collect()),
        _ => Err(MessageFault::invalid(None, format!("a batch has at most {MAX_BATCH} messages"))),
    }
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8]) -> Result<IncomingMessage, MessageFault> {
    read_value(serde_json::from_slice(bytes).map_err(|_| MessageFault::unreadable(bytes))?)
}

fn read_value(value: Value) -> Result<IncomingMessage, MessageFault> {
    let Value::Object(members) = &value else {
        let what = if value.is_array() { "batches are not supported" } else { "a message is a JSON object" };
        return Err(MessageFault::invalid(None, what));
    };
    let id = match members.get("id") {
        None => None,
        Some(Value::String(text)) => Some(RequestId::String(text.as_str().into())),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(number) => Some(RequestId::Number(number)),
            None => return Err(MessageFault::invalid(None, "`id` is a string or an integer")),
        },
        Some(_) => return Err(MessageFault::invalid(None, "`id` is a string or an integer")),
    };
    let fault = |why: &str| Err(MessageFault::invalid(id.clone(), why));
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return fault("`jsonrpc` is exactly \"2.0\"");
    }
    let answers = members.contains_key("result") || members.contains_key("error");
    match members.get("method") {
        None if answers => return Ok(IncomingMessage::Response),
        None => return fault("a message has a `method`, a `result` or an `error`"),
        Some(_) if answers => return fault("a request has no `result` and no `error`"),
        Some(Value::String(_)) => {}
        Some(_) => return fault("`method` is a string"),
    }
    if members.get("params").is_some_and(|params| !params.is_object()) {
        return fault("`params` is an object");
    }
    let meta = members.get("params").and_then(|params| params.get("_meta"));
    if meta.is_some_and(|meta| !meta.is_object()) {
        return fault("`_meta` is an object");
    }
    // `rmcp` silently drops optional parameters of the wrong type.
    let lost_parameters = members.get("method").and_then(Value::as_str) == Some("tools/list")
        && members
            .get("params")
            .and_then(|params| params.get("cursor"))
            .is_some_and(|cursor| !cursor.is_string());
    if let Some(id) = &id
        && !lost_parameters
        && let Some(request) =
            members.get("method").and_then(Value::as_str).and_then(|name| served(name, &value))
    {
        return Ok(IncomingMessage::Request { id: id.clone(), request: Box::new(request) });
    }
    match serde_json::from_value(value) {
        Ok(ClientJsonRpcMessage::Request(message)) => {
            let request = if lost_parameters { unread(message.request) } else { message.request };
            Ok(IncomingMessage::Request { id: message.id, request: Box::new(request) })
        }
        Ok(ClientJsonRpcMessage::Notification(message)) => {
            Ok(IncomingMessage::Notification(Box::new(message.notification)))
        }
        Ok(_) => Ok(IncomingMessage::Response),
        Err(_) => Err(MessageFault::invalid(id, "not a JSON-RPC message")),
    }
}

/// A request of a supported method, if its parameters fit. `rmcp` would try one request type after the other; the method
/// name selects the type directly.
fn served(method: &str, message: &Value) -> Option<ClientRequest> {
    fn read<T: DeserializeOwned + Into<ClientRequest>>(message: &Value) -> Option<ClientRequest> {
        T::deserialize(message).ok().map(Into::into)
    }
    match method {
        "initialize" => read::<InitializeRequest>(message),
        "ping" => read::<PingRequest>(message),
        "server/discover" => read::<DiscoverRequest>(message),
        "tools/call" => read::<CallToolRequest>(message),
        "tools/list" => read::<ListToolsRequest>(message),
        _ => None,
    }
}

/// A request without its parameters, which the handler rejects as malformed.
fn unread(request: ClientRequest) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(request.method(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i32, bool) {
        let fault = read(text.as_bytes()).expect_err("must be rejected");
        (fault.error.code.0, fault.id.is_some())
    }

    #[test]
    fn invalid_message_is_rejected_with_the_id_if_readable() {
        for (text, code, has_id) in [
            ("", -32700, false),
            ("{", -32700, false),
            ("\u{feff}{}", -32700, false),
            ("[]", -32600, false),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, false),
            ("null", -32600, false),
            ("7", -32600, false),
            ("{}", -32600, false),
            (r#"{"jsonrpc":"2.0"}"#, -32600, false),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, true),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, true),
            (r#"{"id":1,"method":"ping"}"#, -32600, true),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, false),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, false),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, false),
            (r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#, -32600, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32600, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":7}}"#, -32600, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, true),
        ] {
            assert_eq!(refused(text), (code, has_id), "{text}");
        }
        assert_eq!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}").expect_err("not UTF-8").error.code.0,
            -32700
        );
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(refused(&deep).0, -32700);
    }

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        let request = read(br#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#).expect("a request");
        assert!(matches!(&request, IncomingMessage::Request { request, .. }
            if matches!(**request, ClientRequest::ListToolsRequest(_))));
        let notification = read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).expect("one");
        assert!(matches!(&notification, IncomingMessage::Notification(n)
            if matches!(**n, ClientNotification::InitializedNotification(_))));
        let response = read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).expect("a response");
        assert!(matches!(response, IncomingMessage::Response));
    }

    /// The direct path parses the same as `rmcp`'s.
    #[test]
    fn supported_methods_are_parsed_as_rmcp_parses_them() {
        for params in [
            "",
            r#","params":{}"#,
            r#","params":{"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#","params":{"name":"a.b","arguments":{"x":[1,2.5,{"y":null}],"z":"é"},"_meta":{"k":1}}"#,
            r#","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#,
            r#","params":{"cursor":"x"}"#,
        ] {
            for method in crate::mcp::SERVED {
                let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}"{params}}}"#);
                let Ok(ClientJsonRpcMessage::Request(expected)) = serde_json::from_str(&text) else {
                    panic!("not a request: {text}");
                };
                let Ok(IncomingMessage::Request { id, request }) = read(text.as_bytes()) else {
                    panic!("refused: {text}");
                };
                assert_eq!(
                    format!("{id:?} {request:?}"),
                    format!("{:?} {:?}", expected.id, expected.request)
                );
            }
        }
    }

    #[test]
    fn malformed_parameters_of_a_known_method_stay_a_request() {
        let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#;
        assert!(matches!(read(text), Ok(IncomingMessage::Request { request, .. })
            if matches!(*request, ClientRequest::CustomRequest(_))));
    }
}
