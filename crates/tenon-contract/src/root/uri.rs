//! `file:` URIs: strict parsing of input, one canonical spelling of output.
//!
//! Input: scheme `file` in any case, no host (not even `localhost`), user, port, query or fragment, an absolute
//! path, percent-escapes decoded exactly once, no encoded `/` or NUL, UTF-8 after decoding. Raw spaces, brackets and
//! non-ASCII letters are accepted, since clients send them; raw control characters and backslashes are rejected. A path
//! that begins with `//` could name a host and is rejected.
//!
//! Output: `file://`, then the real path with everything but `A-Z a-z 0-9 - . _ ~ /` as `%XX` in upper-case hex.

use std::fmt;
use std::sync::Arc;

use camino::Utf8Path;
use serde::{Serialize, Serializer};

use super::{MAX_INPUT_BYTES, platform};

/// Why a text is not a valid path or `file:` URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("not a `file:` URI")]
    Scheme,
    #[error("a `file:` URI must not name a host")]
    Host,
    #[error("a `file:` URI must not have a query or fragment")]
    QueryOrFragment,
    #[error("the path is not absolute")]
    NotAbsolute,
    #[error("invalid percent-escape")]
    Escape,
    #[error("contains an encoded slash")]
    EncodedSlash,
    #[error("contains a NUL character")]
    Nul,
    #[error("contains a character that must be encoded")]
    RawCharacter,
    #[error("not valid UTF-8")]
    NotUtf8,
    #[error("too long")]
    TooLong,
}

/// The canonical URI of a file, built from the real path. Ordered by bytes; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CanonicalUri(Arc<str>);

impl CanonicalUri {
    /// Private to the gate, so that every URI has been checked.
    pub(super) fn of(real: &Utf8Path) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let path = platform::uri_path(real);
        let mut uri = String::with_capacity(path.len() + 16);
        uri.push_str("file://");
        for byte in path.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
                uri.push(char::from(byte));
            } else {
                uri.push('%');
                uri.push(char::from(DIGITS[usize::from(byte >> 4)]));
                uri.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
        Self(uri.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CanonicalUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for CanonicalUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The absolute path in a `file:` URI, without file system access.
pub(super) fn decode(uri: &str) -> Result<String, Malformed> {
    if uri.len() > MAX_INPUT_BYTES {
        return Err(Malformed::TooLong);
    }
    let rest = match uri.split_at_checked("file:".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file:") => rest,
        _ => return Err(Malformed::Scheme),
    };
    if rest.contains(['?', '#']) {
        return Err(Malformed::QueryOrFragment);
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if after.starts_with('/') => after,
        Some(_) => return Err(Malformed::Host),
        None => rest,
    };
    if !path.starts_with('/') {
        return Err(Malformed::NotAbsolute);
    }
    if path.starts_with("//") {
        return Err(Malformed::Host);
    }
    platform::native_path(unescape(path)?)
}

fn unescape(text: &str) -> Result<String, Malformed> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_digit).ok_or(Malformed::Escape)?;
                let low = bytes.next().and_then(hex_digit).ok_or(Malformed::Escape)?;
                match high << 4 | low {
                    b'/' => return Err(Malformed::EncodedSlash),
                    0 => return Err(Malformed::Nul),
                    other => decoded.push(other),
                }
            }
            0 => return Err(Malformed::Nul),
            1..=0x1f | 0x7f | b'\\' => return Err(Malformed::RawCharacter),
            other => decoded.push(other),
        }
    }
    String::from_utf8(decoded).map_err(|_| Malformed::NotUtf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn canonical_uri_escapes_all_but_unreserved_characters() {
        for (real, uri) in [
            ("/", "file:///"),
            ("/a/b.ts", "file:///a/b.ts"),
            ("/a/b c#d%e?.ts", "file:///a/b%20c%23d%25e%3F.ts"),
            ("/a/é/日本/😀.ts", "file:///a/%C3%A9/%E6%97%A5%E6%9C%AC/%F0%9F%98%80.ts"),
            ("/a/[id]/(x)+{y}.ts", "file:///a/%5Bid%5D/%28x%29%2B%7By%7D.ts"),
            ("/a/~-_..ts", "file:///a/~-_..ts"),
            ("/a/c:\\d@e&f=g;h,i'j!k*l$", "file:///a/c%3A%5Cd%40e%26f%3Dg%3Bh%2Ci%27j%21k%2Al%24"),
        ] {
            assert_eq!(CanonicalUri::of(Utf8Path::new(real)).as_str(), uri);
            assert_eq!(decode(uri).as_deref(), Ok(real));
        }
    }

    #[test]
    fn every_malformed_uri_gets_the_right_reason() {
        for (uri, reason) in [
            ("", Malformed::Scheme),
            ("/a/b.ts", Malformed::Scheme),
            ("http://localhost/a", Malformed::Scheme),
            ("vscode-remote://x/a", Malformed::Scheme),
            (" file:///a", Malformed::Scheme),
            ("file", Malformed::Scheme),
            ("fi\u{17f}e:///a", Malformed::Scheme),
            ("file:", Malformed::NotAbsolute),
            ("file:a/b.ts", Malformed::NotAbsolute),
            ("file:../a", Malformed::NotAbsolute),
            ("file://", Malformed::Host),
            ("file://localhost/a", Malformed::Host),
            ("file://user@/a", Malformed::Host),
            ("file://:80/a", Malformed::Host),
            ("file:////server/share", Malformed::Host),
            ("file:///a?b", Malformed::QueryOrFragment),
            ("file:///a#", Malformed::QueryOrFragment),
            ("file:///a%2Fb", Malformed::EncodedSlash),
            ("file:///a%2fb", Malformed::EncodedSlash),
            ("file:///a%00", Malformed::Nul),
            ("file:///a\0", Malformed::Nul),
            ("file:///a%", Malformed::Escape),
            ("file:///a%2", Malformed::Escape),
            ("file:///a%zz", Malformed::Escape),
            ("file:///a%+1", Malformed::Escape),
            ("file:///a\\b", Malformed::RawCharacter),
            ("file:///a\nb", Malformed::RawCharacter),
            ("file:///%ff", Malformed::NotUtf8),
            ("file:///%c0%ae", Malformed::NotUtf8),
            ("file:///%ed%a0%80", Malformed::NotUtf8),
        ] {
            assert_eq!(decode(uri), Err(reason), "{uri:?}");
        }
        assert_eq!(decode(&format!("file:///{}", "a".repeat(MAX_INPUT_BYTES))), Err(Malformed::TooLong));
    }

    #[test]
    fn lenient_spellings_decode_to_the_same_path() {
        for uri in ["file:///a/b c[é].ts", "FILE:///a/b%20c%5bé].ts", "file:/a/b c[%c3%A9].ts"] {
            assert_eq!(decode(uri).as_deref(), Ok("/a/b c[é].ts"));
        }
        assert_eq!(decode("file:///%252e%252e").as_deref(), Ok("/%2e%2e"));
        assert_eq!(decode("file:///a%0Ab%5Cc").as_deref(), Ok("/a\nb\\c"));
    }
}
