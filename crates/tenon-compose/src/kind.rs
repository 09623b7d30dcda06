//! The string enums of the contract: contribution kinds, render handle kinds, runtime statuses and others.

use serde::Serialize;

/// Declares an enum whose variants each have one string on the wire.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every variant, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The wire strings, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use string_enum;

string_enum! {
    /// The collection a contribution belongs to; the middle part of a canonical key.
    ContributionKind {
        Routes = "routes",
        SidebarItems = "sidebar-items",
        ConfigurationSurfaces = "configuration-surfaces",
        IntegrationSurfaces = "integration-surfaces",
        MessageRenderers = "message-renderers",
        MessageAppenders = "message-appenders",
        ToolRenderers = "tool-renderers",
        ActivityRenderers = "activity-renderers",
        FallbackSurfaces = "fallback-surfaces",
    }
}

string_enum! {
    /// What a render handle renders.
    RenderHandleKind {
        Route = "route",
        ConfigurationSurface = "configuration-surface",
        IntegrationSurface = "integration-surface",
        MessageRenderer = "message-renderer",
        MessageAppender = "message-appender",
        ToolRenderer = "tool-renderer",
        ActivityRenderer = "activity-renderer",
        FallbackSurface = "fallback-surface",
    }
}

string_enum! {
    /// The first part of a renderer claim.
    RendererKind { Message = "message", Tool = "tool", Activity = "activity" }
}

string_enum! {
    /// A module's status, resolved by the host.
    RuntimeStatus {
        Ready = "ready",
        ReadOnly = "read-only",
        NeedsConfiguration = "needs-configuration",
        Unauthorized = "unauthorized",
        Disabled = "disabled",
        Error = "error",
    }
}

string_enum! {
    /// Whether an appender renders before or after the message.
    AppenderPosition { Before = "before", After = "after" }
}

string_enum! {
    /// Which kind of owner declares a contribution.
    OwnerKind { Module = "module", Builtin = "builtin" }
}

string_enum! {
    /// The operations of a composition policy, in the order in which they are applied.
    OperationKind {
        Hide = "hide",
        Replace = "replace",
        PathAlias = "pathAlias",
        RendererOverride = "rendererOverride",
        Reorder = "reorder",
    }
}

impl ContributionKind {
    /// The key of this kind's list in a declaration.
    #[must_use]
    pub const fn collection(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::SidebarItems => "sidebarItems",
            Self::ConfigurationSurfaces => "configurationSurfaces",
            Self::IntegrationSurfaces => "integrationSurfaces",
            Self::MessageRenderers => "messageRenderers",
            Self::MessageAppenders => "messageAppenders",
            Self::ToolRenderers => "toolRenderers",
            Self::ActivityRenderers => "activityRenderers",
            Self::FallbackSurfaces => "fallbackSurfaces",
        }
    }

    /// The key of this kind's list in a composition.
    #[must_use]
    pub const fn composed_collection(self) -> &'static str {
        match self {
            Self::FallbackSurfaces => "fallbacks",
            _ => self.collection(),
        }
    }

    /// The handle kind that this kind requires; sidebar items have no handle.
    #[must_use]
    pub const fn handle(self) -> Option<RenderHandleKind> {
        match self {
            Self::Routes => Some(RenderHandleKind::Route),
            Self::SidebarItems => None,
            Self::ConfigurationSurfaces => Some(RenderHandleKind::ConfigurationSurface),
            Self::IntegrationSurfaces => Some(RenderHandleKind::IntegrationSurface),
            Self::MessageRenderers => Some(RenderHandleKind::MessageRenderer),
            Self::MessageAppenders => Some(RenderHandleKind::MessageAppender),
            Self::ToolRenderers => Some(RenderHandleKind::ToolRenderer),
            Self::ActivityRenderers => Some(RenderHandleKind::ActivityRenderer),
            Self::FallbackSurfaces => Some(RenderHandleKind::FallbackSurface),
        }
    }

    /// The renderer kind of this kind's claims, if it has claims.
    #[must_use]
    pub const fn claims(self) -> Option<RendererKind> {
        match self {
            Self::MessageRenderers => Some(RendererKind::Message),
            Self::ToolRenderers => Some(RendererKind::Tool),
            Self::ActivityRenderers => Some(RendererKind::Activity),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_to_their_variants() {
        for kind in ContributionKind::ALL {
            assert_eq!(ContributionKind::parse(kind.as_str()), Some(*kind));
            let camel: String =
                kind.as_str().split('-').enumerate().fold(String::new(), |text, (n, part)| {
                    let (first, rest) = part.split_at(1);
                    text + &if n == 0 { first.to_owned() } else { first.to_uppercase() } + rest
                });
            assert_eq!(kind.collection(), camel);
        }
        assert_eq!(ContributionKind::parse("Routes"), None);
        assert_eq!(RenderHandleKind::NAMES.len(), RenderHandleKind::ALL.len());
    }
}
