//! Names chosen by people and agents: workspaces, branches, documents and tags.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use unicode_normalization::UnicodeNormalization;

use crate::error::{WorkError, WorkErrorCode};
use crate::id::TargetId;

const MAX_NAME: usize = 128;

/// The seed's pattern for workspaces, which branches and documents follow too.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-'))
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $code:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// # Errors
            /// When the text does not match the pattern.
            pub fn parse(text: &str) -> Result<Self, WorkError> {
                if is_name(text) {
                    return Ok(Self(text.to_owned()));
                }
                let message = format!(concat!("invalid ", $what, " name {}"), quoted(text));
                Err(WorkError::new($code, message)
                    .recovery("1 to 128 of A-Z a-z 0-9 . _ / - with a letter or digit first"))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The namespace of all other records.
    WorkspaceName,
    "workspace",
    WorkErrorCode::InvalidName
);
name!(BranchName, "branch", WorkErrorCode::InvalidName);
name!(DocName, "document", WorkErrorCode::InvalidInput);

impl BranchName {
    /// Whether this is the branch of a plan or task, which may not exist yet: `task/TASK-001`.
    pub fn is_reserved(&self) -> bool {
        let id = self.0.split_once('/').and_then(|(_, id)| id.parse::<TargetId>().ok());
        id.is_some_and(|id| id.branch() == self.0)
    }
}

/// A client's text for a message: shortened, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).map(|c| if c.is_control() { '�' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// A label: trimmed, NFC, lower case, at most 128 characters.
///
/// Quotes and backslashes are rejected, so that a tag can be found in the canonical JSON of a list of tags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(String);

impl Tag {
    /// # Errors
    /// When it is empty, too long or contains a forbidden character.
    pub fn parse(text: &str) -> Result<Self, WorkError> {
        let tag: String = text.trim().to_lowercase().nfc().collect();
        let refused = |c: char| c.is_control() || c == '"' || c == '\\';
        if tag.is_empty() || tag.chars().count() > MAX_NAME || tag.chars().any(refused) {
            return Err(WorkError::invalid(format!("{} is not a tag", quoted(text)))
                .recovery("1 to 128 characters without control characters, quotes or backslashes"));
        }
        Ok(Self(tag))
    }

    /// The canonical form of a list: sorted, each tag once.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub fn list(texts: &[String]) -> Result<Vec<Self>, WorkError> {
        let mut tags = texts.iter().map(|text| Self::parse(text)).collect::<Result<Vec<_>, _>>()?;
        tags.sort();
        tags.dedup();
        Ok(tags)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Tag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(|fault| de::Error::custom(fault.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_names_follow_the_seed() {
        for good in ["a", "github.com/o/r", "A0._/-", &"x".repeat(128)] {
            assert!(WorkspaceName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "/a", "a b", "ä", "a\n", "a\0", "a|b", &"x".repeat(129)] {
            assert_eq!(WorkspaceName::parse(bad).unwrap_err().code(), WorkErrorCode::InvalidName, "{bad}");
        }
    }

    #[test]
    fn tags_are_lower_case_sorted_and_unique() {
        let given = [" B ", "a", "É", "b", "E\u{301}"].map(String::from);
        let tags = Tag::list(&given).unwrap();
        assert_eq!(tags.iter().map(Tag::as_str).collect::<Vec<_>>(), ["a", "b", "é"]);
        for bad in ["", "  ", "a\"b", "a\\b", "a\u{7}b", &"x".repeat(129)] {
            assert!(Tag::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quoting_removes_control_characters_and_shortens() {
        assert_eq!(quoted("a\nb"), "`a�b`");
        assert_eq!(quoted(&"x".repeat(61)), format!("`{}…`", "x".repeat(60)));
    }
}
