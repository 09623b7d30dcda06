//! Cursors (format v2): where the next page of a result starts, bound to one request and one workspace state.
//!
//! Format: `{"v":2,"o":offset,"k":request key,"s":snapshot key}` as base64url without padding. On input the keys may
//! come in any order; any other deviation is rejected.
//!
//! The types enforce the order of the checks: [`Cursor::decode`] needs the request and returns a [`DecodedCursor`],
//! which only turns into a [`Cursor`] through [`DecodedCursor::bind`] with the current state. So a cursor for another
//! request or another state always ends in an error.

use std::fmt::Display;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::epoch::EpochTuple;
use crate::id::sha256_hex_joined;
use crate::json::deserialize_integer;

const VERSION: u64 = 2;
/// Cursors that Tenon issues have under 300 characters; longer input is rejected before decoding.
const MAX_CURSOR_BYTES: usize = 1024;
/// The largest integer that every JSON parser represents exactly.
const MAX_OFFSET: u64 = (1 << 53) - 1;

/// Identifies a request: the hash of `v1|tool|part|…`, with the canonical inputs that affect the result as parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(String);

impl RequestKey {
    /// `parts` are in the order that the tool's contract lists them.
    #[must_use]
    pub fn new(tool: &str, parts: &[&dyn Display]) -> Self {
        let mut all: Vec<&dyn Display> = vec![&"v1", &tool];
        all.extend(parts);
        Self(sha256_hex_joined(&all))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Identifies a request in one state of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotKey(String);

impl SnapshotKey {
    #[must_use]
    pub fn new(request: &RequestKey, state: &EpochTuple) -> Self {
        Self(sha256_hex_joined(&[&"v1", &"snapshot", &request.0, state]))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a cursor is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// Not a cursor that Tenon issued, or issued for another request.
    #[error("invalid cursor: {0}")]
    Invalid(CursorFault),
    /// The workspace changed since the cursor was issued.
    #[error("stale cursor: the workspace changed since it was issued")]
    Stale,
}

/// What is wrong with an invalid cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorFault {
    #[error("not base64url without padding")]
    Encoding,
    #[error("not a cursor object")]
    Shape,
    #[error("unsupported version")]
    Version,
    #[error("issued for another request")]
    OtherRequest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(deserialize_with = "deserialize_integer")]
    v: u64,
    #[serde(deserialize_with = "deserialize_integer")]
    o: u64,
    k: String,
    s: String,
}

/// An offset into the canonical result of a request in the current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    offset: u64,
    request: RequestKey,
    snapshot: SnapshotKey,
}

/// A cursor for the right request, whose state is not checked yet.
#[derive(Clone, Debug)]
pub struct DecodedCursor {
    offset: u64,
    request: RequestKey,
    snapshot: String,
}

impl Cursor {
    /// The start of the result, for a request without a cursor.
    #[must_use]
    pub fn start(request: RequestKey, snapshot: SnapshotKey) -> Self {
        Self { offset: 0, request, snapshot }
    }

    /// Reads a cursor that a client sent back with `request`.
    ///
    /// # Errors
    /// [`CursorError::Invalid`] unless the text is an intact cursor for this request.
    pub fn decode(text: &str, request: &RequestKey) -> Result<DecodedCursor, CursorError> {
        let wire = read(text).map_err(CursorError::Invalid)?;
        if wire.v != VERSION {
            return Err(CursorError::Invalid(CursorFault::Version));
        }
        if wire.o > MAX_OFFSET {
            return Err(CursorError::Invalid(CursorFault::Shape));
        }
        if wire.k != request.0 {
            return Err(CursorError::Invalid(CursorFault::OtherRequest));
        }
        Ok(DecodedCursor { offset: wire.o, request: request.clone(), snapshot: wire.s })
    }

    /// The text for the client.
    #[must_use]
    pub fn encode(&self) -> String {
        let wire = Wire { v: VERSION, o: self.offset, k: self.request.0.clone(), s: self.snapshot.0.clone() };
        URL_SAFE_NO_PAD
            .encode(serde_json::to_vec(&wire).expect("two numbers and two strings have a JSON form"))
    }

    /// The key under which the full result is stored.
    #[must_use]
    pub fn snapshot(&self) -> &SnapshotKey {
        &self.snapshot
    }

    /// The page that starts here in a result of `total` items, and the cursor of the next page if there is one. Past
    /// the end the page is empty.
    #[must_use]
    pub fn page(&self, page_size: usize, total: usize) -> (Range<usize>, Option<Cursor>) {
        let start = usize::try_from(self.offset).unwrap_or(total).min(total);
        let end = start.saturating_add(page_size).min(total);
        let next = (end < total).then(|| Cursor { offset: end as u64, ..self.clone() });
        (start..end, next)
    }
}

impl DecodedCursor {
    /// The cursor, if it was issued for the current state.
    ///
    /// # Errors
    /// [`CursorError::Stale`] if it was issued for another state.
    pub fn bind(self, current: &SnapshotKey) -> Result<Cursor, CursorError> {
        if self.snapshot != current.0 {
            return Err(CursorError::Stale);
        }
        Ok(Cursor { offset: self.offset, request: self.request, snapshot: current.clone() })
    }
}

