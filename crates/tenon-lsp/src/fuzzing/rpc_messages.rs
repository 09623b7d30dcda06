//! A JSON-RPC message of a language server comes back when it is written and read again.

use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use tokio_util::codec::Decoder;

use crate::codec::FrameDecoder;
use crate::message::{self, Message, Payload};

/// `data` is the body of a frame.
pub fn check(data: &[u8]) {
    let Ok(parsed) = Message::parse(&Bytes::copy_from_slice(data)) else { return };
    let written = match &parsed {
        Message::Request { id, method, params } => message::request(id, method, raw(params)),
        Message::Notification { method, params } => message::notification(method, raw(params)),
        Message::Response { id, outcome } => message::response(id.as_ref(), outcome.as_ref().map(raw)),
    };
    let mut frame = BytesMut::from(written.expect("what was parsed can be written").as_ref());
    let body = FrameDecoder::default().decode(&mut frame).expect("a frame of ours").expect("a whole frame");
    assert_eq!(Message::parse(&body).expect("a message of ours"), parsed);
    let id = match &parsed {
        Message::Response { id, outcome: Ok(_) } => id.clone(),
        _ => None,
    };
    // The id in a head is that of the message, or it is not recognised.
    let head = &body[..body.len().min(256)];
    assert!(message::response_id(head).is_none_or(|found| Some(found) == id));
}

fn raw(payload: &Payload) -> &RawValue {
    payload.parse().expect("a payload is JSON")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("rpc_messages", super::check);
    }
}
