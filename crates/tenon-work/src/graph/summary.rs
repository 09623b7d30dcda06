//! Sizes and dangling edges of a whole graph, as a view shows it.
//!
//! A query plan for a small graph is bad for a large one, so the statements are planned each time.

use super::visibility::{doc_postgres, doc_sqlite, is_visible, parts, versions_postgres, versions_sqlite};
use crate::store::{Sql, StoreError, Tx, args};

/// What the view shows of a kind, without tombstones.
macro_rules! shown {
    ($columns:literal, $versions:expr, $doc:ident) => {
        concat!("SELECT ", $columns, " FROM parts p CROSS JOIN ", $versions, is_visible!($doc))
    };
}

macro_rules! types {
    ($versions:ident, $doc:ident) => {
        concat!(
            parts!(),
            "SELECT type, count(*) FROM (",
            shown!("v.type", $versions!("v.doc = $3 AND v.kind = 0 AND v.deleted = 0", "OFFSET 0"), $doc),
            ") n GROUP BY type ORDER BY type"
        )
    };
}

const TYPES: Sql =
    Sql { sqlite: types!(versions_sqlite, doc_sqlite), postgres: types!(versions_postgres, doc_postgres) };

/// How many nodes there are of each type.
pub(crate) async fn count_types(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = tx.rows_replanned(TYPES, args![ws, branch, doc]).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}

/// The size of a graph, and a page of the dangling edges.
#[derive(Default)]
pub(crate) struct GraphSummary {
    pub nodes: i64,
    pub edges: i64,
    pub dangling: Vec<Dangling>,
}

/// An edge with a missing end.
pub(crate) struct Dangling {
    pub key: String,
    pub from_is_missing: bool,
    pub to_is_missing: bool,
}

/// A row with the sizes, then the dangling edges.
macro_rules! check {
    ($versions:ident, $doc:ident, $ends:literal) => {
        concat!(
            parts!(),
            ", nodes AS MATERIALIZED (",
            shown!("v.id", $versions!("v.doc = $3 AND v.kind = 0 AND v.deleted = 0", "OFFSET 0"), $doc),
            "), edges AS MATERIALIZED (",
            shown!("v.id, v.start, v.goal", $versions!("v.doc = $3 AND v.kind = 1 AND v.deleted = 0", "OFFSET 0"), $doc),
            ") SELECT NULL, (SELECT count(*) FROM nodes), (SELECT count(*) FROM edges)
            UNION ALL SELECT * FROM (
                SELECT e.id, CASE WHEN e.a IS NULL THEN 1 ELSE 0 END, CASE WHEN e.b IS NULL THEN 1 ELSE 0 END
                FROM (SELECT e.id, a.id AS a, b.id AS b FROM edges e ",
            $ends,
            ") e WHERE (e.a IS NULL OR e.b IS NULL) AND e.id >= $4 ORDER BY e.id LIMIT $5
            ) d"
        )
    };
}

/// PostgreSQL assumes about one node and would scan all of them for every edge. A full join forces a hash or a sort, as
/// long as the planner cannot see that rows without an edge are not wanted.
pub(super) const CHECK: Sql = Sql {
    sqlite: check!(
        versions_sqlite,
        doc_sqlite,
        "LEFT JOIN nodes a ON a.id = e.start LEFT JOIN nodes b ON b.id = e.goal"
    ),
    postgres: check!(
        versions_postgres,
        doc_postgres,
        "FULL JOIN nodes a ON a.id = e.start FULL JOIN nodes b ON b.id = e.goal OFFSET 0"
    ),
};

/// Counts nodes and edges, and finds dangling edges in key order, starting at a key.
pub(crate) async fn summarise(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    from: &str,
    most: i64,
) -> Result<GraphSummary, StoreError> {
    let mut summary = GraphSummary::default();
    for row in tx.rows_replanned(CHECK, args![ws, branch, doc, from, most]).await? {
        match row.opt_text(0)? {
            None => (summary.nodes, summary.edges) = (row.int(1)?, row.int(2)?),
            Some(key) => summary.dangling.push(Dangling {
                key,
                from_is_missing: row.flag(1)?,
                to_is_missing: row.flag(2)?,
            }),
        }
    }
    Ok(summary)
}
