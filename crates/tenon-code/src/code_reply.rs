//! The answer of a tool: the payload, and a text listing for clients that show their model only text.

use serde_json::Value;
use tenon_contract::budget::serialized_len;

use crate::error::CodeError;
use crate::in_flight_cache::ByteSized;

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeReply {
    /// The payload object of the contract (§7).
    pub payload: Value,
    /// A compact listing, if one was requested.
    pub listing: Option<String>,
}

impl CodeReply {
    /// A payload with its listing: the summary, then one line per result.
    pub(crate) fn new(payload: Value, lines: Option<Vec<String>>) -> Self {
        let listing = lines.map(|lines| {
            let summary = payload["summary"].as_str().unwrap_or_default();
            let next = payload["nextCursor"].as_str().map(|cursor| format!("next cursor: {cursor}"));
            let all: Vec<&str> = std::iter::once(summary)
                .chain(lines.iter().map(String::as_str))
                .chain(next.as_deref())
                .collect();
            all.join("\n")
        });
        Self { payload, listing }
    }

    /// This reply, if it has at most `limit` bytes as delivered.
    pub(crate) fn within(self, limit: usize) -> Result<Self, CodeError> {
        if self.bytes() > limit {
            return Err(CodeError::ResponseTooLarge { limit, fits: None });
        }
        Ok(self)
    }
}

impl ByteSized for CodeReply {
    fn bytes(&self) -> usize {
        let payload = serialized_len(&self.payload).expect("JSON values serialise");
        let listing = self.listing.as_ref().map(serialized_len);
        payload + listing.map_or(0, |bytes| bytes.expect("strings serialise"))
    }
}
