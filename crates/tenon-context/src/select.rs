//! Selects documents for a query within a token budget and explains the selection.
//!
//! Documents are ordered by score descending, then by id in byte order. Each document that fits the remaining budget is
//! selected; others are skipped, never cut. Answers from disk and from memory both use this code, so they agree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::corpus::{Corpus, Document};
use crate::document::ContentVersion;
use crate::query::Query;

/// The answer to a query: the selected documents with explanations.
///
/// Serialises to the object of the contract. Scores are 32-bit floats; do not convert them to a JSON value, which would
/// print them as 64-bit floats.
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

/// A selected document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelectedDocument<'a> {
    pub id: &'a str,
    pub version: ContentVersion,
    pub content: &'a str,
    pub score: f32,
    pub tokens: u64,
    pub why: ScoreExplanation<'a>,
}

/// The numbers behind a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreExplanation<'a> {
    pub query_terms: &'a [String],
    pub term_matches: u64,
    pub total_words: u64,
}

/// Totals of a selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SelectionTotals<'a> {
    pub query: &'a str,
    pub budget: u64,
    pub tokens_used: u64,
    pub documents_considered: usize,
    pub documents_selected: usize,
    pub documents_excluded_by_budget: usize,
}

/// Selects documents of `corpus`. `matches` has the number of matching words per document.
pub(crate) fn select(corpus: Arc<Corpus>, matches: &[u64], query: Query, budget: u64) -> Selection {
    let documents = corpus.documents();
    let scored = documents.iter().zip(matches).enumerate().filter(|(_, (_, matches))| **matches > 0);
    let scored =
        scored.map(|(number, (document, &matches))| (ScoreKey(score(matches, document)), Reverse(number)));
    // A heap, not a sort: a common word matches almost all documents, and few of them fit the budget.
    let mut matching: BinaryHeap<(ScoreKey, Reverse<usize>)> = scored.collect::<Vec<_>>().into();
    let best_first = iter::from_fn(|| matching.pop().map(|(_, Reverse(number))| number));
    let rest = (0..documents.len()).filter(|&number| matches[number] == 0);

    let mut picks = Vec::new();
    let mut left = budget;
    // A budget of zero selects nothing, not even an empty document.
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

/// Share of matching words; 0 for a text without words.
#[expect(clippy::cast_precision_loss, reason = "the contract's score is the quotient of two 32-bit floats")]
fn score(matches: u64, document: &Document) -> f32 {
    if document.words == 0 { 0.0 } else { matches as f32 / document.words as f32 }
}

/// A score as a sort key.
#[derive(PartialEq)]
struct ScoreKey(f32);

impl Eq for ScoreKey {}

impl PartialOrd for ScoreKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoreKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Selection {
    /// The selected documents, best first.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = SelectedDocument<'_>> {
        self.picks.iter().map(|pick| {
            let document = &self.corpus.documents()[pick.document];
            SelectedDocument {
                id: &document.id,
                version: document.version,
                content: &document.content,
                score: score(pick.matches, document),
                tokens: document.tokens(),
                why: ScoreExplanation {
                    query_terms: self.query.query_terms(),
                    term_matches: pick.matches,
                    total_words: document.words,
                },
            }
        })
    }

    #[must_use]
    pub fn totals(&self) -> SelectionTotals<'_> {
        let considered = self.corpus.documents().len();
        SelectionTotals {
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

    /// Whether the files of the selected documents are unchanged.
    pub(crate) fn is_current(&self) -> bool {
        let documents = self.corpus.documents();
        self.corpus.is_current(self.picks.iter().map(|pick| &documents[pick.document]))
    }

    /// Returns the query for a retry.
    pub(crate) fn into_query(self) -> Query {
        self.query
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Response<'a> {
            documents: Vec<SelectedDocument<'a>>,
            selection: SelectionTotals<'a>,
        }
        Response { documents: self.documents().collect(), selection: self.totals() }.serialize(serializer)
    }
}
