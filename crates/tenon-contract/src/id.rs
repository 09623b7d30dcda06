//! Stable identifiers: SHA-256 over parts joined with `|`.
//!
//! The same parts give the same id in every process and on every machine. Each part is formatted with `Display`;
//! a missing part is the empty string. Parts are not escaped, because the contract fixes the hashed strings.

use std::fmt::{self, Display, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

/// SHA-256 of some bytes, in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of the parts joined with `|`, in lower-case hex, without building the joined string.
#[must_use]
pub fn sha256_hex_joined(parts: &[&dyn Display]) -> String {
    let mut hasher = Hasher(Sha256::new());
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            hasher.0.update(b"|");
        }
        write!(hasher, "{part}").expect("writing to a hasher cannot fail");
    }
    hex(&hasher.0.finalize())
}

/// Lower-case hex of some bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|n| char::from(DIGITS[usize::from(n)])).collect()
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

/// The id of a symbol, a diagnostic or another repeatable result: `sha256:` and 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StableId(String);

impl StableId {
    /// The id for these parts, in the order that the contract lists them.
    #[must_use]
    pub fn of(parts: &[&dyn Display]) -> Self {
        Self(format!("sha256:{}", sha256_hex_joined(parts)))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for StableId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    #[test]
    fn hex_of_known_digests() {
        assert_eq!(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn hash_of_parts_equals_hash_of_joined_string() {
        let position = Position { line: 5, character: 2 };
        let id = StableId::of(&[&"file:///a.ts", &position, &"", &12, &true, &"naïve|x"]);
        assert_eq!(id.as_str(), format!("sha256:{}", sha256_hex("file:///a.ts|5:2||12|true|naïve|x")));
        assert_eq!(sha256_hex_joined(&[]), sha256_hex(""));
    }

    #[test]
    fn id_serialises_as_a_string() {
        let id = StableId::of(&[&"x"]);
        assert_eq!(serde_json::to_value(&id).unwrap(), serde_json::json!(id.to_string()));
    }
}
