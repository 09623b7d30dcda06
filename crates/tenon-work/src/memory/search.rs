//! The full-text index: one row per note, card, graph node, plan, task or step, found by its words.
//!
//! Hits come newest first: this order is the same on both backends, costs only the page, and does not change with every
//! write as a ranking would. A row number combines workspace and `seq`, so a workspace is a range.

use std::cmp::Reverse;

use super::search_query::{SearchQuery, index_words};
use crate::id::TargetKind;
use crate::store::{CandidateSearch, Row, StoreError, Tx};

/// Room for a trillion entries in each of eight million workspaces.
const SEQ_BITS: u32 = 40;

fn row_number(ws: i64, seq: i64) -> i64 {
    (ws << SEQ_BITS) | seq
}

macro_rules! kinds {
    ($($variant:ident $text:literal)*) => {
        /// The kind of a hit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum SearchKind {
            $($variant),*
        }

        impl SearchKind {
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }

            fn from_stored(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Note "note"
    Card "card"
    Node "node"
    Plan "plan"
    Task "task"
    Step "step"
}

impl SearchKind {
    pub(crate) fn of_target(kind: TargetKind) -> Self {
        match kind {
            TargetKind::Plan => Self::Plan,
            TargetKind::Task => Self::Task,
        }
    }
}

/// Adds a text to the index. `reference` is the key of the record.
pub(crate) async fn insert(
    tx: &mut Tx,
    ws: i64,
    seq: i64,
    kind: SearchKind,
    reference: i64,
    text: &str,
) -> Result<(), StoreError> {
    tx.full_text_insert(row_number(ws, seq), kind.as_str(), reference, index_words(text)).await
}

pub(crate) async fn remove(tx: &mut Tx, ws: i64, seq: i64) -> Result<(), StoreError> {
    tx.full_text_remove(row_number(ws, seq)).await
}

/// A row with all the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub seq: i64,
    pub kind: SearchKind,
    pub reference: i64,
}

/// Hits at or below a `seq`, newest first.
pub(crate) async fn find(
    tx: &mut Tx,
    ws: i64,
    query: &SearchQuery,
    below: Option<i64>,
    most: i64,
) -> Result<Vec<Hit>, StoreError> {
    let last = row_number(ws + 1, 0) - 1;
    let upper = below.map_or(last, |seq| row_number(ws, seq.clamp(0, (1 << SEQ_BITS) - 1)));
    let lower = row_number(ws, 0);
    hits(tx.full_text_find(query.to_arg(), (lower, upper), most).await?)
}

/// The newest hits of several searches for ranking: notes, cards, plans, tasks and steps. Each search may have a wider one
/// that is used if it finds fewer hits than `most`; with each result, the search that found it.
pub(crate) async fn find_ranked(
    tx: &mut Tx,
    ws: i64,
    searches: Vec<(SearchQuery, Option<SearchQuery>)>,
    most: i64,
) -> Result<Vec<(SearchQuery, Vec<Hit>)>, StoreError> {
    let range = (row_number(ws, 0), row_number(ws + 1, 0) - 1);
    let asked: Vec<CandidateSearch<'_>> = searches
        .iter()
        .map(|(query, wider)| CandidateSearch {
            query: query.to_arg(),
            wider: wider.as_ref().map(SearchQuery::to_arg),
        })
        .collect();
    let found = tx.full_text_candidates(&asked, range, most).await?;
    let chosen = searches.into_iter().zip(found).map(|((query, wider), found)| {
        let query = if found.is_wider { wider.unwrap_or(query) } else { query };
        Ok((query, hits(found.rows)?))
    });
    chosen.collect()
}

fn hits(rows: Vec<Row>) -> Result<Vec<Hit>, StoreError> {
    let mut hits = Vec::with_capacity(rows.len());
    for row in rows {
        let kind = row.text(1)?;
        let kind = SearchKind::from_stored(&kind)
            .ok_or_else(|| StoreError::Damaged(format!("`{kind}` is not a kind of hit")))?;
        hits.push(Hit { seq: row.int(0)? & ((1 << SEQ_BITS) - 1), kind, reference: row.int(2)? });
    }
    // PostgreSQL does not promise the order within a part of a larger statement.
    hits.sort_unstable_by_key(|hit| Reverse(hit.seq));
    Ok(hits)
}
