//! The composer's input: a JSON document, read strictly but not yet judged.

use serde_json::Value;

use crate::json::{Json, ParseError};

/// A document to compose. Whether it has the right shape is for the composer to say, in diagnostics.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositionInput<'a> {
    pub(crate) root: Json<'a>,
}

impl<'a> CompositionInput<'a> {
    /// Reads JSON text.
    ///
    /// # Errors
    /// When the bytes are no UTF-8 or no JSON, give a key twice, or nest too deep; with the position.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Json::parse(bytes).map(|root| Self { root })
    }

    /// Takes JSON that was read elsewhere.
    ///
    /// # Errors
    /// When it nests too deep.
    pub fn from_value(value: &'a Value) -> Result<Self, ParseError> {
        Json::from_value(value).map(|root| Self { root })
    }

    /// The same input under another policy. An input that is no object stays as it is, for the composer to refuse.
    #[must_use]
    pub fn with_policy(mut self, policy: CompositionInput<'a>) -> Self {
        if let Json::Object(object) = &mut self.root {
            object.set("policy", policy.root);
        }
        self
    }
}
