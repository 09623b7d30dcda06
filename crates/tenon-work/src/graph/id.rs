//! Names in a graph: node ids, types and relations, canonicalised before they are stored.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

use crate::error::WorkError;
use crate::name::quoted;

/// Trims and composes (NFC), then checks the seed's constraints.
fn canonical(what: &str, text: &str, max: usize, bar: bool) -> Result<String, WorkError> {
    let name: String = text.trim().nfc().collect();
    let rule = if name.is_empty() {
        Some("it is empty")
    } else if name.chars().count() > max {
        Some("it is too long")
    } else if name.chars().any(char::is_control) {
        Some("it contains a control character")
    } else if bar && name.contains('|') {
        Some("it contains `|`")
    } else {
        None
    };
    match rule {
        None => Ok(name),
        Some(rule) => Err(WorkError::invalid(format!("{} is not a {what}: {rule}", quoted(text))).recovery(
            format!("1 to {max} characters without control characters{}", if bar { " or `|`" } else { "" }),
        )),
    }
}

macro_rules! graph_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $bar:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// # Errors
            /// When the canonical form breaks a constraint.
            pub fn parse(text: &str) -> Result<Self, WorkError> {
                canonical($what, text, $max, $bar).map(Self)
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

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

graph_name!(
    /// The id of a node. It contains no `|`, which separates the parts of an edge key.
    GraphNodeId, "graph node id", 256, true
);
graph_name!(GraphType, "graph type", 128, false);
graph_name!(GraphRel, "graph relation", 128, true);

/// The node or edge that a version belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GraphKey {
    Node(GraphNodeId),
    Edge { from: GraphNodeId, rel: GraphRel, to: GraphNodeId },
}

impl GraphKey {
    pub fn kind(&self) -> GraphKind {
        match self {
            Self::Node(_) => GraphKind::Node,
            Self::Edge { .. } => GraphKind::Edge,
        }
    }

    /// Reads back what [`Display`] wrote into the store.
    pub(crate) fn from_stored(kind: GraphKind, text: &str) -> Option<Self> {
        match kind {
            GraphKind::Node => Some(Self::Node(GraphNodeId(text.to_owned()))),
            GraphKind::Edge => {
                let mut parts = text.split('|').map(str::to_owned);
                let (from, rel, to) = (parts.next()?, parts.next()?, parts.next()?);
                Some(Self::Edge { from: GraphNodeId(from), rel: GraphRel(rel), to: GraphNodeId(to) })
            }
        }
    }
}

impl Display for GraphKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => write!(formatter, "{id}"),
            Self::Edge { from, rel, to } => write!(formatter, "{from}|{rel}|{to}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphKind {
    Node,
    Edge,
}

impl GraphKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Edge => "edge",
        }
    }

    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Node => 0,
            Self::Edge => 1,
        }
    }

    pub(crate) fn from_number(number: i64) -> Self {
        if number == 0 { Self::Node } else { Self::Edge }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_trimmed_and_composed_before_the_check() {
        assert_eq!(GraphNodeId::parse("  e\u{301} \n").unwrap().as_str(), "é");
        assert_eq!(GraphNodeId::parse(&format!(" {} ", "x".repeat(256))).unwrap().as_str().len(), 256);
        for bad in ["", " ", "a|b", "a\u{0}b", "a\nb", "\u{85}x\u{9f}y", &"x".repeat(257)] {
            assert!(GraphNodeId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(GraphType::parse("a|b").is_ok());
        assert!(GraphType::parse(&"x".repeat(129)).is_err());
        assert!(GraphRel::parse("a|b").is_err());
    }

    proptest! {
        #[test]
        fn keys_round_trip(from in "[^|\\p{Cc}]{1,20}", rel in "[^|\\p{Cc}]{1,9}", to in "[^|\\p{Cc}]{1,20}") {
            if let (Ok(from), Ok(rel), Ok(to)) =
                (GraphNodeId::parse(&from), GraphRel::parse(&rel), GraphNodeId::parse(&to))
            {
                prop_assert_eq!(GraphNodeId::parse(from.as_str()).unwrap(), from.clone());
                let key = GraphKey::Edge { from, rel, to };
                prop_assert_eq!(GraphKey::from_stored(GraphKind::Edge, &key.to_string()), Some(key));
            }
        }
    }
}
