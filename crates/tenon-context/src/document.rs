//! A document: its id, its version, and its file format.
//!
//! The file is compact JSON with the keys `id`, `version`, `source`, `content`, `metadata` in this order and no final
//! newline. `metadata` is a flat map of strings and integers; no code uses it yet, but any other value makes the
//! cache invalid.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use tenon_contract::id::hex;

const PREFIX: &str = "sha256:";

/// The id of a document: its path below the sources with `/` as separator, in lower case. There is no Unicode
/// normalisation: names that look alike but differ in code points are different documents.
#[must_use]
pub fn document_id(relative: &str) -> String {
    relative.replace('\\', "/").trim_start_matches("./").to_lowercase()
}

/// SHA-256 of a document's bytes or of a whole cache, written as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentVersion([u8; 32]);

impl ContentVersion {
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// The stem of the document's file name.
    pub(crate) fn stem(&self) -> String {
        hex(&self.0[..6])
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ContentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(&hex(&self.0))
    }
}

impl Serialize for ContentVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = ContentVersion;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`sha256:` and 64 lower-case hex digits")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ContentVersion, E> {
                ContentVersion::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// One file below `documents/`.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct DocumentFile<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    pub version: ContentVersion,
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    pub metadata: Metadata,
}

/// A flat map: written empty; validated and discarded on reading.
#[derive(Debug)]
pub(crate) struct Metadata;

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map::<&str, &str, _>([])
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Flat;
        impl<'de> Visitor<'de> for Flat {
            type Value = Metadata;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a flat map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
                while map.next_entry::<IgnoredAny, Scalar>()?.is_some() {}
                Ok(Metadata)
            }
        }
        deserializer.deserialize_map(Flat)
    }
}

struct Scalar;

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a 64-bit integer")
            }
            fn visit_str<E: de::Error>(self, _: &str) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Scalar, E> {
                let signed = i64::try_from(number).map(|_| Scalar);
                signed.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
        }
        deserializer.deserialize_any(Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_id_is_a_lower_case_path() {
        let cases = [
            ("Guides/Set Up.md", "guides/set up.md"),
            ("./x.md", "x.md"),
            (r".\./Y.md", "y.md"),
            (r"win\Dows.md", "win/dows.md"),
            (".Hidden/É.md", ".hidden/é.md"),
            ("GROẞ.md", "groß.md"),
            ("ΟΔΟΣ.md", "οδοσ.md"),
            ("ΟΔΟΣ/x.md", "οδος/x.md"),
            ("e\u{301}.md", "e\u{301}.md"),
        ];
        for (path, id) in cases {
            assert_eq!(document_id(path), id);
        }
    }

    #[test]
    fn version_round_trips_and_rejects_other_spellings() {
        let version = ContentVersion::of("abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(version.to_string(), text);
        assert_eq!(version.stem(), "ba7816bf8f01");
        assert_eq!(ContentVersion::parse(text), Some(version));
        for bad in ["", "sha256:", "sha256:00", &text.to_uppercase(), &text[7..], &format!("{text}0")] {
            assert_eq!(ContentVersion::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn document_file_is_compact_with_minimal_escapes() {
        let content = "é \u{7f} \u{2028} / \" \\ \u{1} \u{8} \n";
        let file = DocumentFile {
            id: "a.md".into(),
            version: ContentVersion::of(content),
            source: "A.md".into(),
            content: content.into(),
            metadata: Metadata,
        };
        let text = serde_json::to_string(&file).unwrap();
        let version = file.version;
        assert_eq!(
            text,
            format!(
                "{{\"id\":\"a.md\",\"version\":\"{version}\",\"source\":\"A.md\",\"content\":\"é \u{7f} \u{2028} / \
                 \\\" \\\\ \\u0001 \\b \\n\",\"metadata\":{{}}}}"
            )
        );
        let read: DocumentFile<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.content, content);
    }

    #[test]
    fn nested_metadata_is_rejected() {
        for flat in ["{}", r#"{"a":"b","n":-3}"#, r#"{"n":9223372036854775807}"#] {
            serde_json::from_str::<Metadata>(flat).unwrap();
        }
        for other in
            ["null", "[]", r#"{"a":{}}"#, r#"{"a":[1]}"#, r#"{"a":1.5}"#, r#"{"n":9223372036854775808}"#]
        {
            serde_json::from_str::<Metadata>(other).unwrap_err();
        }
    }
}
