//! The types of the contract as tables. The structure phase checks input with them, and the JSON schemas and the
//! TypeScript declarations are generated from them, so the three cannot disagree.

use crate::kind::{AppenderPosition, OperationKind, RenderHandleKind, RuntimeStatus};

pub(crate) mod output;

/// The largest integer that every JSON reader reads exactly.
pub(crate) const MAX_INTEGER: i64 = (1 << 53) - 1;

/// An object type.
pub(crate) struct ObjectType {
    /// The name in the TypeScript declarations.
    pub(crate) name: &'static str,
    /// Fields shared with related types.
    pub(crate) base: &'static [Field],
    pub(crate) own: &'static [Field],
}

impl ObjectType {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.base.iter().chain(self.own)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }
}

pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) field_type: FieldType,
    pub(crate) required: bool,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(crate) enum FieldType {
    String,
    /// A string with a grammar; the schema has the pattern, a later phase checks it.
    Pattern(Pattern),
    /// One of the supported versions.
    Version,
    Integer,
    Boolean,
    AnyJson,
    AnyObject,
    /// Exactly this string.
    Literal(&'static str),
    /// One of a fixed list of strings.
    Enum(&'static EnumType),
    /// A render handle of this kind.
    Handle(RenderHandleKind),
    Object(&'static ObjectType),
    /// An object whose members are checked separately, because mistakes in them do not reject the parent.
    CheckedSeparately(&'static ObjectType),
    Array(&'static FieldType),
    Union(&'static UnionType),
    Nullable(&'static FieldType),
}

/// A grammar as a regular expression and as a TypeScript type.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) regex: &'static str,
    pub(crate) typescript: &'static str,
}

/// A string enum.
pub(crate) struct EnumType {
    pub(crate) name: &'static str,
    pub(crate) values: &'static [&'static str],
}

/// One of several object types.
pub(crate) struct UnionType {
    pub(crate) name: &'static str,
    pub(crate) variants: &'static [&'static ObjectType],
}

pub(crate) const fn required(name: &'static str, field_type: FieldType) -> Field {
    Field { name, field_type, required: true }
}

pub(crate) const fn optional(name: &'static str, field_type: FieldType) -> Field {
    Field { name, field_type, required: false }
}

macro_rules! generated_suffix {
    () => {
        "(?!(?:.*[-.])?(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,})$)"
    };
}

pub(crate) const INSTANCE_ID: FieldType = FieldType::Pattern(Pattern {
    regex: concat!("^(?!builtin-)", generated_suffix!(), "[a-z0-9][a-z0-9-]{2,63}$"),
    typescript: "string",
});
pub(crate) const BUILTIN_ID: FieldType = FieldType::Pattern(Pattern {
    regex: concat!("^", generated_suffix!(), "builtin-[a-z0-9-]{0,56}$"),
    typescript: "`builtin-${string}`",
});
pub(crate) const LOCAL_ID: FieldType = FieldType::Pattern(Pattern {
    regex: concat!("^", generated_suffix!(), "[a-z0-9][a-z0-9.-]{0,79}$"),
    typescript: "string",
});
pub(crate) const ROUTE_PATH: FieldType = FieldType::Pattern(Pattern {
    regex: "^/(?:[a-z0-9][a-z0-9_-]*(?:/[a-z0-9][a-z0-9_-]*)*)?$",
    typescript: "`/${string}`",
});
const MESSAGE_CLAIM: FieldType = FieldType::Pattern(Pattern {
    regex: "^message:(?!(?:assistant|user)-text$)[a-z0-9][a-z0-9_./-]*$",
    typescript: "`message:${string}`",
});
const TOOL_CLAIM: FieldType =
    FieldType::Pattern(Pattern { regex: "^tool:[a-z0-9][a-z0-9_./-]*$", typescript: "`tool:${string}`" });
const ACTIVITY_CLAIM: FieldType = FieldType::Pattern(Pattern {
    regex: "^activity:[a-z0-9][a-z0-9_./-]*$",
    typescript: "`activity:${string}`",
});
pub(crate) const ANY_CLAIM: FieldType = FieldType::Pattern(Pattern {
    regex: "^(?:message|tool|activity):[a-z0-9][a-z0-9_./-]*$",
    typescript: "RendererClaim",
});
pub(crate) const KEY: FieldType = FieldType::Pattern(Pattern {
    regex: concat!(
        "^[a-z0-9][a-z0-9-]{2,63}:(?:routes|sidebar-items|configuration-surfaces|integration-surfaces|",
        "message-renderers|message-appenders|tool-renderers|activity-renderers|fallback-surfaces)/",
        "[a-z0-9][a-z0-9.-]{0,79}$"
    ),
    typescript: "`${string}:${ContributionKind}/${string}`",
});

pub(crate) static STATUSES: EnumType = EnumType { name: "RuntimeStatus", values: RuntimeStatus::NAMES };
/// Every status but `ready`: a fallback replaces a module that is not ready.
pub(crate) static FALLBACK_STATUSES: EnumType =
    EnumType { name: "FallbackStatus", values: RuntimeStatus::NAMES.split_at(1).1 };
pub(crate) static POSITIONS: EnumType =
    EnumType { name: "AppenderPosition", values: AppenderPosition::NAMES };
pub(crate) static HANDLE_KINDS: EnumType =
    EnumType { name: "RenderHandleKind", values: RenderHandleKind::NAMES };

/// A render handle; whether its kind fits the collection is checked separately.
pub(crate) static RENDER_HANDLE: ObjectType = ObjectType {
    name: "RenderHandle",
    base: &[],
    own: &[
        required("renderHandleVersion", FieldType::Version),
        required("kind", FieldType::Enum(&HANDLE_KINDS)),
        required("id", FieldType::String),
        optional("data", FieldType::AnyJson),
    ],
};

const DESCRIPTOR: &[Field] =
    &[required("id", LOCAL_ID), optional("title", FieldType::String), optional("order", FieldType::Integer)];

pub(crate) static ROUTE: ObjectType = ObjectType {
    name: "RouteContribution",
    base: DESCRIPTOR,
    own: &[
        required("path", ROUTE_PATH),
        required("renderHandle", FieldType::Handle(RenderHandleKind::Route)),
    ],
};
pub(crate) static SIDEBAR_ITEM: ObjectType = ObjectType {
    name: "SidebarItemContribution",
    base: DESCRIPTOR,
    own: &[required("label", FieldType::String), required("routeKey", KEY)],
};
pub(crate) static CONFIGURATION_SURFACE: ObjectType = ObjectType {
    name: "ConfigurationSurfaceContribution",
    base: DESCRIPTOR,
    own: &[
        required("purpose", FieldType::String),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ConfigurationSurface)),
    ],
};
pub(crate) static INTEGRATION_SURFACE: ObjectType = ObjectType {
    name: "IntegrationSurfaceContribution",
    base: DESCRIPTOR,
    own: &[required("renderHandle", FieldType::Handle(RenderHandleKind::IntegrationSurface))],
};
pub(crate) static MESSAGE_RENDERER: ObjectType = ObjectType {
    name: "MessageRendererContribution",
    base: DESCRIPTOR,
    own: &[
        required("claim", MESSAGE_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::MessageRenderer)),
    ],
};
pub(crate) static MESSAGE_APPENDER: ObjectType = ObjectType {
    name: "MessageAppenderContribution",
    base: DESCRIPTOR,
    own: &[
        required("targetMessageType", FieldType::String),
        required("position", FieldType::Enum(&POSITIONS)),
        required("renderHandle", FieldType::Handle(RenderHandleKind::MessageAppender)),
    ],
};
pub(crate) static TOOL_RENDERER: ObjectType = ObjectType {
    name: "ToolRendererContribution",
    base: DESCRIPTOR,
    own: &[
        required("claim", TOOL_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ToolRenderer)),
    ],
};
pub(crate) static ACTIVITY_RENDERER: ObjectType = ObjectType {
    name: "ActivityRendererContribution",
    base: DESCRIPTOR,
    own: &[
        required("claim", ACTIVITY_CLAIM),
        required("renderHandle", FieldType::Handle(RenderHandleKind::ActivityRenderer)),
    ],
};
pub(crate) static FALLBACK_SURFACE: ObjectType = ObjectType {
    name: "FallbackSurfaceContribution",
    base: DESCRIPTOR,
    own: &[
        required("status", FieldType::Enum(&FALLBACK_STATUSES)),
        required("renderHandle", FieldType::Handle(RenderHandleKind::FallbackSurface)),
    ],
};

