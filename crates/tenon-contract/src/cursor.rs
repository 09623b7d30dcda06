//! Cursors (format v2): where the next page of an answer starts, bound to the request and to the state it was about.
//!
//! Format: `{"v":2,"o":offset,"k":request key,"s":snapshot key}` as base64url without padding. On input the order of
//! the keys is free; everything else fails closed.
//!
//! The types hold the order of the checks: [`Cursor::decode`] wants the request and yields a [`DecodedCursor`], which
//! gives away nothing but, through [`DecodedCursor::bind`], a [`Cursor`] for the current state. A cursor for another
//! request or another state therefore cannot be had, only an error.

use std::fmt::Display;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::epoch::EpochTuple;
use crate::id::sha256_hex_joined;
use crate::json::deserialize_integer;

const VERSION: u64 = 2;
/// Ours have under 300 characters; whatever is longer is not decoded at all.
const MAX_CURSOR_BYTES: usize = 1024;
/// The largest integer that every JSON reader keeps exact.
const MAX_OFFSET: u64 = (1 << 53) - 1;

/// Names a request: its tool and the canonical inputs that affect the result, `v1|tool|part|…`, hashed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(String);

impl RequestKey {
    /// The parts in the order the tool's contract lists them.
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

/// Names a request in one state of the workspace.
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

/// Why a cursor is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// It is no cursor of ours, or not one for this request.
    #[error("invalid cursor: {0}")]
    Invalid(CursorFault),
    /// The workspace changed since it was made.
    #[error("stale cursor: the workspace changed since it was made")]
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
    #[error("made for another request")]
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

/// A place in the canonical result of a request in the current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    offset: u64,
    request: RequestKey,
    snapshot: SnapshotKey,
}

/// A cursor that belongs to the request but may be about an older state.
#[derive(Clone, Debug)]
pub struct DecodedCursor {
    offset: u64,
    request: RequestKey,
    snapshot: String,
}

impl Cursor {
    /// Where a request without a cursor starts.
    #[must_use]
    pub fn start(request: RequestKey, snapshot: SnapshotKey) -> Self {
        Self { offset: 0, request, snapshot }
    }

    /// Reads a cursor that a client sent back with `request`.
    ///
    /// # Errors
    /// [`CursorError::Invalid`] for everything but an intact cursor of this request.
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

    /// The text a client gets.
    #[must_use]
    pub fn encode(&self) -> String {
        let wire = Wire { v: VERSION, o: self.offset, k: self.request.0.clone(), s: self.snapshot.0.clone() };
        URL_SAFE_NO_PAD
            .encode(serde_json::to_vec(&wire).expect("two numbers and two strings have a JSON form"))
    }

    /// The state it is about: the key under which its full result is kept.
    #[must_use]
    pub fn snapshot(&self) -> &SnapshotKey {
        &self.snapshot
    }

    /// The page that starts here in a result of `total` items, and the cursor of the next one if there is more. Past
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
    /// The cursor, provided that it is about the current state.
    ///
    /// # Errors
    /// [`CursorError::Stale`] when it is about another one.
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
    // serde would also read the fields from an array.
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
    fn keys_hash_their_parts_as_the_contract_writes_them() {
        let joined = "v1|vscode.lsp.references|file:///abs/path/to/file.ts|10|4|false";
        assert_eq!(request().as_str(), crate::id::sha256_hex(joined));
        let alone = RequestKey::new("vscode.lsp.diagnostics.workspace", &[]);
        assert_eq!(alone.as_str(), crate::id::sha256_hex("v1|vscode.lsp.diagnostics.workspace"));
        let state = format!("v1|snapshot|{}|roots:00|epochs:2,17,3", request().as_str());
        assert_eq!(snapshot(&[2, 17, 3]).as_str(), crate::id::sha256_hex(state));
    }

    #[test]
    fn a_cursor_is_compact_json_in_base64url() {
        let (k, s) = (request(), snapshot(&[1]));
        let cursor = Cursor { offset: 50, ..Cursor::start(k.clone(), s.clone()) };
        let json = format!(r#"{{"v":2,"o":50,"k":"{}","s":"{}"}}"#, k.as_str(), s.as_str());
        assert_eq!(cursor.encode(), encode(&json));
        assert_eq!(Cursor::decode(&cursor.encode(), &k).unwrap().bind(&s).unwrap(), cursor);
    }

    #[test]
    fn another_state_is_stale_and_another_request_invalid() {
        let cursor = Cursor::start(request(), snapshot(&[1])).encode();
        let decoded = Cursor::decode(&cursor, &request()).unwrap();
        assert_eq!(decoded.bind(&snapshot(&[2])), Err(CursorError::Stale));
        let other =
            RequestKey::new("vscode.lsp.references", &[&"file:///abs/path/to/file.ts", &10, &5, &false]);
        let refused = Cursor::decode(&cursor, &other).unwrap_err();
        assert_eq!(refused, CursorError::Invalid(CursorFault::OtherRequest));
    }

    #[test]
    fn order_of_keys_and_spelling_of_integers_are_free() {
        let (k, s) = (request(), snapshot(&[1]));
        for offset in ["50", "50.0", "5e1"] {
            let json = format!(r#" {{ "s":"{}","k":"{}", "o":{offset},"v":2.0}}"#, s.as_str(), k.as_str());
            let cursor = Cursor::decode(&encode(&json), &k).unwrap().bind(&s).unwrap();
            assert_eq!(cursor.page(10, 100).0, 50..60);
        }
    }

    #[test]
    fn whatever_is_no_cursor_fails_closed() {
        let k = request();
        let k = k.as_str();
        for text in ["", "=", "e30=", "e3", "e+", "{}", "é", "e30 ", "e31"] {
            let fault = fault(text);
            assert!(matches!(fault, CursorFault::Encoding | CursorFault::Shape), "{text}: {fault}");
        }
        // The last character carries two bits that must be zero.
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
    fn pages_cover_the_result_once() {
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
    fn past_the_end_is_an_empty_last_page() {
        let far = Cursor { offset: MAX_OFFSET, ..Cursor::start(request(), snapshot(&[1])) };
        assert_eq!(far.page(usize::MAX, 10), (10..10, None));
        assert_eq!(Cursor::start(request(), snapshot(&[1])).page(10, 0), (0..0, None));
        assert_eq!(Cursor::start(request(), snapshot(&[1])).page(10, 10), (0..10, None));
    }
}