fn read(text: &str) -> Result<Wire, CursorFault> {
    if text.len() > MAX_CURSOR_BYTES {
        return Err(CursorFault::Encoding);
    }
    let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorFault::Encoding)?;
    // serde would also accept the fields as an array.
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(CursorFault::Shape);
    }
    serde_json::from_slice(&json).map_err(|_| CursorFault::Shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::EpochTuple;

    fn request() -> RequestKey {
        RequestKey::new("vscode.lsp.references", &[&"file:///abs/path/to/file.ts", &10, &4, &false])
    }

    fn snapshot(epochs: &[u64]) -> SnapshotKey {
        SnapshotKey::new(&request(), &EpochTuple::new("00", epochs))
    }

    fn encode(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    fn fault(text: &str) -> CursorFault {
        match Cursor::decode(text, &request()) {
            Err(CursorError::Invalid(fault)) => fault,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn keys_hash_the_joined_string_of_the_contract() {
        let joined = "v1|vscode.lsp.references|file:///abs/path/to/file.ts|10|4|false";
        assert_eq!(request().as_str(), crate::id::sha256_hex(joined));
        let alone = RequestKey::new("vscode.lsp.diagnostics.workspace", &[]);
        assert_eq!(alone.as_str(), crate::id::sha256_hex("v1|vscode.lsp.diagnostics.workspace"));
        let state = format!("v1|snapshot|{}|roots:00|epochs:2,17,3", request().as_str());
        assert_eq!(snapshot(&[2, 17, 3]).as_str(), crate::id::sha256_hex(state));
    }

    #[test]
    fn cursor_is_compact_json_in_base64url() {
        let (k, s) = (request(), snapshot(&[1]));
        let cursor = Cursor { offset: 50, ..Cursor::start(k.clone(), s.clone()) };
        let json = format!(r#"{{"v":2,"o":50,"k":"{}","s":"{}"}}"#, k.as_str(), s.as_str());
        assert_eq!(cursor.encode(), encode(&json));
        assert_eq!(Cursor::decode(&cursor.encode(), &k).unwrap().bind(&s).unwrap(), cursor);
    }

    #[test]
    fn cursor_for_another_state_is_stale_and_for_another_request_invalid() {
        let cursor = Cursor::start(request(), snapshot(&[1])).encode();
        let decoded = Cursor::decode(&cursor, &request()).unwrap();
        assert_eq!(decoded.bind(&snapshot(&[2])), Err(CursorError::Stale));
        let other =
            RequestKey::new("vscode.lsp.references", &[&"file:///abs/path/to/file.ts", &10, &5, &false]);
        let error = Cursor::decode(&cursor, &other).unwrap_err();
        assert_eq!(error, CursorError::Invalid(CursorFault::OtherRequest));
    }

    #[test]
    fn key_order_and_integer_spelling_do_not_matter() {
        let (k, s) = (request(), snapshot(&[1]));
        for offset in ["50", "50.0", "5e1"] {
            let json = format!(r#" {{ "s":"{}","k":"{}", "o":{offset},"v":2.0}}"#, s.as_str(), k.as_str());
            let cursor = Cursor::decode(&encode(&json), &k).unwrap().bind(&s).unwrap();
            assert_eq!(cursor.page(10, 100).0, 50..60);
        }
    }

    #[test]
    fn malformed_cursors_are_rejected() {
        let k = request();
        let k = k.as_str();
        for text in ["", "=", "e30=", "e3", "e+", "{}", "é", "e30 ", "e31"] {
            let fault = fault(text);
            assert!(matches!(fault, CursorFault::Encoding | CursorFault::Shape), "{text}: {fault}");
        }
        // The unused bits of the last character must be zero.
        assert_eq!(fault("e31"), CursorFault::Encoding);
        assert_eq!(
            fault(&encode(&format!(r#"{{"v":2,"o":0,"k":"{k}","s":"{}"}}"#, "s".repeat(2000)))),
            CursorFault::Encoding
        );
        for json in [
            "null".to_owned(),
            "[]".to_owned(),
            format!(r#"[2,0,"{k}","s"]"#),
            format!(r#"{{"v":2,"o":-1,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":0.5,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":"5","k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":1e300,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":9007199254740992,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":18446744073709551616,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":null,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":0,"k":"{k}","s":5}}"#),
            format!(r#"{{"v":2,"o":0,"k":"{k}"}}"#),
            r#"{"v":2,"o":0,"s":"s"}"#.to_owned(),
            format!(r#"{{"o":0,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":0,"o":0,"k":"{k}","s":"s"}}"#),
            format!(r#"{{"v":2,"o":0,"k":"{k}","s":"s","x":1}}"#),
            format!(r#"{{"v":2,"o":0,"k":"{k}","s":"s"}}}}"#),
            format!(r#"{{"v":2,"o":0,"k":"{k}","s":"s""#),
        ] {
            assert_eq!(fault(&encode(&json)), CursorFault::Shape, "{json}");
        }
        assert_eq!(
            fault(&URL_SAFE_NO_PAD.encode(b"{\"v\":2,\"o\":0,\"k\":\"\xff\",\"s\":\"\"}")),
            CursorFault::Shape
        );
        for version in [0, 1, 3] {
            let json = format!(r#"{{"v":{version},"o":0,"k":"{k}","s":"s"}}"#);
            assert_eq!(fault(&encode(&json)), CursorFault::Version);
        }
    }

    #[test]
    fn pages_cover_each_item_once() {
        let mut cursor = Some(Cursor::start(request(), snapshot(&[1])));
        let mut seen = Vec::new();
        while let Some(current) = cursor {
            let (page, next) = current.page(40, 100);
            seen.extend(page);
            cursor = next;
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn cursor_past_the_end_gets_an_empty_last_page() {
        let far = Cursor { offset: MAX_OFFSET, ..Cursor::start(request(), snapshot(&[1])) };
        assert_eq!(far.page(usize::MAX, 10), (10..10, None));
        assert_eq!(Cursor::start(request(), snapshot(&[1])).page(10, 0), (0..0, None));
        assert_eq!(Cursor::start(request(), snapshot(&[1])).page(10, 10), (0..10, None));
    }
}