/// The collections, in the order of [`crate::kind::ContributionKind`].
pub(crate) static CONTRIBUTIONS: ObjectType = ObjectType {
    name: "Contributions",
    base: &[],
    own: &[
        optional("routes", FieldType::Array(&FieldType::Object(&ROUTE))),
        optional("sidebarItems", FieldType::Array(&FieldType::Object(&SIDEBAR_ITEM))),
        optional("configurationSurfaces", FieldType::Array(&FieldType::Object(&CONFIGURATION_SURFACE))),
        optional("integrationSurfaces", FieldType::Array(&FieldType::Object(&INTEGRATION_SURFACE))),
        optional("messageRenderers", FieldType::Array(&FieldType::Object(&MESSAGE_RENDERER))),
        optional("messageAppenders", FieldType::Array(&FieldType::Object(&MESSAGE_APPENDER))),
        optional("toolRenderers", FieldType::Array(&FieldType::Object(&TOOL_RENDERER))),
        optional("activityRenderers", FieldType::Array(&FieldType::Object(&ACTIVITY_RENDERER))),
        optional("fallbackSurfaces", FieldType::Array(&FieldType::Object(&FALLBACK_SURFACE))),
    ],
};

const DECLARATION: &[Field] = &[
    required("packageId", FieldType::String),
    optional("packageVersion", FieldType::String),
    required("moduleApiVersion", FieldType::Version),
    required("instanceId", INSTANCE_ID),
    required("contributions", FieldType::CheckedSeparately(&CONTRIBUTIONS)),
];
/// A module as its author declares it.
pub(crate) static MODULE_DECLARATION: ObjectType =
    ObjectType { name: "ModuleDeclaration", base: DECLARATION, own: &[] };
