//! Canonical JSON: one text per value, independent of the order it was built in.
//!
//! Format: object keys sorted by code point, no spaces, strings escaped only where JSON requires it, numbers in
//! their shortest form (`1.0` is `1`, `-0.0` is `0`, exponents below 1e-6 and from 1e21 on). Integers never pass
//! through a float. Keys are sorted here, so the result does not depend on how `serde_json` orders its maps.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::ser::Serialize;
use serde_json::{Number, Value};

/// The canonical text of anything that serialises to JSON.
///
/// # Errors
/// If the value has no JSON form: a map key that is not a string, or an integer over 64 bits.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    Ok(canonical_value(&serde_json::to_value(value)?))
}

/// The canonical text of a JSON value.
#[must_use]
pub fn canonical_value(value: &Value) -> String {
    let mut out = Vec::with_capacity(128);
    write_value(value, &mut out);
    String::from_utf8(out).expect("only UTF-8 is written")
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            if map.keys().is_sorted() {
                return write_members(map.iter(), out);
            }
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            // UTF-8 byte order is code point order.
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            write_members(entries.into_iter(), out);
        }
    }
}

fn write_members<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (key, item)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write_value(item, out);
    }
    out.push(b'}');
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => out.extend_from_slice(float_text(float).as_bytes()),
        None => serde_json::to_writer(out, number).expect("writing a number to memory cannot fail"),
    }
}

/// Shortest digits that parse to the same float, in ECMAScript's layout.
fn float_text(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e21).contains(&magnitude) {
        float.to_string()
    } else {
        let text = format!("{float:e}");
        if magnitude >= 1e21 { text.replace('e', "e+") } else { text }
    }
}

/// Deserializes a non-negative integer in any JSON spelling: `50` and `50.0` are equal; `50.5` and `-1` are rejected.
///
/// For `#[serde(deserialize_with = "…")]`.
///
/// # Errors
/// If the value is not a number, not integral, negative, or too large for the target (or for an exact float).
pub fn deserialize_integer<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_any(IntegerVisitor(PhantomData))
}

struct IntegerVisitor<T>(PhantomData<T>);

/// From here on, floats no longer represent every integer.
const EXACT_FLOAT_LIMIT: f64 = 9_007_199_254_740_992.0;

impl<T: TryFrom<u64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a non-negative integer")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match u64::try_from(value) {
            Ok(unsigned) => self.visit_u64(unsigned),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(value), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        if value.fract() == 0.0 && (0.0..EXACT_FLOAT_LIMIT).contains(&value) {
            self.visit_u64(value as u64)
        } else {
            Err(E::invalid_value(Unexpected::Float(value), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_by_code_point_at_every_depth() {
        let value = json!({"b": {"\u{10000}": 1, "\u{ffff}": 2, "é": 3, "z": 4}, "a": [{"y": 1, "x": 2}]});
        assert_eq!(
            canonical_value(&value),
            "{\"a\":[{\"x\":2,\"y\":1}],\"b\":{\"z\":4,\"é\":3,\"\u{ffff}\":2,\"\u{10000}\":1}}"
        );
    }

    #[test]
    fn integers_are_exact() {
        let value = json!([u64::MAX, i64::MIN, 9_007_199_254_740_993_u64, -1, 0]);
        assert_eq!(
            canonical_value(&value),
            "[18446744073709551615,-9223372036854775808,9007199254740993,-1,0]"
        );
    }

    #[test]
    fn floats_are_written_in_shortest_form() {
        for (float, text) in [
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (-2.5e-6, "-0.0000025"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.25e300, "-1.25e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(canonical_value(&json!(float)), text);
        }
    }

    #[test]
    fn strings_escape_only_what_json_requires() {
        assert_eq!(
            canonical(&"\"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{2028}é😀").unwrap(),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\u{7f}\u{2028}é😀\""
        );
    }

    #[test]
    fn structs_are_sorted_like_maps() {
        #[derive(serde::Serialize)]
        struct Item {
            uri: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'static str>,
            kind: u8,
        }
        let item = Item { uri: "file:///a", code: None, kind: 12 };
        assert_eq!(canonical(&item).unwrap(), r#"{"kind":12,"uri":"file:///a"}"#);
    }

    #[test]
    fn value_without_json_form_is_an_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(canonical(&map).is_err());
        assert!(canonical(&u128::MAX).is_err());
    }

    #[test]
    fn integers_are_accepted_in_every_json_spelling() {
        fn read(text: &str) -> Option<u32> {
            deserialize_integer(&mut serde_json::Deserializer::from_str(text)).ok()
        }
        assert_eq!(read("50"), Some(50));
        assert_eq!(read("50.0"), Some(50));
        assert_eq!(read("5e1"), Some(50));
        assert_eq!(read("-0.0"), Some(0));
        for bad in ["50.5", "-1", "-1.0", "\"5\"", "null", "true", "4294967296", "1e300", "[5]"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
