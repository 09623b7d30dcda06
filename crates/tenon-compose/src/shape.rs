//! The shapes of everything the contract names, as tables: the structure phase checks with them, the JSON schemas
//! and the TypeScript declarations are written from them, so the three cannot disagree.

use crate::kind::{HandleKind, OperationKind, Position, Status};

pub(crate) mod output;

/// The largest integer that every JSON reader reads exactly.
pub(crate) const MAX_INTEGER: i64 = (1 << 53) - 1;

/// An object type.
pub(crate) struct Record {
    /// Its name in the declarations.
    pub(crate) name: &'static str,
    /// Fields it shares with its siblings.
    pub(crate) base: &'static [Field],
    pub(crate) own: &'static [Field],
}

impl Record {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.base.iter().chain(self.own)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }
}

pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Text,
    /// Text with a grammar that a later phase checks and a schema can say.
    Pattern(Pattern),
    /// One of the supported versions.
    Version,
    Integer,
    Flag,
    Json,
    JsonObject,
    /// Exactly this text.
    Literal(&'static str),
    /// One of a closed list of words.
    Word(&'static Words),
    /// A render handle of this kind.
    Handle(HandleKind),
    Record(&'static Record),
    /// An object whose members are read on their own, because mistakes in them do not reject the holder.
    Apart(&'static Record),
    List(&'static Shape),
    Union(&'static Union),
    Nullable(&'static Shape),
}

/// A grammar, by its regular expression and its TypeScript type.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) regex: &'static str,
    pub(crate) typescript: &'static str,
}

/// A closed list of words.
pub(crate) struct Words {
    pub(crate) name: &'static str,
    pub(crate) words: &'static [&'static str],
}

/// One of several object types.
pub(crate) struct Union {
    pub(crate) name: &'static str,
    pub(crate) records: &'static [&'static Record],
}

pub(crate) const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

pub(crate) const fn optional(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

macro_rules! generated_suffix {
    () => {
        "(?!(?:.*[-.])?(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,})$)"
    };
}

pub(crate) const INSTANCE_ID: Shape = Shape::Pattern(Pattern {
    regex: concat!("^(?!builtin-)", generated_suffix!(), "[a-z0-9][a-z0-9-]{2,63}$"),
    typescript: "string",
});
pub(crate) const BUILTIN_ID: Shape = Shape::Pattern(Pattern {
    regex: concat!("^", generated_suffix!(), "builtin-[a-z0-9-]{0,56}$"),
    typescript: "`builtin-${string}`",
});
pub(crate) const LOCAL_ID: Shape = Shape::Pattern(Pattern {
    regex: concat!("^", generated_suffix!(), "[a-z0-9][a-z0-9.-]{0,79}$"),
    typescript: "string",
});
pub(crate) const ROUTE_PATH: Shape = Shape::Pattern(Pattern {
    regex: "^/(?:[a-z0-9][a-z0-9_-]*(?:/[a-z0-9][a-z0-9_-]*)*)?$",
    typescript: "`/${string}`",
});
const MESSAGE_CLAIM: Shape = Shape::Pattern(Pattern {
    regex: "^message:(?!(?:assistant|user)-text$)[a-z0-9][a-z0-9_./-]*$",
    typescript: "`message:${string}`",
});
const TOOL_CLAIM: Shape =
    Shape::Pattern(Pattern { regex: "^tool:[a-z0-9][a-z0-9_./-]*$", typescript: "`tool:${string}`" });
const ACTIVITY_CLAIM: Shape =
    Shape::Pattern(Pattern { regex: "^activity:[a-z0-9][a-z0-9_./-]*$", typescript: "`activity:${string}`" });
pub(crate) const ANY_CLAIM: Shape = Shape::Pattern(Pattern {
    regex: "^(?:message|tool|activity):[a-z0-9][a-z0-9_./-]*$",
    typescript: "RendererClaim",
});
pub(crate) const KEY: Shape = Shape::Pattern(Pattern {
    regex: concat!(
        "^[a-z0-9][a-z0-9-]{2,63}:(?:routes|sidebar-items|configuration-surfaces|integration-surfaces|",
        "message-renderers|message-appenders|tool-renderers|activity-renderers|fallback-surfaces)/",
        "[a-z0-9][a-z0-9.-]{0,79}$"
    ),
    typescript: "`${string}:${ContributionKind}/${string}`",
});

pub(crate) static STATUSES: Words = Words { name: "RuntimeStatus", words: Status::WORDS };
/// A fallback stands in for a module that is not ready.
pub(crate) static FALLBACK_STATUSES: Words =
    Words { name: "FallbackStatus", words: Status::WORDS.split_at(1).1 };
pub(crate) static POSITIONS: Words = Words { name: "AppenderPosition", words: Position::WORDS };
pub(crate) static HANDLE_KINDS: Words = Words { name: "RenderHandleKind", words: HandleKind::WORDS };

/// A render handle before its kind is compared with its collection.
pub(crate) static RENDER_HANDLE: Record = Record {
    name: "RenderHandle",
    base: &[],
    own: &[
        required("renderHandleVersion", Shape::Version),
        required("kind", Shape::Word(&HANDLE_KINDS)),
        required("id", Shape::Text),
        optional("data", Shape::Json),
    ],
};

const DESCRIPTOR: &[Field] =
    &[required("id", LOCAL_ID), optional("title", Shape::Text), optional("order", Shape::Integer)];

pub(crate) static ROUTE: Record = Record {
    name: "RouteContribution",
    base: DESCRIPTOR,
    own: &[required("path", ROUTE_PATH), required("renderHandle", Shape::Handle(HandleKind::Route))],
};
pub(crate) static SIDEBAR_ITEM: Record = Record {
    name: "SidebarItemContribution",
    base: DESCRIPTOR,
    own: &[required("label", Shape::Text), required("routeKey", KEY)],
};
pub(crate) static CONFIGURATION_SURFACE: Record = Record {
    name: "ConfigurationSurfaceContribution",
    base: DESCRIPTOR,
    own: &[
        required("purpose", Shape::Text),
        required("renderHandle", Shape::Handle(HandleKind::ConfigurationSurface)),
    ],
};
pub(crate) static INTEGRATION_SURFACE: Record = Record {
    name: "IntegrationSurfaceContribution",
    base: DESCRIPTOR,
    own: &[required("renderHandle", Shape::Handle(HandleKind::IntegrationSurface))],
};
pub(crate) static MESSAGE_RENDERER: Record = Record {
    name: "MessageRendererContribution",
    base: DESCRIPTOR,
    own: &[
        required("claim", MESSAGE_CLAIM),
        required("renderHandle", Shape::Handle(HandleKind::MessageRenderer)),
    ],
};
pub(crate) static MESSAGE_APPENDER: Record = Record {
    name: "MessageAppenderContribution",
    base: DESCRIPTOR,
    own: &[
        required("targetMessageType", Shape::Text),
        required("position", Shape::Word(&POSITIONS)),
        required("renderHandle", Shape::Handle(HandleKind::MessageAppender)),
    ],
};
pub(crate) static TOOL_RENDERER: Record = Record {
    name: "ToolRendererContribution",
    base: DESCRIPTOR,
    own: &[required("claim", TOOL_CLAIM), required("renderHandle", Shape::Handle(HandleKind::ToolRenderer))],
};
pub(crate) static ACTIVITY_RENDERER: Record = Record {
    name: "ActivityRendererContribution",
    base: DESCRIPTOR,
    own: &[
        required("claim", ACTIVITY_CLAIM),
        required("renderHandle", Shape::Handle(HandleKind::ActivityRenderer)),
    ],
};
pub(crate) static FALLBACK_SURFACE: Record = Record {
    name: "FallbackSurfaceContribution",
    base: DESCRIPTOR,
    own: &[
        required("status", Shape::Word(&FALLBACK_STATUSES)),
        required("renderHandle", Shape::Handle(HandleKind::FallbackSurface)),
    ],
};

/// The collections, in the order of [`crate::kind::ContributionKind`].
pub(crate) static CONTRIBUTIONS: Record = Record {
    name: "Contributions",
    base: &[],
    own: &[
        optional("routes", Shape::List(&Shape::Record(&ROUTE))),
        optional("sidebarItems", Shape::List(&Shape::Record(&SIDEBAR_ITEM))),
        optional("configurationSurfaces", Shape::List(&Shape::Record(&CONFIGURATION_SURFACE))),
        optional("integrationSurfaces", Shape::List(&Shape::Record(&INTEGRATION_SURFACE))),
        optional("messageRenderers", Shape::List(&Shape::Record(&MESSAGE_RENDERER))),
        optional("messageAppenders", Shape::List(&Shape::Record(&MESSAGE_APPENDER))),
        optional("toolRenderers", Shape::List(&Shape::Record(&TOOL_RENDERER))),
        optional("activityRenderers", Shape::List(&Shape::Record(&ACTIVITY_RENDERER))),
        optional("fallbackSurfaces", Shape::List(&Shape::Record(&FALLBACK_SURFACE))),
    ],
};

const DECLARATION: &[Field] = &[
    required("packageId", Shape::Text),
    optional("packageVersion", Shape::Text),
    required("moduleApiVersion", Shape::Version),
    required("instanceId", INSTANCE_ID),
    required("contributions", Shape::Apart(&CONTRIBUTIONS)),
];
/// What a module's author writes.
pub(crate) static MODULE_DECLARATION: Record =
    Record { name: "ModuleDeclaration", base: DECLARATION, own: &[] };
pub(crate) static RUNTIME: Record = Record {
    name: "ModuleRuntime",
    base: &[],
    own: &[required("status", Shape::Word(&STATUSES)), optional("reason", Shape::Text)],
};
/// A declaration with what the host found out about it.
pub(crate) static MODULE_INSTANCE: Record = Record {
    name: "ModuleInstance",
    base: DECLARATION,
    own: &[required("runtime", Shape::Record(&RUNTIME))],
};
pub(crate) static BUILTIN: Record = Record {
    name: "BuiltinDeclaration",
    base: &[],
    own: &[
        required("ownerId", BUILTIN_ID),
        optional("packageId", Shape::Text),
        optional("packageVersion", Shape::Text),
        required("contributions", Shape::Apart(&CONTRIBUTIONS)),
    ],
};

static HIDE: Record = Record {
    name: "HideOperation",
    base: &[],
    own: &[required("id", Shape::Text), required("op", Shape::Literal("hide")), required("target", KEY)],
};
static REPLACE: Record = Record {
    name: "ReplaceOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Literal("replace")),
        required("target", KEY),
        required("use", KEY),
    ],
};
static PATH_ALIAS: Record = Record {
    name: "PathAliasOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Literal("pathAlias")),
        required("target", KEY),
        required("path", ROUTE_PATH),
    ],
};
static RENDERER_OVERRIDE: Record = Record {
    name: "RendererOverrideOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Literal("rendererOverride")),
        required("target", ANY_CLAIM),
        required("use", KEY),
    ],
};
static REORDER_BEFORE: Record = Record {
    name: "ReorderBeforeOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Literal("reorder")),
        required("target", KEY),
        required("before", KEY),
    ],
};
static REORDER_AFTER: Record = Record {
    name: "ReorderAfterOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Literal("reorder")),
        required("target", KEY),
        required("after", KEY),
    ],
};
pub(crate) static OPERATION: Union = Union {
    name: "PolicyOperation",
    records: &[&HIDE, &REPLACE, &PATH_ALIAS, &RENDERER_OVERRIDE, &REORDER_BEFORE, &REORDER_AFTER],
};
/// What the structure phase demands of every operation; the policy phase judges the rest.
pub(crate) static ANY_OPERATION: Record = Record {
    name: "PolicyOperation",
    base: &[],
    own: &[
        required("id", Shape::Text),
        required("op", Shape::Text),
        required("target", Shape::Text),
        optional("use", Shape::Text),
        optional("path", Shape::Text),
        optional("before", Shape::Text),
        optional("after", Shape::Text),
    ],
};
pub(crate) static POLICY: Record = Record {
    name: "CompositionPolicy",
    base: &[],
    own: &[
        required("policySchemaVersion", Shape::Version),
        required("operations", Shape::List(&Shape::Union(&OPERATION))),
        optional("allowModuleRootRoute", Shape::Flag),
    ],
};
pub(crate) static INPUT: Record = Record {
    name: "CompositionInput",
    base: &[],
    own: &[
        required("compositionSchemaVersion", Shape::Version),
        optional("builtins", Shape::List(&Shape::Record(&BUILTIN))),
        required("modules", Shape::List(&Shape::Record(&MODULE_INSTANCE))),
        optional("policy", Shape::Apart(&POLICY)),
    ],
};

impl OperationKind {
    /// The fields an operation of this kind may have.
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
