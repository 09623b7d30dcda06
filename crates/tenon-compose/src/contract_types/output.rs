//! Contract types of the composer's and the render runtime's output, and of render packs.

use super::{ANY_CLAIM, HANDLE_KINDS, LOCAL_ID, optional, required};
use super::{
    EnumType, FALLBACK_STATUSES, Field, FieldType, KEY, ObjectType, POSITIONS, RENDER_HANDLE, ROUTE_PATH,
    RUNTIME,
};
use crate::diagnostic::SubjectOwnerKind;
use crate::kind::{ContributionKind, OwnerKind, RenderHandleKind};
use crate::registry::{DiagnosticCategory, DiagnosticCode, DiagnosticOrigin, DiagnosticSeverity};
use crate::render::LoadKind;

pub(crate) static CONTRIBUTION_KINDS: EnumType =
    EnumType { name: "ContributionKind", values: ContributionKind::NAMES };
static OWNER_KINDS: EnumType = EnumType { name: "OwnerKind", values: OwnerKind::NAMES };
static SUBJECT_KINDS: EnumType = EnumType { name: "SubjectOwnerKind", values: SubjectOwnerKind::NAMES };
static SEVERITIES: EnumType = EnumType { name: "DiagnosticSeverity", values: DiagnosticSeverity::NAMES };
static ORIGINS: EnumType = EnumType { name: "DiagnosticOrigin", values: DiagnosticOrigin::NAMES };
static CATEGORIES: EnumType = EnumType { name: "DiagnosticCategory", values: DiagnosticCategory::NAMES };
static CODES: EnumType = EnumType { name: "WorkspaceDiagnosticCode", values: DiagnosticCode::NAMES };
static LOAD_KINDS: EnumType = EnumType { name: "RenderLoadKind", values: LoadKind::NAMES };
/// The values allowed in a pack; `unsupported` occurs in summaries only.
static SUPPLIED_LOAD_KINDS: EnumType =
    EnumType { name: "SuppliedLoadKind", values: LoadKind::NAMES.split_at(LoadKind::NAMES.len() - 1).0 };

const OWNER: &[Field] = &[
    required("ownerKind", FieldType::Enum(&OWNER_KINDS)),
    required("ownerId", FieldType::String),
    optional("packageId", FieldType::String),
    optional("packageVersion", FieldType::String),
];
static CONTRIBUTION_OWNER: ObjectType = ObjectType { name: "ContributionOwner", base: OWNER, own: &[] };
static COMPOSED_OWNER: ObjectType = ObjectType {
    name: "ComposedOwner",
    base: OWNER,
    own: &[optional("runtime", FieldType::Object(&RUNTIME))],
};

const ENTRY: &[Field] = &[
    required("key", KEY),
    required("owner", FieldType::Object(&CONTRIBUTION_OWNER)),
    required("id", LOCAL_ID),
    optional("title", FieldType::String),
    optional("order", FieldType::Integer),
    optional("readOnly", FieldType::Boolean),
];
static ROUTE: ObjectType = ObjectType {
    name: "ComposedRoute",
    base: ENTRY,
    own: &[
        required("path", ROUTE_PATH),
        required("effectivePath", ROUTE_PATH),
        required("renderHandle", FieldType::Handle(RenderHandleKind::Route)),
    ],
};
static SIDEBAR_ITEM: ObjectType = ObjectType {
    name: "ComposedSidebarItem",
    base: ENTRY,
    own: &[required("label", FieldType::String), required("routeKey", KEY)],
};
static CONFIGURATION_SURFACE: ObjectType = ObjectType {
    name: "ComposedConfigurationSurface",
    base: ENTRY,
    own: &[
        required("purpose", FieldType::String),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ConfigurationSurface)),
    ],
};
static INTEGRATION_SURFACE: ObjectType = ObjectType {
    name: "ComposedIntegrationSurface",
    base: ENTRY,
    own: &[required("renderHandle", FieldType::Handle(RenderHandleKind::IntegrationSurface))],
};
static MESSAGE_RENDERER: ObjectType = ObjectType {
    name: "ComposedMessageRenderer",
    base: ENTRY,
    own: &[
        required("claim", ANY_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::MessageRenderer)),
    ],
};
static MESSAGE_APPENDER: ObjectType = ObjectType {
    name: "ComposedMessageAppender",
    base: ENTRY,
    own: &[
        required("targetMessageType", FieldType::String),
        required("position", FieldType::Enum(&POSITIONS)),
        required("renderHandle", FieldType::Handle(RenderHandleKind::MessageAppender)),
    ],
};
static TOOL_RENDERER: ObjectType = ObjectType {
    name: "ComposedToolRenderer",
    base: ENTRY,
    own: &[
        required("claim", ANY_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ToolRenderer)),
    ],
};
static ACTIVITY_RENDERER: ObjectType = ObjectType {
    name: "ComposedActivityRenderer",
    base: ENTRY,
    own: &[
        required("claim", ANY_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ActivityRenderer)),
    ],
};
static FALLBACK: ObjectType = ObjectType {
    name: "ComposedFallback",
    base: ENTRY,
    own: &[
        required("status", FieldType::Enum(&FALLBACK_STATUSES)),
        required("renderHandle", FieldType::Handle(RenderHandleKind::FallbackSurface)),
    ],
};
static REQUIRED_HANDLE: ObjectType = ObjectType {
    name: "RequiredRenderHandle",
    base: &[],
    own: &[
        required("owner", FieldType::Object(&CONTRIBUTION_OWNER)),
        required("renderHandleVersion", FieldType::Version),
        required("kind", FieldType::Enum(&HANDLE_KINDS)),
        required("id", FieldType::String),
        required("keys", FieldType::Array(&KEY)),
    ],
};
static COMPOSITION: ObjectType = ObjectType {
    name: "WorkspaceComposition",
    base: &[],
    own: &[
        required("compositionSchemaVersion", FieldType::Version),
        required("owners", FieldType::Array(&FieldType::Object(&COMPOSED_OWNER))),
        required("routes", FieldType::Array(&FieldType::Object(&ROUTE))),
        required("sidebarItems", FieldType::Array(&FieldType::Object(&SIDEBAR_ITEM))),
        required("configurationSurfaces", FieldType::Array(&FieldType::Object(&CONFIGURATION_SURFACE))),
        required("integrationSurfaces", FieldType::Array(&FieldType::Object(&INTEGRATION_SURFACE))),
        required("messageRenderers", FieldType::Array(&FieldType::Object(&MESSAGE_RENDERER))),
        required("messageAppenders", FieldType::Array(&FieldType::Object(&MESSAGE_APPENDER))),
        required("toolRenderers", FieldType::Array(&FieldType::Object(&TOOL_RENDERER))),
        required("activityRenderers", FieldType::Array(&FieldType::Object(&ACTIVITY_RENDERER))),
        required("fallbacks", FieldType::Array(&FieldType::Object(&FALLBACK))),
        required("requiredRenderHandles", FieldType::Array(&FieldType::Object(&REQUIRED_HANDLE))),
    ],
};
pub(crate) static OUTCOME: ObjectType = ObjectType {
    name: "CompositionOutcome",
    base: &[],
    own: &[
        required("ok", FieldType::Boolean),
        required("composition", FieldType::Nullable(&FieldType::Object(&COMPOSITION))),
        required("diagnostics", FieldType::Array(&FieldType::Object(&DIAGNOSTIC))),
    ],
};

