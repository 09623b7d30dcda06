//! The diagnostic code registry: one table that the composer, the documentation and the tests are made from.
//!
//! A code is never reused, and its severity, category and required details are public contract. Whatever else
//! speaks of a code (the page in `docs/`, the schemas, the command line) is derived from this table.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kind::string_enum;

mod page;
mod table;

pub use page::page;
pub use table::REGISTRY;

string_enum! {
    /// How bad it is; only errors stop a composition.
    DiagnosticSeverity { Error = "error", Warning = "warning", Info = "info" }
}

string_enum! {
    /// Who found it.
    DiagnosticOrigin {
        Composer = "composer",
        RenderRuntime = "render-runtime",
        HostHelper = "host-helper",
        ModuleConformance = "module-conformance",
    }
}

string_enum! {
    /// What it is about.
    DiagnosticCategory {
        Structure = "structure",
        Namespace = "namespace",
        Route = "route",
        Renderer = "renderer",
        Version = "version",
        Policy = "policy",
        Handle = "handle",
    }
}

/// The anchor every diagnostic points to in the documentation.
pub const DOCS_ANCHOR: &str = "diagnostic-code-registry";

/// A diagnostic code; its variants stand in the order of [`REGISTRY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiagnosticCode {
    InvalidShape,
    DuplicateInstanceId,
    InvalidInstanceId,
    DuplicateCanonicalKey,
    InvalidLocalId,
    DuplicateRoutePath,
    InvalidRoutePath,
    RoutePathAliased,
    DuplicateRendererClaim,
    InvalidRendererClaim,
    DefaultRendererClaimed,
    RendererOverridden,
    UnsupportedCompositionSchema,
    UnsupportedModuleApi,
    UnsupportedRenderHandle,
    UnsupportedDiagnosticSchema,
    UnsupportedPolicySchema,
    InvalidPolicy,
    MissingProvider,
    DuplicateProvider,
    ProviderBlocked,
    UnsupportedProvider,
    ProviderLoadFailed,
    RenderFailed,
    UnknownTarget,
}

/// What is fixed about a code.
#[derive(Debug, Clone, Copy)]
pub struct RegistryRow {
    pub code: DiagnosticCode,
    /// The code as it is written.
    pub name: &'static str,
    pub severity: DiagnosticSeverity,
    pub origin: DiagnosticOrigin,
    pub category: DiagnosticCategory,
    /// The names of its details, every one of them required.
    pub details: &'static [&'static str],
    /// The fixture that shows it.
    pub fixture: &'static str,
    /// The decisions it protects.
    pub decisions: &'static [&'static str],
    /// The message for people; `{name}` stands for a detail.
    pub message: &'static str,
    /// How to mend it, when the reason says nothing more exact.
    pub help: &'static str,
    /// The stable reasons in its details, each with how to mend it.
    pub reasons: &'static [(&'static str, &'static str)],
}

impl DiagnosticCode {
    /// Every code as it is written.
    pub(crate) const NAMES: &'static [&'static str] = &{
        let mut names = [""; REGISTRY.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = REGISTRY[index].name;
            index += 1;
        }
        names
    };

    /// This code's row.
    #[must_use]
    pub fn row(self) -> &'static RegistryRow {
        &REGISTRY[self as usize]
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|row| row.name == name).map(|row| row.code)
    }
}

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for DiagnosticCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for DiagnosticCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| {
            let shown: String = name.chars().take(100).collect();
            D::Error::custom(format_args!("unknown diagnostic code `{}`", shown.escape_debug()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_codes_and_none_is_said_twice() {
        for (index, row) in REGISTRY.iter().enumerate() {
            assert_eq!(row.code as usize, index);
            assert_eq!(DiagnosticCode::parse(row.name), Some(row.code));
        }
        let names: BTreeSet<&str> = REGISTRY.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), REGISTRY.len());
    }

    #[test]
    fn messages_use_only_required_details() {
        for row in &REGISTRY {
            for part in row.message.split('{').skip(1) {
                let (name, _) = part.split_once('}').unwrap();
                assert!(row.details.contains(&name), "{}: {name}", row.name);
            }
            let reasoned = row
                .details
                .iter()
                .any(|name| name.to_lowercase().ends_with("reason") || *name == "failurePhase");
            assert_eq!(reasoned, !row.reasons.is_empty(), "{}", row.name);
            assert!(row.reasons.iter().all(|(_, help)| !help.is_empty()));
        }
    }
}
