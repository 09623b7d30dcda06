//! Counting tokens: the estimate of the cache contract, or the real tokenizers of models.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use tiktoken_rs::CoreBPE;

/// How tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// A quarter of the bytes, rounded up.
    #[default]
    Estimate,
    O200kBase,
    Cl100kBase,
}

impl Tokenizer {
    pub const ALL: [Self; 3] = [Self::Estimate, Self::O200kBase, Self::Cl100kBase];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.as_str() == name)
    }

    /// The tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Estimate => text.len().div_ceil(4),
            Self::O200kBase => real(&O200K, text),
            Self::Cl100kBase => real(&CL100K, text),
        }
    }
}

// The vocabularies are part of the program; nothing is downloaded.
static O200K: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::o200k_base().ok());
static CL100K: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::cl100k_base().ok());

fn real(tokenizer: &Option<CoreBPE>, text: &str) -> usize {
    // A token has at least one byte, so that the bytes are never too few.
    tokenizer.as_ref().map_or(text.len(), |tokenizer| tokenizer.encode_ordinary(text).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokenizers_count_as_published() {
        assert_eq!(Tokenizer::Estimate.count("hello world"), 3);
        assert_eq!(Tokenizer::Cl100kBase.count("tiktoken is great!"), 6);
        assert_eq!(Tokenizer::O200kBase.count("tiktoken is great!"), 6);
        assert_eq!(Tokenizer::O200kBase.count("<|endoftext|>"), Tokenizer::O200kBase.count("<|endoftext|>"));
        assert!(
            Tokenizer::ALL
                .iter()
                .all(|one| Tokenizer::parse(one.as_str()) == Some(*one) && one.count("") == 0)
        );
    }
}
