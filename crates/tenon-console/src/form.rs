//! Query strings and form bodies: `application/x-www-form-urlencoded`.

use std::fmt::Write;

/// The most fields that are read.
const MAX_FIELDS: usize = 200;

/// The fields of a query or a form, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|part| !part.is_empty()).take(MAX_FIELDS);
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(n, v)| (decoded(n), decoded(v)))
                .collect(),
        )
    }

    /// The first field of this name, without blanks around it; `None` if it is blank.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        Some(found.1.trim()).filter(|value| !value.is_empty())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex =
            |range: &[u8]| std::str::from_utf8(range).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, tail.get(..2).and_then(hex)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            (other, _) => {
                bytes.push(*other);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

/// A value for a query string.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_bad_escapes_stay() {
        let fields = Fields::parse("q=a+b%20c&path=src%2F%C3%A4.py&x=%zz%2&empty=&text=one%0D%0Atwo");
        assert_eq!(fields.text("q"), Some("a b c"));
        assert_eq!(fields.text("path"), Some("src/ä.py"));
        assert_eq!(fields.text("x"), Some("%zz%2"));
        assert_eq!(fields.text("empty"), None);
        assert_eq!(fields.text("text"), Some("one\ntwo"));
    }

    #[test]
    fn encoding_is_the_inverse_of_decoding() {
        for text in ["src/a b.py", "größe & co=1", "<script>\"'\u{202e}", "a+b%20"] {
            assert_eq!(decoded(&encoded(text)), text);
        }
    }
}