static SUBJECT: ObjectType = ObjectType {
    name: "DiagnosticSubject",
    base: &[],
    own: &[
        optional("ownerKind", FieldType::Enum(&SUBJECT_KINDS)),
        optional("ownerId", FieldType::String),
        optional("packageId", FieldType::String),
        optional("contributionKind", FieldType::String),
        optional("localId", FieldType::String),
        optional("canonicalKey", FieldType::String),
        optional("routePath", FieldType::String),
        optional("rendererClaim", FieldType::String),
    ],
};
pub(crate) static DIAGNOSTIC: ObjectType = ObjectType {
    name: "WorkspaceDiagnostic",
    base: &[],
    own: &[
        required("diagnosticSchemaVersion", FieldType::Version),
        required("code", FieldType::Enum(&CODES)),
        required("severity", FieldType::Enum(&SEVERITIES)),
        required("origin", FieldType::Enum(&ORIGINS)),
        required("category", FieldType::Enum(&CATEGORIES)),
        required("subjects", FieldType::Array(&FieldType::Object(&SUBJECT))),
        required("details", FieldType::AnyObject),
        required("decisionIds", FieldType::Array(&FieldType::String)),
        required("docsAnchor", FieldType::String),
        required("message", FieldType::String),
    ],
};

/// The handle in a pack, without `data`.
static PROVIDER_HANDLE: ObjectType = ObjectType {
    name: "RenderProviderHandle",
    base: &[],
    own: RENDER_HANDLE.own.split_at(RENDER_HANDLE.own.len() - 1).0,
};
/// The handle in a summary; version and kind may be any string.
static SUMMARY_HANDLE: ObjectType = ObjectType {
    name: "RenderProviderHandleSummary",
    base: &[],
    own: &[
        required("renderHandleVersion", FieldType::String),
        required("kind", FieldType::String),
        required("id", FieldType::String),
    ],
};
/// The summary of a provider in a diagnostic.
pub(crate) static PROVIDER_SUMMARY: ObjectType = ObjectType {
    name: "RenderProviderSummary",
    base: &[],
    own: &[
        required("owner", FieldType::Object(&SUBJECT)),
        required("packageId", FieldType::String),
        optional("packageVersion", FieldType::String),
        required("handle", FieldType::Object(&SUMMARY_HANDLE)),
        required("loadKind", FieldType::Enum(&LOAD_KINDS)),
        optional("moduleId", FieldType::String),
        optional("trustTier", FieldType::String),
    ],
};
static PROVIDER: ObjectType = ObjectType {
    name: "RenderProvider",
    base: &[],
    own: &[
        required("renderHandle", FieldType::Object(&PROVIDER_HANDLE)),
        required("loadKind", FieldType::Enum(&SUPPLIED_LOAD_KINDS)),
        optional("moduleId", FieldType::String),
        optional("trustTier", FieldType::String),
        optional("template", FieldType::String),
    ],
};
pub(crate) static PACK: ObjectType = ObjectType {
    name: "RenderPack",
    base: &[],
    own: &[
        required("renderRuntimeSchemaVersion", FieldType::Version),
        required("ownerId", FieldType::String),
        required("packageId", FieldType::String),
        optional("packageVersion", FieldType::String),
        required("providers", FieldType::Array(&FieldType::Object(&PROVIDER))),
    ],
};