pub(crate) static RUNTIME: ObjectType = ObjectType {
    name: "ModuleRuntime",
    base: &[],
    own: &[required("status", FieldType::Enum(&STATUSES)), optional("reason", FieldType::String)],
};
/// A declaration with the runtime status that the host resolved.
pub(crate) static MODULE_INSTANCE: ObjectType = ObjectType {
    name: "ModuleInstance",
    base: DECLARATION,
    own: &[required("runtime", FieldType::Object(&RUNTIME))],
};
pub(crate) static BUILTIN: ObjectType = ObjectType {
    name: "BuiltinDeclaration",
    base: &[],
    own: &[
        required("ownerId", BUILTIN_ID),
        optional("packageId", FieldType::String),
        optional("packageVersion", FieldType::String),
        required("contributions", FieldType::CheckedSeparately(&CONTRIBUTIONS)),
    ],
};

static HIDE: ObjectType = ObjectType {
    name: "HideOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("hide")),
        required("target", KEY),
    ],
};
static REPLACE: ObjectType = ObjectType {
    name: "ReplaceOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("replace")),
        required("target", KEY),
        required("use", KEY),
    ],
};
static PATH_ALIAS: ObjectType = ObjectType {
    name: "PathAliasOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("pathAlias")),
        required("target", KEY),
        required("path", ROUTE_PATH),
    ],
};
static RENDERER_OVERRIDE: ObjectType = ObjectType {
    name: "RendererOverrideOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("rendererOverride")),
        required("target", ANY_CLAIM),
        required("use", KEY),
    ],
};
static REORDER_BEFORE: ObjectType = ObjectType {
    name: "ReorderBeforeOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("reorder")),
        required("target", KEY),
        required("before", KEY),
    ],
};
static REORDER_AFTER: ObjectType = ObjectType {
    name: "ReorderAfterOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::Literal("reorder")),
        required("target", KEY),
        required("after", KEY),
    ],
};
pub(crate) static OPERATION: UnionType = UnionType {
    name: "PolicyOperation",
    variants: &[&HIDE, &REPLACE, &PATH_ALIAS, &RENDERER_OVERRIDE, &REORDER_BEFORE, &REORDER_AFTER],
};
/// What the structure phase checks of every operation; the policy phase checks the rest.
pub(crate) static ANY_OPERATION: ObjectType = ObjectType {
    name: "PolicyOperation",
    base: &[],
    own: &[
        required("id", FieldType::String),
        required("op", FieldType::String),
        required("target", FieldType::String),
        optional("use", FieldType::String),
        optional("path", FieldType::String),
        optional("before", FieldType::String),
        optional("after", FieldType::String),
    ],
};
pub(crate) static POLICY: ObjectType = ObjectType {
    name: "CompositionPolicy",
    base: &[],
    own: &[
        required("policySchemaVersion", FieldType::Version),
        required("operations", FieldType::Array(&FieldType::Union(&OPERATION))),
        optional("allowModuleRootRoute", FieldType::Boolean),
    ],
};
pub(crate) static INPUT: ObjectType = ObjectType {
    name: "CompositionInput",
    base: &[],
    own: &[
        required("compositionSchemaVersion", FieldType::Version),
        optional("builtins", FieldType::Array(&FieldType::Object(&BUILTIN))),
        required("modules", FieldType::Array(&FieldType::Object(&MODULE_INSTANCE))),
        optional("policy", FieldType::CheckedSeparately(&POLICY)),
    ],
};

impl OperationKind {
    /// Whether an operation of this kind may have the field.
    pub(crate) fn takes(self, field: &str) -> bool {
        let argument = match self {
            Self::Hide => false,
            Self::Replace | Self::RendererOverride => field == "use",
            Self::PathAlias => field == "path",
            Self::Reorder => matches!(field, "before" | "after"),
        };
        argument || matches!(field, "id" | "op" | "target")
    }
}
