//! A query: any text up to 64 KiB, the empty one included.

use crate::error::Error;
use crate::words::{Terms, fold, words};

/// What to look for. Repeated terms are reported as they were asked for and counted once.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    asked: Vec<String>,
    terms: Terms,
}

impl Query {
    /// The most bytes a query may have.
    pub const LIMIT: usize = 64 * 1024;

    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        if text.len() > Self::LIMIT {
            return Err(Error::QueryTooLong { bytes: text.len(), limit: Self::LIMIT });
        }
        let asked: Vec<String> = words(&text).map(|word| fold(word).into_owned()).collect();
        Ok(Self { terms: Terms::new(asked.iter().cloned()), asked, text })
    }

    /// As it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its words in lower case, in the order asked for, repeats kept.
    #[must_use]
    pub fn query_terms(&self) -> &[String] {
        &self.asked
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_kept() {
        let query = Query::new(" b A\ta").unwrap();
        assert_eq!(query.query_terms(), ["b", "a", "a"]);
        assert_eq!(query.terms().iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn the_limit_is_in_bytes() {
        Query::new("é".repeat(Query::LIMIT / 2)).unwrap();
        assert!(matches!(Query::new("x".repeat(Query::LIMIT + 1)), Err(Error::QueryTooLong { .. })));
    }
}
