//! Render packs: the providers that an owner supplies for its handles, and their public summaries.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::diagnostic::{DiagnosticSubject, truncated};
use crate::grammar::BUILTIN_PREFIX;
use crate::kind::{OwnerKind, string_enum};

string_enum! {
    /// How a provider is loaded.
    LoadKind { Eager = "eager", Lazy = "lazy", Unsupported = "unsupported" }
}

string_enum! {
    /// Why the host does not admit a provider.
    BlockReason { OwnerNotAdmitted = "owner-not-admitted", TrustTier = "trust-tier", HostBlocked = "host-blocked" }
}

string_enum! {
    /// Why a provider cannot be used.
    UnsupportedReason {
        RuntimeSchemaVersion = "runtime-schema-version",
        RenderHandleVersion = "render-handle-version",
        ProviderShape = "provider-shape",
    }
}

string_enum! {
    /// When a provider failed to load.
    FailurePhase { ProviderPreload = "provider-preload", LazyLoad = "lazy-load" }
}

/// A provider's own error. It is logged and never shown to users.
pub type ProviderError = Box<dyn std::error::Error + Send + Sync>;

/// Renders a surface.
pub trait Render: Send + Sync {
    /// The surface as HTML, made from the props that the host passes.
    ///
    /// # Errors
    /// When it cannot be rendered.
    fn render(&self, props: &Value) -> Result<String, ProviderError>;
}

impl<F: Fn(&Value) -> Result<String, ProviderError> + Send + Sync> Render for F {
    fn render(&self, props: &Value) -> Result<String, ProviderError> {
        self(props)
    }
}

/// Loads a renderer. May be called again after a failure, and by several threads at once.
pub trait Load: Send + Sync {
    /// # Errors
    /// When it cannot be loaded.
    fn load(&self) -> Result<Arc<dyn Render>, ProviderError>;
}

/// Where a provider's renderer comes from.
#[derive(Clone)]
pub enum ProviderSource {
    /// Available at once.
    Eager(Arc<dyn Render>),
    /// Loaded on first use.
    Lazy(Arc<dyn Load>),
    /// The provider's entry in the pack is invalid.
    Unsupported,
}

impl ProviderSource {
    fn kind(&self) -> LoadKind {
        match self {
            Self::Eager(_) => LoadKind::Eager,
            Self::Lazy(_) => LoadKind::Lazy,
            Self::Unsupported => LoadKind::Unsupported,
        }
    }
}

/// The handle that a provider renders, as written in the pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderHandle {
    #[serde(rename = "renderHandleVersion")]
    pub version: String,
    pub kind: String,
    pub id: String,
}

/// One provider of a pack.
#[derive(Clone)]
pub struct RenderProvider {
    pub handle: ProviderHandle,
    pub source: ProviderSource,
    pub module_id: Option<String>,
    pub trust_tier: Option<String>,
}

/// The providers of one owner.
#[derive(Clone)]
pub struct RenderPack {
    pub schema_version: String,
    pub owner_id: String,
    pub package_id: String,
    pub package_version: Option<String>,
    pub providers: Vec<RenderProvider>,
}

/// The public summary of a provider, without code, errors or data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSummary {
    pub owner: DiagnosticSubject,
    pub package_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    pub handle: ProviderHandle,
    pub load_kind: LoadKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_tier: Option<String>,
}

impl RenderProvider {
    pub(super) fn summary(
        &self,
        owner_id: &str,
        package_id: &str,
        package_version: Option<&str>,
    ) -> ProviderSummary {
        let kind = if owner_id.starts_with(BUILTIN_PREFIX) { OwnerKind::Builtin } else { OwnerKind::Module };
        let text = |text: &str| truncated(text).to_owned();
        ProviderSummary {
            owner: DiagnosticSubject::owner(kind, Some(owner_id), None),
            package_id: text(package_id),
            package_version: package_version.map(text),
            handle: ProviderHandle {
                version: text(&self.handle.version),
                kind: text(&self.handle.kind),
                id: text(&self.handle.id),
            },
            load_kind: self.source.kind(),
            module_id: self.module_id.as_deref().map(text),
            trust_tier: self.trust_tier.as_deref().map(text),
        }
    }
}

/// Finds the source of a provider from its entry in the pack; `None` when the entry is invalid.
pub type ResolveProvider<'a> = dyn Fn(LoadKind, &Map<String, Value>) -> Option<ProviderSource> + 'a;

/// Why a pack cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {expected}")]
pub struct PackError {
    pub field: &'static str,
    pub expected: &'static str,
}

impl RenderPack {
    /// Reads a pack. A provider with an invalid entry is kept as unsupported, so that the runtime can report it.
    ///
    /// # Errors
    /// When the pack itself has no readable version, owner, package or list of providers.
    pub fn read(value: &Value, provide: &ResolveProvider<'_>) -> Result<Self, PackError> {
        let text = |field: &'static str| match value.get(field) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(PackError { field, expected: "a string" }),
        };
        let Some(Value::Array(entries)) = value.get("providers") else {
            return Err(PackError { field: "providers", expected: "an array" });
        };
        Ok(Self {
            schema_version: text("renderRuntimeSchemaVersion")?,
            owner_id: text("ownerId")?,
            package_id: text("packageId")?,
            package_version: value.get("packageVersion").and_then(Value::as_str).map(str::to_owned),
            providers: entries.iter().filter_map(|entry| provider(entry.as_object()?, provide)).collect(),
        })
    }
}

/// A provider, if its entry at least names a handle.
fn provider(entry: &Map<String, Value>, provide: &ResolveProvider<'_>) -> Option<RenderProvider> {
    let handle = entry.get("renderHandle")?;
    let named = |name: &str| handle.get(name).and_then(Value::as_str).map(str::to_owned);
    let optional = |name: &str| match entry.get(name) {
        None => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    let load_kind = entry.get("loadKind").and_then(Value::as_str).and_then(LoadKind::parse);
    let (module_id, trust_tier) = (optional("moduleId"), optional("trustTier"));
    let readable = module_id.is_some() && trust_tier.is_some();
    let source = match load_kind {
        Some(kind @ (LoadKind::Eager | LoadKind::Lazy)) if readable => provide(kind, entry),
        _ => None,
    };
    Some(RenderProvider {
        handle: ProviderHandle {
            version: named("renderHandleVersion").unwrap_or_default(),
            kind: named("kind")?,
            id: named("id")?,
        },
        source: source.unwrap_or(ProviderSource::Unsupported),
        module_id: module_id.flatten(),
        trust_tier: trust_tier.flatten(),
    })
}
