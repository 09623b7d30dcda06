//! Keys that two views may show differently: those with a version in a part that only one of them shows.

use super::id::{GraphKey, GraphKind};
use super::visibility::{doc_postgres, doc_sqlite};
use crate::memory::branch::View;
use crate::store::{Sql, StoreError, Tx, args};

/// Keys in order (nodes, then edges) with versions that only one of the views shows, starting at or after a key.
pub(crate) async fn candidates(
    tx: &mut Tx,
    ws: i64,
    one: &View,
    other: &View,
    doc: &str,
    from: (GraphKind, &str, bool),
    most: i64,
) -> Result<Vec<GraphKey>, StoreError> {
    let mut found = Vec::new();
    for (view, without) in [(one, other), (other, one)] {
        for part in &view.parts {
            let above = without.upto(part.branch);
            if above < part.upto {
                found.extend(keys(tx, ws, part.branch, doc, (above, part.upto), from, most).await?);
            }
        }
    }
    found.sort();
    found.dedup();
    found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(found)
}

macro_rules! keys {
    ($doc:ident) => {
        concat!(
            "SELECT DISTINCT v.kind, v.id FROM graph v WHERE v.ws = $1 AND v.branch = $2 AND ",
            $doc!("v", "$3"),
            // Comparing the row as a whole lets the index scan start there.
            " AND v.seq > $4 AND v.seq <= $5 AND (v.kind, v.id) >= ($6, $7) AND (v.kind > $6 OR v.id > $7 OR $8 = 1)
            ORDER BY v.kind, v.id LIMIT $9"
        )
    };
}

pub(super) const KEYS: Sql = Sql { sqlite: keys!(doc_sqlite), postgres: keys!(doc_postgres) };

/// Keys with a version on one branch in an interval of `seq`s, in order.
pub(crate) async fn keys(
    tx: &mut Tx,
    ws: i64,
    branch: i64,
    doc: &str,
    (above, upto): (i64, i64),
    (kind, id, inclusive): (GraphKind, &str, bool),
    most: i64,
) -> Result<Vec<GraphKey>, StoreError> {
    let args = args![ws, branch, doc, above, upto, kind.number(), id, inclusive, most];
    let rows = tx.rows(KEYS, args).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (kind, id) = (GraphKind::from_number(row.int(0)?), row.text(1)?);
        let key = GraphKey::from_stored(kind, &id);
        found.push(key.ok_or_else(|| StoreError::Damaged(format!("`{id}` is not a graph key")))?);
    }
    Ok(found)
}
