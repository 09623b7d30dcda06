//! Statements about whole graphs as a view shows them: counts and faults.
//!
//! One statement each, for branches and roots alike.

use super::id::GraphKind;
use super::shown::{is_shown, parts};
use crate::store::{StoreError, Tx, args};

/// What the view shows of a kind, tombstones left out.
macro_rules! shown {
    ($columns:literal, $kind:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM parts p CROSS JOIN graph v WHERE v.kind = ",
            $kind,
            " AND v.deleted = 0 AND ",
            is_shown!()
        )
    };
}

pub(crate) async fn count(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    kind: GraphKind,
) -> Result<i64, StoreError> {
    let sql = match kind {
        GraphKind::Node => concat!(parts!(), "SELECT count(*) FROM (", shown!("v.id", "0"), ") n"),
        GraphKind::Edge => concat!(parts!(), "SELECT count(*) FROM (", shown!("v.id", "1"), ") n"),
    };
    let row = tx.row(sql, args![ws, branch, doc]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

/// How many nodes there are of each type.
pub(crate) async fn count_types(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
) -> Result<Vec<(String, i64)>, StoreError> {
    let sql = concat!(
        parts!(),
        "SELECT type, count(*) FROM (",
        shown!("v.type", "0"),
        ") n GROUP BY type ORDER BY type"
    );
    let rows = tx.rows(sql, args![ws, branch, doc]).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}

/// An edge one of whose ends is not there.
pub(crate) struct Dangling {
    pub key: String,
    pub from_is_missing: bool,
    pub to_is_missing: bool,
}

/// Edges without ends, in the order of their keys, from a key on.
pub(crate) async fn dangling(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    from: &str,
    most: i64,
) -> Result<Vec<Dangling>, StoreError> {
    let sql = concat!(
        parts!(),
        ", nodes AS MATERIALIZED (",
        shown!("v.id", "0"),
        "), edges AS MATERIALIZED (",
        shown!("v.id, v.start, v.goal", "1"),
        ") SELECT e.id, CASE WHEN a.id IS NULL THEN 1 ELSE 0 END, CASE WHEN b.id IS NULL THEN 1 ELSE 0 END
        FROM edges e LEFT JOIN nodes a ON a.id = e.start LEFT JOIN nodes b ON b.id = e.goal
        WHERE (a.id IS NULL OR b.id IS NULL) AND e.id >= $4 ORDER BY e.id LIMIT $5"
    );
    let rows = tx.rows(sql, args![ws, branch, doc, from, most]).await?;
    rows.iter()
        .map(|row| {
            Ok(Dangling { key: row.text(0)?, from_is_missing: row.flag(1)?, to_is_missing: row.flag(2)? })
        })
        .collect()
}
