//! What is sent, and how it is written: compact JSON, with numbers in the contract's notation.
//!
//! `serde_json` writes a 32-bit float below 1e-5 as `0.0000033`, and the 64-bit float of a JSON value as `3.3e-6`. A score
//! of the `context` surface is a 32-bit float and appears in the text and in the structured result: both must have the
//! same digits.
//!
//! The SDK answers some unknown methods with their names as messages. Here all get the same text.

use std::borrow::Cow;
use std::io::{self, Write};

use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use super::method_not_found;

/// What is sent as one line or one event.
#[derive(Debug)]
pub(crate) enum OutgoingMessage {
    One(Box<ServerJsonRpcMessage>),
    /// The answers to a batch.
    Batch(Vec<ServerJsonRpcMessage>),
}

impl From<ServerJsonRpcMessage> for OutgoingMessage {
    fn from(message: ServerJsonRpcMessage) -> Self {
        Self::One(Box::new(message))
    }
}

/// Appends `message` to `bytes`.
pub(crate) fn write(bytes: &mut Vec<u8>, message: &OutgoingMessage) {
    let mut serializer = Serializer::with_formatter(bytes, Notation);
    let written = match message {
        OutgoingMessage::One(message) => with_our_text(message).serialize(&mut serializer),
        OutgoingMessage::Batch(messages) => {
            messages.iter().map(with_our_text).collect::<Vec<_>>().serialize(&mut serializer)
        }
    };
    written.expect("protocol messages serialise, and a vector accepts all bytes");
}

fn with_our_text(message: &ServerJsonRpcMessage) -> Cow<'_, ServerJsonRpcMessage> {
    match message {
        ServerJsonRpcMessage::Error(answer) if answer.error.code == ErrorCode::METHOD_NOT_FOUND => {
            let mut answer = answer.clone();
            answer.error = method_not_found();
            Cow::Owned(ServerJsonRpcMessage::Error(answer))
        }
        _ => Cow::Borrowed(message),
    }
}

struct Notation;

impl Formatter for Notation {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut usual = Vec::with_capacity(24);
        CompactFormatter.write_f64(&mut usual, value)?;
        match usual.strip_suffix(b"e-6") {
            None => writer.write_all(&usual),
            Some(digits) => {
                if value < 0.0 {
                    writer.write_all(b"-")?;
                }
                writer.write_all(b"0.00000")?;
                digits
                    .iter()
                    .filter(|digit| digit.is_ascii_digit())
                    .try_for_each(|digit| writer.write_all(&[*digit]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: f64) -> String {
        let mut bytes = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut bytes, Notation)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn floats_read_as_the_32_bit_ones_they_were() {
        let scores =
            [(1, 299_999), (1, 300_001), (7, 1_000_003), (1, 99_999), (2, 3), (0, 1), (1, 16_777_216)];
        for (matches, words) in scores {
            let score = matches as f32 / words as f32;
            let text = serde_json::to_string(&score).unwrap();
            assert_eq!(written(text.parse().unwrap()), text);
        }
        assert_eq!(written(-3.25e-6), "-0.00000325");
        assert_eq!(written(1e-6), "0.000001");
        assert_eq!(written(1e-7), "1e-7");
    }
}
