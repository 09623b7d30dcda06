//! Which keys two views may disagree about: those with a version in a part that only one of them shows.

use super::id::{GraphKey, GraphKind};
use crate::memory::branch::View;
use crate::store::{StoreError, Tx, args};

/// Keys in order (nodes, then edges) with versions that one of the views shows and the other does not, from a key
/// on, or behind it.
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
    // A row that is compared as one is where the index begins to be read.
    let sql = "SELECT DISTINCT kind, id FROM graph WHERE ws = $1 AND branch = $2 AND doc = $3
        AND seq > $4 AND seq <= $5 AND (kind, id) >= ($6, $7) AND (kind > $6 OR id > $7 OR $8 = 1)
        ORDER BY kind, id LIMIT $9";
    let args = args![ws, branch, doc, above, upto, kind.number(), id, inclusive, most];
    let rows = tx.rows(sql, args).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (kind, id) = (GraphKind::from_number(row.int(0)?), row.text(1)?);
        let key = GraphKey::from_stored(kind, &id);
        found.push(key.ok_or_else(|| StoreError::Damaged(format!("`{id}` is no key of a graph")))?);
    }
    Ok(found)
}
