//! Choosing documents for a query within a budget, and the answer that says what was chosen and why.
//!
//! One order for all: score descending, then id ascending in bytes. Documents are taken while they fit; one that does
//! not is passed over, never cut. Both readers of a cache end here, so that they cannot disagree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::corpus::{Corpus, Document};
use crate::document::Version;
use crate::query::Query;

/// The answer to a query: the documents chosen, with the reasons.
///
/// Serialises to the contract's object. Scores are 32-bit floats and are printed as such: take care not to send them
/// through a JSON value, which would print them as 64-bit ones.
#[derive(Debug)]
pub struct Selection {
    corpus: Arc<Corpus>,
    query: Query,
    picks: Vec<Pick>,
    budget: u64,
    tokens_used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pick {
    document: usize,
    matches: u64,
}

/// A document that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selected<'a> {
    pub id: &'a str,
    pub version: Version,
    pub content: &'a str,
    pub score: f32,
    pub tokens: u64,
    pub why: Why<'a>,
}

/// What a score is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why<'a> {
    pub query_terms: &'a [String],
    pub term_matches: u64,
    pub total_words: u64,
}

/// How the choice came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally<'a> {
    pub query: &'a str,
    pub budget: u64,
    pub tokens_used: u64,
    pub documents_considered: usize,
    pub documents_selected: usize,
    pub documents_excluded_by_budget: usize,
}

/// Chooses from the documents of `corpus`, of which `matches` says how many words match.
pub(crate) fn select(corpus: Arc<Corpus>, matches: &[u64], query: Query, budget: u64) -> Selection {
    let documents = corpus.documents();
    let scored = documents.iter().zip(matches).enumerate().filter(|(_, (_, matches))| **matches > 0);
    let scored =
        scored.map(|(number, (document, &matches))| (Order(score(matches, document)), Reverse(number)));
    // Ordered only as far as the budget reaches: a common word matches everything, and little of that is taken.
    let mut matching: BinaryHeap<(Order, Reverse<usize>)> = scored.collect::<Vec<_>>().into();
    let best_first = iter::from_fn(|| matching.pop().map(|(_, Reverse(number))| number));
    let rest = (0..documents.len()).filter(|&number| matches[number] == 0);

    let mut picks = Vec::new();
    let mut left = budget;
    // A budget of nothing buys nothing, not even an empty document.
    if budget > 0 {
        for number in best_first.chain(rest) {
            if left < corpus.least_tokens() {
                break;
            }
            if let Some(remaining) = left.checked_sub(documents[number].tokens()) {
                left = remaining;
                picks.push(Pick { document: number, matches: matches[number] });
            }
        }
    }
    Selection { corpus, query, picks, budget, tokens_used: budget - left }
}

/// Matches per word, 0 for a text without words.
#[expect(clippy::cast_precision_loss, reason = "the contract's score is the quotient of two 32-bit floats")]
fn score(matches: u64, document: &Document) -> f32 {
    if document.words == 0 { 0.0 } else { matches as f32 / document.words as f32 }
}

/// A score as a key to sort by.
#[derive(PartialEq)]
struct Order(f32);

impl Eq for Order {}

impl PartialOrd for Order {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Order {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Selection {
    /// The documents chosen, best first.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = Selected<'_>> {
        self.picks.iter().map(|pick| {
            let document = &self.corpus.documents()[pick.document];
            Selected {
                id: &document.id,
                version: document.version,
                content: &document.content,
                score: score(pick.matches, document),
                tokens: document.tokens(),
                why: Why {
                    query_terms: self.query.query_terms(),
                    term_matches: pick.matches,
                    total_words: document.words,
                },
            }
        })
    }

    #[must_use]
    pub fn tally(&self) -> Tally<'_> {
        let considered = self.corpus.documents().len();
        Tally {
            query: self.query.text(),
            budget: self.budget,
            tokens_used: self.tokens_used,
            documents_considered: considered,
            documents_selected: self.picks.len(),
            documents_excluded_by_budget: considered - self.picks.len(),
        }
    }

    /// The whole answer as compact JSON, without a final newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and finite numbers are JSON")
    }

    /// Whether every file this answer was made from still looks as it did.
    pub(crate) fn is_current(&self) -> bool {
        let documents = self.corpus.documents();
        self.corpus.is_current(self.picks.iter().map(|pick| &documents[pick.document]))
    }

    /// Gives the query back for another try.
    pub(crate) fn into_query(self) -> Query {
        self.query
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            documents: Vec<Selected<'a>>,
            selection: Tally<'a>,
        }
        Whole { documents: self.documents().collect(), selection: self.tally() }.serialize(serializer)
    }
}
