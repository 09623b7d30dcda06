//! The composer's input: a parsed JSON document whose structure is not checked yet.

use serde_json::Value;

use crate::json::{Json, ParseError};

/// A document to compose. The composer reports structural mistakes as diagnostics.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositionInput<'a> {
    pub(crate) root: Json<'a>,
}

impl<'a> CompositionInput<'a> {
    /// Parses JSON text.
    ///
    /// # Errors
    /// When the bytes are not UTF-8 or not JSON, repeat a key or nest too deeply; with the position.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Json::parse(bytes).map(|root| Self { root })
    }

    /// Borrows a value that is already parsed.
    ///
    /// # Errors
    /// When it nests too deeply.
    pub fn from_value(value: &'a Value) -> Result<Self, ParseError> {
        Json::from_value(value).map(|root| Self { root })
    }

    /// Replaces the policy. An input that is not an object is unchanged; the composer rejects it.
    #[must_use]
    pub fn with_policy(mut self, policy: CompositionInput<'a>) -> Self {
        if let Json::Object(object) = &mut self.root {
            object.set("policy", policy.root);
        }
        self
    }
}
