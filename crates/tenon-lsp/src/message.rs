//! JSON-RPC messages: the envelope is parsed, the payload stays raw until its type is known.

use bytes::Bytes;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec;

/// The JSON text of params or a result, as a slice of the received frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    pub const NULL: Self = Self(Bytes::from_static(b"null"));

    fn slice(frame: &Bytes, raw: Option<&RawValue>) -> Self {
        raw.map_or(Self::NULL, |raw| Self(frame.slice_ref(raw.get().as_bytes())))
    }

    /// A part of a received payload.
    pub(crate) fn of(value: &Value) -> Self {
        Self(Bytes::from(value.to_string()))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn is_null(&self) -> bool {
        self.0.as_ref() == b"null"
    }

    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }
}

/// The id that matches a response to its request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl RequestId {
    /// `None` for anything that is neither an integer nor a string.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

/// The error of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    pub(crate) const CONTENT_MODIFIED: i64 = -32801;
    pub(crate) const SERVER_CANCELLED: i64 = -32802;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Does not repeat the method: it is input of the peer.
    pub fn method_not_found() -> Self {
        Self::new(Self::METHOD_NOT_FOUND, "method not found")
    }
}

/// One message, sent or received.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Payload,
    },
    Notification {
        method: String,
        params: Payload,
    },
    Response {
        /// `None` if the id of the request could not be read.
        id: Option<RequestId>,
        outcome: Result<Payload, RpcError>,
    },
}

/// An invalid JSON-RPC message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("invalid JSON in a frame")]
    Json(#[source] serde_json::Error),
    #[error("invalid JSON-RPC message: {0}")]
    Shape(&'static str),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

impl Message {
    /// Parses a frame's body.
    pub fn parse(frame: &Bytes) -> Result<Self, MessageError> {
        let envelope: Envelope<'_> = match serde_json::from_slice(frame) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => return Err(MessageError::Shape("a field has the wrong type")),
            Err(error) => return Err(MessageError::Json(error)),
        };
        let id = RequestId::from_value(&envelope.id);
        match (envelope.method, id) {
            (Some(method), Some(id)) => {
                Ok(Self::Request { id, method, params: Payload::slice(frame, envelope.params) })
            }
            (Some(method), None) if envelope.id.is_null() => {
                Ok(Self::Notification { method, params: Payload::slice(frame, envelope.params) })
            }
            (Some(_), None) => Err(MessageError::Shape("the id is neither a string nor an integer")),
            (None, id) => match (envelope.error, id) {
                (Some(error), id) => Ok(Self::Response { id, outcome: Err(error) }),
                (None, Some(id)) => {
                    Ok(Self::Response { id: Some(id), outcome: Ok(Payload::slice(frame, envelope.result)) })
                }
                (None, None) => Err(MessageError::Shape("neither a method nor an id")),
            },
        }
    }
}

/// The id of a response whose first bytes these are; `None` if they belong to another message, or the id comes later.
pub(crate) fn response_id(head: &[u8]) -> Option<RequestId> {
    const RESULT: &[u8] = b"\"result\"";
    let at = head.windows(RESULT.len()).position(|window| window == RESULT)?;
    let fields = head[..at].trim_ascii_end();
    let mut fields = fields.strip_suffix(b",")?.to_vec();
    fields.push(b'}');
    let envelope: Envelope<'_> = serde_json::from_slice(&fields).ok()?;
    envelope.method.is_none().then(|| RequestId::from_value(&envelope.id)).flatten()
}

/// A value that can be serialised as `params` or `result`.
pub type Written = Result<Bytes, serde_json::Error>;

/// What a request or notification carries.
pub trait Params {
    type Value: Serialize + ?Sized;

    /// `None` leaves `params` out.
    fn value(&self) -> Option<&Self::Value>;
}

impl<T: Serialize + ?Sized> Params for T {
    type Value = T;

    fn value(&self) -> Option<&T> {
        Some(self)
    }
}

/// For methods without parameters. JSON-RPC allows only objects and lists, and TypeScript 7 rejects `null`, so that it would
/// not exit.
#[derive(Debug, Clone, Copy)]
pub struct NoParams;

impl Params for NoParams {
    type Value = ();

    fn value(&self) -> Option<&()> {
        None
    }
}

struct Call<'a, P: Params + ?Sized> {
    id: Option<&'a RequestId>,
    method: &'a str,
    params: &'a P,
}

