//! The JSON tree that the composer reads: strict, bounded in depth, with strings borrowed from the text.
//!
//! A duplicate key is rejected at its position, since a lenient parse would hide the mistake. Nesting deeper than
//! [`MAX_DEPTH`] is rejected, so no later walk of the tree can exhaust the stack.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::contract_types::MAX_INTEGER;

/// How deep arrays and objects may nest; `serde_json` stops at the same depth.
pub const MAX_DEPTH: usize = 127;

/// Why a text is not a usable JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ParseError {
    /// What is wrong, without the position.
    pub reason: String,
    /// One-based line; zero when the input was a value and not text.
    pub line: usize,
    /// One-based column in bytes; zero when the input was a value and not text.
    pub column: usize,
}

impl ParseError {
    pub(crate) fn from_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let suffix = format!(" at line {line} column {column}");
        Self { reason: text.strip_suffix(&suffix).unwrap_or(&text).to_owned(), line, column }
    }

    fn not_utf8(bytes: &[u8], at: usize) -> Self {
        let before = &bytes[..at];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |found| found + 1);
        Self {
            reason: "invalid UTF-8".to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: at - line_start + 1,
        }
    }
}

/// Decodes `bytes`, or reports where they stop being UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|error| ParseError::not_utf8(bytes, error.valid_up_to()))
}

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Object<'a>),
}

/// The members of a JSON object in text order; keys are unique.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Object<'a>(pub(crate) Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Object<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.0.iter().find_map(|(key, value)| (key == name).then_some(value))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Json::as_text)
    }

    pub(crate) fn set(&mut self, name: &'static str, value: Json<'a>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((Cow::Borrowed(name), value)),
        }
    }
}

impl<'a> Json<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        serde_json::from_str(utf8(bytes)?).map_err(|error| ParseError::from_json(&error))
    }

    pub(crate) fn from_value(value: &'a Value) -> Result<Self, ParseError> {
        Self::convert(value, 0)
    }

    fn convert(value: &'a Value, depth: usize) -> Result<Self, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError { reason: "recursion limit exceeded".to_owned(), line: 0, column: 0 });
        }
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => {
                Self::List(items.iter().map(|item| Self::convert(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => Self::Object(Object(
                map.iter()
                    .map(|(key, item)| Ok((Cow::Borrowed(key.as_str()), Self::convert(item, depth + 1)?)))
                    .collect::<Result<_, _>>()?,
            )),
        })
    }

    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone().into_owned()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(object) => Value::Object(
                object.0.iter().map(|(key, item)| (key.clone().into_owned(), item.to_value())).collect(),
            ),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The integer value, however it is written, if every JSON reader reads it exactly.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        let Self::Number(number) = self else { return None };
        let integer = number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() <= MAX_INTEGER as f64).then_some(float as i64)
        })?;
        (-MAX_INTEGER..=MAX_INTEGER).contains(&integer).then_some(integer)
    }

    /// The JSON type's name.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Self::Value, E> {
        Ok(Json::Number(integer.into()))
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Self::Value, E> {
        Ok(Json::Number(integer.into()))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(float).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        /// From this many members on, a set finds duplicates faster than a scan.
        const MANY: usize = 16;
        let mut members: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        let mut seen: BTreeSet<Cow<'de, str>> = BTreeSet::new();
        while let Some(Key(key)) = access.next_key()? {
            if members.len() == MANY {
                seen = members.iter().map(|(key, _)| key.clone()).collect();
            }
            let fresh = if members.len() < MANY {
                members.iter().all(|(known, _)| *known != key)
            } else {
                seen.insert(key.clone())
            };
            if !fresh {
                let shown: String = key.chars().take(100).collect();
                return Err(A::Error::custom(format_args!("duplicate key `{}`", shown.escape_debug())));
            }
            members.push((key, access.next_value()?));
        }
        Ok(Json::Object(Object(members)))
    }
}

/// An object key, borrowed where the text allows it.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(JsonVisitor)? {
            Json::Text(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("object keys are strings")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (String, usize, usize) {
        let error = Json::parse(text.as_bytes()).unwrap_err();
        (error.reason, error.line, error.column)
    }

    #[test]
    fn invalid_json_is_rejected_with_its_position() {
        for (text, reason, line, column) in [
            ("", "EOF while parsing a value", 1, 0),
            ("{\n  \"a\": 1,\n  oops\n}", "key must be a string", 3, 3),
            ("[1] 2", "trailing characters", 1, 5),
            ("\"\\ud800\"", "unexpected end of hex escape", 1, 8),
            ("\"\\ud800x\"", "unexpected end of hex escape", 1, 8),
            ("\"\\udc00\"", "lone leading surrogate in hex escape", 1, 7),
            ("1e999", "number out of range", 1, 5),
        ] {
            assert_eq!(fault(text), (reason.to_owned(), line, column), "{text}");
        }
    }

    #[test]
    fn duplicate_key_is_rejected_at_its_second_position() {
        assert_eq!(fault("{\"a\":1,\n\"a\":2}"), ("duplicate key `a`".to_owned(), 2, 3));
        let mut many: String = (0..40).map(|n| format!("\"k{n}\":0,")).collect();
        many.insert(0, '{');
        many.push_str("\n\"k3\":0}");
        assert_eq!(fault(&many), ("duplicate key `k3`".to_owned(), 2, 4));
        assert_eq!(fault("{\"a\":1,\"\\u0061\":2}").0, "duplicate key `a`");
    }

    #[test]
    fn invalid_utf8_is_rejected_with_its_position() {
        let error = Json::parse(b"{\n \"a\": \"\xff\"}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 8));
    }

    #[test]
    fn nesting_is_bounded() {
        for depth in [MAX_DEPTH + 1, 10_000, 1_000_000] {
            assert_eq!(fault(&"[".repeat(depth)).0, "recursion limit exceeded");
            assert_eq!(fault(&"{\"a\":".repeat(depth)).0, "recursion limit exceeded");
        }
        let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let value: Value = serde_json::from_str(&deepest).unwrap();
        assert_eq!(Json::parse(deepest.as_bytes()).unwrap(), Json::from_value(&value).unwrap());
        let deeper = Value::Array(vec![Value::Array(vec![value])]);
        assert_eq!(Json::from_value(&deeper).unwrap_err().reason, "recursion limit exceeded");
    }

    #[test]
    fn only_exactly_representable_integers_are_accepted() {
        for (text, integer) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("-3e2", Some(-300)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("18446744073709551615", None),
            ("1.5", None),
            ("1e300", None),
            ("\"3\"", None),
        ] {
            assert_eq!(Json::parse(text.as_bytes()).unwrap().as_integer(), integer, "{text}");
        }
    }

    #[test]
    fn values_round_trip() {
        let text = r#"{"a":[null,true,1,-2,0.5,"x\n"],"b":{"c":{}}}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Json::parse(text.as_bytes()).unwrap().to_value(), value);
        assert_eq!(Json::from_value(&value).unwrap().to_value(), value);
    }
}
