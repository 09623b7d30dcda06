//! The closed word lists of the contract: contribution kinds, render handle kinds, runtime statuses.

use serde::Serialize;

/// Declares an enum whose variants are the words of a closed list.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The same as text.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use string_enum;

string_enum! {
    /// The collection a contribution belongs to; the middle part of its canonical key.
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
    /// What a render handle draws.
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
    /// What the host found out about a module.
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
    /// Where an appender stands beside its message.
    AppenderPosition { Before = "before", After = "after" }
}

string_enum! {
    /// Who declares a contribution.
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

    /// The handle kind that fits this kind; a sidebar item draws nothing of its own.
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

    /// The renderer kind its claims begin with, for the kinds that claim.
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
    fn words_and_variants_agree() {
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
