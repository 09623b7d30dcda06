//! Finds the id of a message that is too long to buffer or cannot be parsed, so that the error response can carry it.
//!
//! The scanner looks only at names and scalar values of the outermost object.

use rmcp::model::RequestId;

/// Longer ids are not recognised.
const LONGEST: usize = 256;

#[derive(Default)]
pub(crate) struct RequestIdScanner {
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The name or scalar value that is being read in the outermost object.
    token: Vec<u8>,
    /// Whether the name before it was `id`.
    is_id: bool,
    id: Option<RequestId>,
}

impl RequestIdScanner {
    /// Scans the next bytes.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.depth == 1 && self.token.len() <= LONGEST {
                self.token.push(byte);
            }
            if self.in_string {
                self.in_string = self.escaped || byte != b'"';
                self.escaped = byte == b'\\' && !self.escaped;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b':' if self.depth == 1 => {
                    self.is_id = self.take().is_some_and(|name| name == "id");
                }
                b',' if self.depth == 1 => self.end_value(),
                b'{' | b'[' => {
                    self.depth += 1;
                    self.token.clear();
                }
                b'}' | b']' => {
                    if self.depth == 1 {
                        self.end_value();
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
        }
    }

    /// The last id found, as a parser would read it.
    pub(crate) fn id(self) -> Option<RequestId> {
        self.id
    }

    fn end_value(&mut self) {
        let value = self.take();
        if !std::mem::take(&mut self.is_id) {
            return;
        }
        self.id = match value {
            Some(serde_json::Value::String(text)) => Some(RequestId::String(text.into())),
            Some(value) => value.as_i64().map(RequestId::Number),
            None => None,
        };
    }

    /// The bytes since the last name or value, without the byte that ended it.
    fn take(&mut self) -> Option<serde_json::Value> {
        let token = std::mem::take(&mut self.token);
        let (_, token) = token.split_last()?;
        serde_json::from_slice(token).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn skimmed(text: &str, piece: usize) -> Option<RequestId> {
        let mut skim = RequestIdScanner::default();
        text.as_bytes().chunks(piece).for_each(|bytes| skim.pass(bytes));
        skim.id()
    }

    #[test]
    fn id_is_found_at_any_position() {
        let number = Some(RequestId::Number(7));
        for text in [
            r#"{"id":7,"method":"x","params":{"id":8}}"#,
            r#"{"method":"x","params":{"id":8,"deep":[{"id":9}]},"jsonrpc":"2.0","id":7}"#,
            r#"{ "a" : "\"id\":3,\\" , "id" : 7 , "b" : [ 1, 2 ] }"#,
            r#"{"id":5,"id":7}"#,
            // Truncated.
            r#"{"id":7,"params":{"note":"zzz"#,
        ] {
            assert_eq!(skimmed(text, 1), number, "{text}");
            assert_eq!(skimmed(text, 1000), number, "{text}");
        }
        assert_eq!(skimmed(r#"{"id":"a\u00e9\"}"}"#, 3), Some(RequestId::String("aé\"}".into())));
        for none in [
            r#"{"method":"x"}"#,
            r#"{"id":null}"#,
            r#"{"id":1.5}"#,
            r#"{"id":[7]}"#,
            r#"[{"id":7}]"#,
            "id",
            "}}}]]",
        ] {
            assert_eq!(skimmed(none, 1), None, "{none}");
        }
        assert_eq!(skimmed(&json!({"id": "x".repeat(1000)}).to_string(), 64), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("id|[a-z\"\\\\]{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_parser(value in any_json(), piece in 1..9usize, pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let expected = match value.get("id") {
                Some(Value::String(text)) => Some(RequestId::String(text.as_str().into())),
                Some(other) => other.as_i64().map(RequestId::Number),
                None => None,
            };
            prop_assert_eq!(skimmed(&text, piece), expected);
        }
    }
}
