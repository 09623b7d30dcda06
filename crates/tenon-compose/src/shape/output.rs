//! The shapes of what the composer and the render runtime give back, and of the packs that the runtime takes.

use super::{ANY_CLAIM, HANDLE_KINDS, LOCAL_ID, optional, required};
use super::{
    FALLBACK_STATUSES, Field, KEY, POSITIONS, RENDER_HANDLE, ROUTE_PATH, RUNTIME, Record, Shape, Words,
};
use crate::diagnostic::SubjectKind;
use crate::kind::{ContributionKind, HandleKind, OwnerKind};
use crate::registry::{Category, Code, Origin, Severity};
use crate::render::LoadKind;

pub(crate) static CONTRIBUTION_KINDS: Words =
    Words { name: "ContributionKind", words: ContributionKind::WORDS };
static OWNER_KINDS: Words = Words { name: "OwnerKind", words: OwnerKind::WORDS };
static SUBJECT_KINDS: Words = Words { name: "SubjectOwnerKind", words: SubjectKind::WORDS };
static SEVERITIES: Words = Words { name: "DiagnosticSeverity", words: Severity::WORDS };
static ORIGINS: Words = Words { name: "DiagnosticOrigin", words: Origin::WORDS };
static CATEGORIES: Words = Words { name: "DiagnosticCategory", words: Category::WORDS };
static CODES: Words = Words { name: "WorkspaceDiagnosticCode", words: Code::NAMES };
static LOAD_KINDS: Words = Words { name: "RenderLoadKind", words: LoadKind::WORDS };
/// What a pack may say; `unsupported` is only ever said of one.
static SUPPLIED_LOAD_KINDS: Words =
    Words { name: "SuppliedLoadKind", words: LoadKind::WORDS.split_at(LoadKind::WORDS.len() - 1).0 };

const OWNER: &[Field] = &[
    required("ownerKind", Shape::Word(&OWNER_KINDS)),
    required("ownerId", Shape::Text),
    optional("packageId", Shape::Text),
    optional("packageVersion", Shape::Text),
];
static CONTRIBUTION_OWNER: Record = Record { name: "ContributionOwner", base: OWNER, own: &[] };
static COMPOSED_OWNER: Record =
    Record { name: "ComposedOwner", base: OWNER, own: &[optional("runtime", Shape::Record(&RUNTIME))] };

const ENTRY: &[Field] = &[
    required("key", KEY),
    required("owner", Shape::Record(&CONTRIBUTION_OWNER)),
    required("id", LOCAL_ID),
    optional("title", Shape::Text),
    optional("order", Shape::Integer),
    optional("readOnly", Shape::Flag),
];
static ROUTE: Record = Record {
    name: "ComposedRoute",
    base: ENTRY,
    own: &[
        required("path", ROUTE_PATH),
        required("effectivePath", ROUTE_PATH),
        required("renderHandle", Shape::Handle(HandleKind::Route)),
    ],
};
static SIDEBAR_ITEM: Record = Record {
    name: "ComposedSidebarItem",
    base: ENTRY,
    own: &[required("label", Shape::Text), required("routeKey", KEY)],
};
static CONFIGURATION_SURFACE: Record = Record {
    name: "ComposedConfigurationSurface",
    base: ENTRY,
    own: &[
        required("purpose", Shape::Text),
        required("renderHandle", Shape::Handle(HandleKind::ConfigurationSurface)),
    ],
};
static INTEGRATION_SURFACE: Record = Record {
    name: "ComposedIntegrationSurface",
    base: ENTRY,
    own: &[required("renderHandle", Shape::Handle(HandleKind::IntegrationSurface))],
};
static MESSAGE_RENDERER: Record = Record {
    name: "ComposedMessageRenderer",
    base: ENTRY,
    own: &[
        required("claim", ANY_CLAIM),
        required("renderHandle", Shape::Handle(HandleKind::MessageRenderer)),
    ],
};
static MESSAGE_APPENDER: Record = Record {
    name: "ComposedMessageAppender",
    base: ENTRY,
    own: &[
        required("targetMessageType", Shape::Text),
        required("position", Shape::Word(&POSITIONS)),
        required("renderHandle", Shape::Handle(HandleKind::MessageAppender)),
    ],
};
static TOOL_RENDERER: Record = Record {
    name: "ComposedToolRenderer",
    base: ENTRY,
    own: &[required("claim", ANY_CLAIM), required("renderHandle", Shape::Handle(HandleKind::ToolRenderer))],
};
static ACTIVITY_RENDERER: Record = Record {
    name: "ComposedActivityRenderer",
    base: ENTRY,
    own: &[
        required("claim", ANY_CLAIM),
        required("renderHandle", Shape::Handle(HandleKind::ActivityRenderer)),
    ],
};
static FALLBACK: Record = Record {
    name: "ComposedFallback",
    base: ENTRY,
    own: &[
        required("status", Shape::Word(&FALLBACK_STATUSES)),
        required("renderHandle", Shape::Handle(HandleKind::FallbackSurface)),
    ],
};
static REQUIRED_HANDLE: Record = Record {
    name: "RequiredRenderHandle",
    base: &[],
    own: &[
        required("owner", Shape::Record(&CONTRIBUTION_OWNER)),
        required("renderHandleVersion", Shape::Version),
        required("kind", Shape::Word(&HANDLE_KINDS)),
        required("id", Shape::Text),
        required("keys", Shape::List(&KEY)),
    ],
};
static COMPOSITION: Record = Record {
    name: "WorkspaceComposition",
    base: &[],
    own: &[
        required("compositionSchemaVersion", Shape::Version),
        required("owners", Shape::List(&Shape::Record(&COMPOSED_OWNER))),
        required("routes", Shape::List(&Shape::Record(&ROUTE))),
        required("sidebarItems", Shape::List(&Shape::Record(&SIDEBAR_ITEM))),
        required("configurationSurfaces", Shape::List(&Shape::Record(&CONFIGURATION_SURFACE))),
        required("integrationSurfaces", Shape::List(&Shape::Record(&INTEGRATION_SURFACE))),
        required("messageRenderers", Shape::List(&Shape::Record(&MESSAGE_RENDERER))),
        required("messageAppenders", Shape::List(&Shape::Record(&MESSAGE_APPENDER))),
        required("toolRenderers", Shape::List(&Shape::Record(&TOOL_RENDERER))),
        required("activityRenderers", Shape::List(&Shape::Record(&ACTIVITY_RENDERER))),
        required("fallbacks", Shape::List(&Shape::Record(&FALLBACK))),
        required("requiredRenderHandles", Shape::List(&Shape::Record(&REQUIRED_HANDLE))),
    ],
};
pub(crate) static OUTCOME: Record = Record {
    name: "CompositionOutcome",
    base: &[],
    own: &[
        required("ok", Shape::Flag),
        required("composition", Shape::Nullable(&Shape::Record(&COMPOSITION))),
        required("diagnostics", Shape::List(&Shape::Record(&DIAGNOSTIC))),
    ],
};

