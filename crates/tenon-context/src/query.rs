//! A query: any text up to 64 KiB, including the empty text.

use crate::error::Error;
use crate::tokenize::{Terms, fold, words};

/// A query and its terms. Repeated terms are reported as given but counted once.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    words: Vec<String>,
    terms: Terms,
}

impl Query {
    /// Maximum size of a query in bytes.
    pub const LIMIT: usize = 64 * 1024;

    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        if text.len() > Self::LIMIT {
            return Err(Error::QueryTooLong { bytes: text.len(), limit: Self::LIMIT });
        }
        let words: Vec<String> = words(&text).map(|word| fold(word).into_owned()).collect();
        Ok(Self { terms: Terms::new(words.iter().cloned()), words, text })
    }

    /// The original text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words in lower case, in the given order, with repeats.
    #[must_use]
    pub fn query_terms(&self) -> &[String] {
        &self.words
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_terms_keep_order_and_repeats() {
        let query = Query::new(" b A\ta").unwrap();
        assert_eq!(query.query_terms(), ["b", "a", "a"]);
        assert_eq!(query.terms().iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn query_over_the_byte_limit_is_rejected() {
        Query::new("é".repeat(Query::LIMIT / 2)).unwrap();
        assert!(matches!(Query::new("x".repeat(Query::LIMIT + 1)), Err(Error::QueryTooLong { .. })));
    }
}
