//! Cursors: where the next page of a list starts, bound to the tool and its arguments.
//!
//! A cursor holds the sort key of the last item delivered, not an offset: writes between two pages neither repeat an item
//! nor hide one. Inside an item that was cut it holds the bytes delivered so far and a digest of the item, so that slices
//! of two versions are never joined. Format: a JSON array in base64url.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tenon_contract::cursor::RequestKey;
use tenon_contract::id::sha256_hex;
use tenon_contract::json::canonical_value;

use crate::error::WorkError;

/// Longer texts are not decoded. A sort key may contain a graph key of 3 × 256 characters.
const MAX_BYTES: usize = 8192;

/// Enough of a hash to detect a cursor of another request; cursors are not secrets.
const KEY_DIGITS: usize = 12;

/// Identifies the request that a cursor belongs to.
#[derive(Debug, Clone)]
pub(crate) struct CursorKey(String);

impl CursorKey {
    /// `bound_to` names a state that all pages must share, where sort keys are positions in a computed list.
    pub(crate) fn new(tool: &str, workspace: &str, args: &Value, bound_to: &str) -> Self {
        let key = RequestKey::new(tool, &[&workspace, &canonical_value(args), &bound_to]);
        Self(key.as_str()[..KEY_DIGITS].to_owned())
    }
}

/// The sort key of an item: integers and texts, compared in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SortKey(Vec<Value>);

impl SortKey {
    pub(crate) fn ints(parts: &[i64]) -> Self {
        Self(parts.iter().map(|&part| part.into()).collect())
    }

    pub(crate) fn of(int: i64, text: &str) -> Self {
        Self(vec![int.into(), text.into()])
    }

    pub(crate) fn int(&self, index: usize) -> Result<i64, WorkError> {
        self.0.get(index).and_then(Value::as_i64).ok_or_else(invalid_cursor)
    }

    pub(crate) fn text(&self, index: usize) -> Result<&str, WorkError> {
        self.0.get(index).and_then(Value::as_str).ok_or_else(invalid_cursor)
    }
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Which list of an answer continues, where each has its own cursor.
    pub stream: usize,
    /// The last item delivered; none at the start of a list.
    pub sort_key: Option<SortKey>,
    /// How much of that item was delivered, if not all of it.
    pub inside: Option<ItemOffset>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemOffset {
    pub offset: usize,
    pub digest: String,
}

impl Cursor {
    pub(crate) fn encode(&self, key: &CursorKey) -> String {
        let sort_key = self.sort_key.as_ref().map(|sort_key| &sort_key.0);
        let parts = match &self.inside {
            None => json!([key.0, self.stream, sort_key]),
            Some(inside) => json!([key.0, self.stream, sort_key, inside.offset, inside.digest]),
        };
        URL_SAFE_NO_PAD.encode(canonical_value(&parts))
    }

    pub(crate) fn decode(text: &str, key: &CursorKey) -> Result<Self, WorkError> {
        if text.len() > MAX_BYTES {
            return Err(invalid_cursor());
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid_cursor())?;
        let parts: Vec<Value> = serde_json::from_slice(&json).map_err(|_| invalid_cursor())?;
        if !matches!(parts.len(), 3 | 5) {
            return Err(invalid_cursor());
        }
        if parts[0].as_str() != Some(&key.0) {
            return Err(WorkError::invalid("the cursor belongs to another call, or the list changed")
                .recovery("call again without cursor"));
        }
        let sort_key = match &parts[2] {
            Value::Null => None,
            Value::Array(sort_key) if sort_key.iter().all(|part| part.is_i64() || part.is_string()) => {
                Some(SortKey(sort_key.clone()))
            }
            _ => return Err(invalid_cursor()),
        };
        let inside = match parts.get(3..) {
            Some([offset, digest]) => Some(ItemOffset {
                offset: index(offset)?,
                digest: digest.as_str().ok_or_else(invalid_cursor)?.to_owned(),
            }),
            _ => None,
        };
        Ok(Self { stream: index(&parts[1])?, sort_key, inside })
    }
}

fn index(value: &Value) -> Result<usize, WorkError> {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).ok_or_else(invalid_cursor)
}

fn invalid_cursor() -> WorkError {
    WorkError::invalid("invalid cursor").recovery("call again without cursor")
}

/// Distinguishes versions of an item.
pub(crate) fn digest(text: &str) -> String {
    sha256_hex(text)[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::WorkErrorCode;

    fn key(tool: &str) -> CursorKey {
        CursorKey::new(tool, "w", &json!({"task": "TASK-001"}), "")
    }

    #[test]
    fn cursor_is_accepted_for_its_own_request_only() {
        let cursor = Cursor {
            stream: 1,
            sort_key: Some(SortKey::of(7, "a|b")),
            inside: Some(ItemOffset { offset: 12, digest: digest("x") }),
        };
        let text = cursor.encode(&key("a"));
        assert_eq!(Cursor::decode(&text, &key("a")).unwrap(), cursor);
        assert_eq!(Cursor::decode(&text, &key("b")).unwrap_err().code(), WorkErrorCode::InvalidInput);
        let start = Cursor { stream: 0, sort_key: None, inside: None };
        assert_eq!(Cursor::decode(&start.encode(&key("a")), &key("a")).unwrap(), start);
    }

    proptest! {
        #[test]
        fn other_texts_are_rejected(text in "\\PC{0,40}", flip in 0_usize..60, byte in any::<u8>()) {
            prop_assert!(Cursor::decode(&text, &key("a")).is_err());
            let good = Cursor { stream: 0, sort_key: Some(SortKey::ints(&[5])), inside: None };
            let mut bytes = good.encode(&key("a")).into_bytes();
            let at = flip % bytes.len();
            bytes[at] = byte;
            if let Ok(text) = String::from_utf8(bytes)
                && let Ok(cursor) = Cursor::decode(&text, &key("a"))
            {
                // A flip may yield another well-formed sort key, but nothing else.
                prop_assert!(cursor.inside.is_none());
            }
        }
    }
}