impl<P: Params + ?Sized> Serialize for Call<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Message", 4)?;
        object.serialize_field("jsonrpc", "2.0")?;
        if let Some(id) = self.id {
            object.serialize_field("id", id)?;
        }
        object.serialize_field("method", self.method)?;
        if let Some(params) = self.params.value() {
            object.serialize_field("params", params)?;
        }
        object.end()
    }
}

struct Answer<'a, R: Serialize + ?Sized> {
    id: Option<&'a RequestId>,
    outcome: Result<&'a R, &'a RpcError>,
}

impl<R: Serialize + ?Sized> Serialize for Answer<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Message", 3)?;
        object.serialize_field("jsonrpc", "2.0")?;
        object.serialize_field("id", &self.id)?;
        match self.outcome {
            Ok(result) => object.serialize_field("result", result)?,
            Err(error) => object.serialize_field("error", error)?,
        }
        object.end()
    }
}

/// A request as a frame.
pub fn request<P: Params + ?Sized>(id: &RequestId, method: &str, params: &P) -> Written {
    codec::frame(&Call { id: Some(id), method, params })
}

/// A notification as a frame.
pub fn notification<P: Params + ?Sized>(method: &str, params: &P) -> Written {
    codec::frame(&Call { id: None, method, params })
}

/// A response as a frame. The id is `None` if the id of the request could not be read.
pub fn response<R: Serialize + ?Sized>(id: Option<&RequestId>, outcome: Result<&R, &RpcError>) -> Written {
    codec::frame(&Answer { id, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, MessageError> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_four_message_kinds_are_recognized() {
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#),
            Ok(Message::Request { id: RequestId::Number(1), params, .. }) if params.as_bytes() == br#"{"a":1}"#
        ));
        assert!(matches!(
            parse(r#"{"method":"m"}"#),
            Ok(Message::Notification { params, .. }) if params.is_null()
        ));
        assert!(matches!(
            parse(r#"{"id":"x","result":null}"#),
            Ok(Message::Response { id: Some(RequestId::Text(_)), outcome: Ok(result) }) if result.is_null()
        ));
        assert!(matches!(
            parse(r#"{"id":null,"error":{"code":-32700}}"#),
            Ok(Message::Response { id: None, outcome: Err(RpcError { code: RpcError::PARSE_ERROR, .. }) })
        ));
    }

    #[test]
    fn id_of_a_response_is_known_from_its_first_bytes() {
        let id = |head: &str| response_id(head.as_bytes());
        let seven = Some(RequestId::Number(7));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":[{"name"#), seven);
        assert_eq!(id(r#"{"id" : 7, "jsonrpc":"2.0" , "result" : [{"name"#), seven);
        for other in [
            r#"{"result":[{"id":7,"result"#,
            r#"{"method":"m","id":7,"params":[{"a":1,"result"#,
            r#"{"id":7,"method":"m","result":"#,
            r#"{"id":7,"res"#,
        ] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn invalid_messages_are_typed_errors() {
        assert!(matches!(parse("{"), Err(MessageError::Json(_))));
        for wrong in [
            "[]",
            "{}",
            "7",
            r#"{"id":1.5,"method":"m"}"#,
            r#"{"id":{},"method":"m"}"#,
            r#"{"id":1,"error":"no"}"#,
        ] {
            assert!(matches!(parse(wrong), Err(MessageError::Shape(_))), "{wrong}");
        }
    }

    #[test]
    fn method_without_parameters_has_no_params_field() {
        let text = |frame: Written| String::from_utf8(frame.unwrap().to_vec()).unwrap();
        assert!(text(notification("exit", &NoParams)).ends_with(r#"{"jsonrpc":"2.0","method":"exit"}"#));
        let with = text(request(&RequestId::Number(1), "m", &[1]));
        assert!(with.ends_with(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#), "{with}");
    }

    #[test]
    fn payloads_share_the_frame() {
        let frame = Bytes::from_static(br#"{"id":1,"result":[1,2,3]}"#);
        let Ok(Message::Response { outcome: Ok(result), .. }) = Message::parse(&frame) else {
            panic!("a response")
        };
        assert!(frame.as_ptr_range().contains(&result.as_bytes().as_ptr()));
        assert_eq!(result.parse::<Vec<u8>>().unwrap(), [1, 2, 3]);
    }
}
