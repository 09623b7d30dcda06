//! The composed workspace, and the outcome of composing one.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;

use crate::diagnostic::WorkspaceDiagnostic;
use crate::kind::{AppenderPosition, ContributionKind, OwnerKind, RenderHandleKind, RuntimeStatus};
use crate::pipeline::versions::CURRENT;

/// The result of composing: a composition, or the error diagnostics that prevented one. Both may carry notes.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositionOutcome {
    pub composition: Option<Composition>,
    pub diagnostics: Vec<WorkspaceDiagnostic>,
}

impl CompositionOutcome {
    #[must_use]
    pub fn ok(&self) -> bool {
        self.composition.is_some()
    }
}

impl Serialize for CompositionOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("CompositionOutcome", 3)?;
        object.serialize_field("ok", &self.ok())?;
        object.serialize_field("composition", &self.composition)?;
        object.serialize_field("diagnostics", &self.diagnostics)?;
        object.end()
    }
}

/// The composed workspace: owners, entries and the render handles they need, each list in its fixed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    pub owners: Vec<ComposedOwner>,
    /// One list for each kind, in the order of [`ContributionKind::ALL`].
    pub(crate) entries: Vec<Vec<ComposedEntry>>,
    pub required_render_handles: Vec<RequiredRenderHandle>,
}

impl Composition {
    /// The entries of one kind, in display order.
    #[must_use]
    pub fn entries(&self, kind: ContributionKind) -> &[ComposedEntry] {
        &self.entries[kind as usize]
    }

    /// The entry with this canonical key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&ComposedEntry> {
        let kind = crate::grammar::parse_key(key)?.kind;
        self.entries(kind).iter().find(|entry| *entry.key == *key)
    }
}

impl Serialize for Composition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Composition", 12)?;
        object.serialize_field("compositionSchemaVersion", CURRENT)?;
        object.serialize_field("owners", &self.owners)?;
        for kind in ContributionKind::ALL {
            object.serialize_field(kind.composed_collection(), self.entries(*kind))?;
        }
        object.serialize_field("requiredRenderHandles", &self.required_render_handles)?;
        object.end()
    }
}

/// The module or built-in that declared a contribution.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContributionOwner {
    pub owner_kind: OwnerKind,
    pub owner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
}

/// An owner and its runtime status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedOwner {
    pub owner: Arc<ContributionOwner>,
    /// Absent for built-ins, which are always ready.
    pub runtime: Option<ModuleRuntime>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ModuleRuntime {
    pub status: RuntimeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Serialize for ComposedOwner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ComposedOwner", 5)?;
        object.serialize_field("ownerKind", &self.owner.owner_kind)?;
        object.serialize_field("ownerId", &self.owner.owner_id)?;
        optional(&mut object, "packageId", self.owner.package_id.as_ref())?;
        optional(&mut object, "packageVersion", self.owner.package_version.as_ref())?;
        optional(&mut object, "runtime", self.runtime.as_ref())?;
        object.end()
    }
}

/// One contribution of the composed workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct ComposedEntry {
    pub key: Arc<str>,
    pub owner: Arc<ContributionOwner>,
    pub title: Option<String>,
    pub order: Option<i64>,
    /// True when the owner's runtime status is `read-only`.
    pub read_only: bool,
    pub fields: EntryFields,
    pub render_handle: Option<RenderHandle>,
}

/// The fields that only entries of one kind have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryFields {
    Route {
        path: Arc<str>,
        effective_path: Arc<str>,
    },
    SidebarItem {
        label: String,
        route_key: Arc<str>,
    },
    ConfigurationSurface {
        purpose: String,
    },
    IntegrationSurface,
    /// Renders messages, tools or activities, depending on the claim.
    Renderer {
        claim: String,
    },
    MessageAppender {
        target_message_type: String,
        position: AppenderPosition,
    },
    FallbackSurface {
        status: RuntimeStatus,
    },
}

impl ComposedEntry {
    /// The id inside the entry's owner and kind.
    #[must_use]
    pub fn local_id(&self) -> &str {
        self.key.rsplit_once('/').map_or("", |(_, id)| id)
    }
}

impl Serialize for ComposedEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ComposedEntry", 9)?;
        object.serialize_field("key", &self.key)?;
        object.serialize_field("owner", &self.owner)?;
        object.serialize_field("id", self.local_id())?;
        optional(&mut object, "title", self.title.as_ref())?;
        optional(&mut object, "order", self.order.as_ref())?;
        optional(&mut object, "readOnly", self.read_only.then_some(&true))?;
        match &self.fields {
            EntryFields::Route { path, effective_path } => {
                object.serialize_field("path", path)?;
                object.serialize_field("effectivePath", effective_path)?;
            }
            EntryFields::SidebarItem { label, route_key } => {
                object.serialize_field("label", label)?;
                object.serialize_field("routeKey", route_key)?;
            }
            EntryFields::ConfigurationSurface { purpose } => object.serialize_field("purpose", purpose)?,
            EntryFields::IntegrationSurface => {}
            EntryFields::Renderer { claim } => object.serialize_field("claim", claim)?,
            EntryFields::MessageAppender { target_message_type, position } => {
                object.serialize_field("targetMessageType", target_message_type)?;
                object.serialize_field("position", position)?;
            }
            EntryFields::FallbackSurface { status } => object.serialize_field("status", status)?,
        }
        optional(&mut object, "renderHandle", self.render_handle.as_ref())?;
        object.end()
    }
}

/// An opaque name for something that a render runtime can render.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderHandle {
    pub kind: RenderHandleKind,
    pub id: Arc<str>,
    /// Passed to the provider; the composer does not read it.
    pub data: Option<Value>,
}

impl Serialize for RenderHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("RenderHandle", 4)?;
        object.serialize_field("renderHandleVersion", CURRENT)?;
        object.serialize_field("kind", &self.kind)?;
        object.serialize_field("id", &self.id)?;
        optional(&mut object, "data", self.data.as_ref())?;
        object.end()
    }
}

/// A handle that a provider must render, and the entries that need it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredRenderHandle {
    pub owner: Arc<ContributionOwner>,
    pub kind: RenderHandleKind,
    pub id: Arc<str>,
    pub keys: Vec<Arc<str>>,
}

impl Serialize for RequiredRenderHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("RequiredRenderHandle", 5)?;
        object.serialize_field("owner", &self.owner)?;
        object.serialize_field("renderHandleVersion", CURRENT)?;
        object.serialize_field("kind", &self.kind)?;
        object.serialize_field("id", &self.id)?;
        object.serialize_field("keys", &self.keys)?;
        object.end()
    }
}

fn optional<S: SerializeStruct, T: Serialize>(
    object: &mut S,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => object.serialize_field(name, value),
        None => object.skip_field(name),
    }
}
