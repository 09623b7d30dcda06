//! The diagnostic code registry: one table that the composer, the documentation and the tests use.
//!
//! A code is never reused; severity, category and required details are public contract. The page in `docs/`, the
//! schemas and the command line take what they say about codes from this table.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kind::string_enum;

mod page;
mod table;

pub use page::page;
pub use table::REGISTRY;

string_enum! {
    /// How severe it is; only errors prevent a composition.
    DiagnosticSeverity { Error = "error", Warning = "warning", Info = "info" }
}

string_enum! {
    /// Which component reported it.
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

/// The documentation anchor of every diagnostic.
pub const DOCS_ANCHOR: &str = "diagnostic-code-registry";

/// A diagnostic code. The variants have the order of [`REGISTRY`].
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

/// The fixed properties of a code.
#[derive(Debug, Clone, Copy)]
pub struct RegistryRow {
    pub code: DiagnosticCode,
    /// The code as text.
    pub name: &'static str,
    pub severity: DiagnosticSeverity,
    pub origin: DiagnosticOrigin,
    pub category: DiagnosticCategory,
    /// The names of the details, all required.
    pub details: &'static [&'static str],
    /// The fixture that demonstrates it.
    pub fixture: &'static str,
    /// The decision records it enforces.
    pub decisions: &'static [&'static str],
    /// The message for people; `{name}` is replaced by that detail.
    pub message: &'static str,
    /// How to fix it, when the reason has no help text.
    pub help: &'static str,
    /// The stable reason codes, each with its help text.
    pub reasons: &'static [(&'static str, &'static str)],
}

impl DiagnosticCode {
    /// Every code as text.
    pub(crate) const NAMES: &'static [&'static str] = &{
        let mut names = [""; REGISTRY.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = REGISTRY[index].name;
            index += 1;
        }
        names
    };

    /// The registry row of this code.
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
    fn rows_match_code_order_and_names_are_unique() {
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