static SUBJECT: Record = Record {
    name: "DiagnosticSubject",
    base: &[],
    own: &[
        optional("ownerKind", Shape::Word(&SUBJECT_KINDS)),
        optional("ownerId", Shape::Text),
        optional("packageId", Shape::Text),
        optional("contributionKind", Shape::Text),
        optional("localId", Shape::Text),
        optional("canonicalKey", Shape::Text),
        optional("routePath", Shape::Text),
        optional("rendererClaim", Shape::Text),
    ],
};
pub(crate) static DIAGNOSTIC: Record = Record {
    name: "WorkspaceDiagnostic",
    base: &[],
    own: &[
        required("diagnosticSchemaVersion", Shape::Version),
        required("code", Shape::Word(&CODES)),
        required("severity", Shape::Word(&SEVERITIES)),
        required("origin", Shape::Word(&ORIGINS)),
        required("category", Shape::Word(&CATEGORIES)),
        required("subjects", Shape::List(&Shape::Record(&SUBJECT))),
        required("details", Shape::JsonObject),
        required("decisionIds", Shape::List(&Shape::Text)),
        required("docsAnchor", Shape::Text),
        required("message", Shape::Text),
    ],
};

/// The handle in a pack; it carries no data.
static PROVIDER_HANDLE: Record = Record {
    name: "RenderProviderHandle",
    base: &[],
    own: RENDER_HANDLE.own.split_at(RENDER_HANDLE.own.len() - 1).0,
};
/// The handle of a provider that may be of any version and kind.
static SUMMARY_HANDLE: Record = Record {
    name: "RenderProviderHandleSummary",
    base: &[],
    own: &[
        required("renderHandleVersion", Shape::Text),
        required("kind", Shape::Text),
        required("id", Shape::Text),
    ],
};
/// What a diagnostic may say of a provider.
pub(crate) static PROVIDER_SUMMARY: Record = Record {
    name: "RenderProviderSummary",
    base: &[],
    own: &[
        required("owner", Shape::Record(&SUBJECT)),
        required("packageId", Shape::Text),
        optional("packageVersion", Shape::Text),
        required("handle", Shape::Record(&SUMMARY_HANDLE)),
        required("loadKind", Shape::Word(&LOAD_KINDS)),
        optional("moduleId", Shape::Text),
        optional("trustTier", Shape::Text),
    ],
};
static PROVIDER: Record = Record {
    name: "RenderProvider",
    base: &[],
    own: &[
        required("renderHandle", Shape::Record(&PROVIDER_HANDLE)),
        required("loadKind", Shape::Word(&SUPPLIED_LOAD_KINDS)),
        optional("moduleId", Shape::Text),
        optional("trustTier", Shape::Text),
        optional("template", Shape::Text),
    ],
};
pub(crate) static PACK: Record = Record {
    name: "RenderPack",
    base: &[],
    own: &[
        required("renderRuntimeSchemaVersion", Shape::Version),
        required("ownerId", Shape::Text),
        required("packageId", Shape::Text),
        optional("packageVersion", Shape::Text),
        required("providers", Shape::List(&Shape::Record(&PROVIDER))),
    ],
};
