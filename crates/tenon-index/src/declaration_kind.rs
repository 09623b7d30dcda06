//! What a declaration declares.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($variant:ident $name:literal,)*) => {
        /// What a declaration declares. The same words in all languages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum DeclarationKind {
            $($variant,)*
        }

        impl DeclarationKind {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in answers and in the queries of the languages.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
            }
        }
    };
}

kinds! {
    Module "module",
    Namespace "namespace",
    Class "class",
    Interface "interface",
    Trait "trait",
    Struct "struct",
    Enum "enum",
    TypeAlias "type",
    // A block that adds members to a type: Rust's `impl`. Named after the type, and not found by name.
    Impl "impl",
    Function "function",
    Method "method",
    Constructor "constructor",
    Property "property",
    Field "field",
    Constant "constant",
    Variable "variable",
    EnumMember "enum_member",
    Macro "macro",
}

impl DeclarationKind {
    /// Contains members.
    #[must_use]
    pub const fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Interface | Self::Trait | Self::Struct | Self::Enum | Self::Impl)
    }

    #[must_use]
    pub const fn is_callable(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor)
    }

    /// Holds a value.
    #[must_use]
    pub const fn is_value(self) -> bool {
        matches!(self, Self::Field | Self::Constant | Self::Variable | Self::EnumMember)
    }

    /// Types and callables before properties, and those before values.
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Self::Class
            | Self::Interface
            | Self::Trait
            | Self::Struct
            | Self::Enum
            | Self::TypeAlias
            | Self::Function
            | Self::Method
            | Self::Constructor
            | Self::Macro => 0,
            Self::Module | Self::Namespace | Self::Property | Self::Impl => 1,
            Self::Field | Self::Constant | Self::Variable | Self::EnumMember => 2,
        }
    }
}

impl fmt::Display for DeclarationKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
