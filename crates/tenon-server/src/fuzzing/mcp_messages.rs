//! Messages of MCP clients: what is accepted is what the JSON says, and what is rejected is answered with its id.

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::Value;

use crate::mcp::envelope::{self, IncomingMessage};
use crate::mcp::request_id::RequestIdScanner;

/// `data` is one message.
pub fn check(data: &[u8]) {
    let value: Option<Value> = serde_json::from_slice(data).ok();
    check_scanner(data, value.as_ref());
    match envelope::read(data) {
        Ok(message) => check_accepted(&message, value.as_ref().expect("an accepted message is JSON")),
        Err(fault) => {
            let answer = serde_json::to_value(fault.into_message()).expect("an error has a JSON form");
            let code = answer["error"]["code"].as_i64();
            assert_eq!(code, Some(if value.is_some() { -32600 } else { -32700 }), "{answer}");
            let named = value.as_ref().filter(|value| value.is_object()).and_then(id);
            if value.is_some() {
                assert_eq!(id(&answer), named, "{answer}");
            }
        }
    }
}

/// The id of a message, if it is a valid one.
fn id(message: &Value) -> Option<RequestId> {
    match message.get("id")? {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        other => other.as_i64().map(RequestId::Number),
    }
}

fn check_accepted(message: &IncomingMessage, value: &Value) {
    assert_eq!(value["jsonrpc"], "2.0");
    let (is_call, named) = (value.get("method").is_some_and(Value::is_string), id(value));
    match message {
        IncomingMessage::Request { id, request } => {
            assert!(is_call && named.as_ref() == Some(id));
            assert_eq!(value["method"], request.method());
            // The direct path reads the same as the parser of `rmcp`, where that keeps the parameters.
            if let Ok(ClientJsonRpcMessage::Request(expected)) = serde_json::from_value(value.clone())
                && std::mem::discriminant(&expected.request) == std::mem::discriminant(&**request)
            {
                assert_eq!(format!("{request:?}"), format!("{:?}", expected.request));
            }
        }
        IncomingMessage::Notification(_) => assert!(is_call && named.is_none()),
        IncomingMessage::Response => assert!(!is_call),
    }
}

/// The scanner finds the same id in any pieces, and the one that a parser finds.
fn check_scanner(data: &[u8], value: Option<&Value>) {
    let scanned = |piece: usize| {
        let mut scanner = RequestIdScanner::default();
        data.chunks(piece).for_each(|bytes| scanner.pass(bytes));
        scanner.id()
    };
    let whole = scanned(data.len().max(1));
    assert_eq!(scanned(1), whole);
    assert_eq!(scanned(7), whole);
    // Longer ids are not recognised.
    if let Some(value) = value
        && data.len() <= 256
    {
        assert_eq!(whole, id(value));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("mcp_messages", super::check);
    }
}
