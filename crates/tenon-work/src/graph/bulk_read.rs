//! Reads what a view shows of many keys with one statement.

use std::collections::BTreeMap;

use super::id::{GraphKey, GraphKind, GraphNodeId};
use super::version::{self, Version, columns};
use super::visibility::{doc_postgres, doc_sqlite, is_visible, parts, versions_postgres, versions_sqlite};
use crate::memory::branch::View;
use crate::plan::target::stored;
use crate::store::{Sql, StoreError, Tx, args};

/// `named` holds the texts of the JSON array `$4` with their positions.
macro_rules! named_sqlite {
    () => {
        concat!(parts!(), ", named (place, name) AS (SELECT key, value FROM json_each($4)) ")
    };
}

macro_rules! named_postgres {
    () => {
        concat!(
            parts!(),
            ", named (place, name) AS (SELECT ordinality - 1, value
            FROM json_array_elements_text(CAST($4 AS json)) WITH ORDINALITY AS e (value, ordinality)) "
        )
    };
}

/// The document. The subquery hides the value from PostgreSQL, which would otherwise make a new plan for each document.
macro_rules! document {
    () => {
        "(SELECT CAST($3 AS TEXT))"
    };
}

macro_rules! latest {
    ($versions:ident, $doc:ident) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM named n CROSS JOIN parts p CROSS JOIN ",
            $versions!(
                concat!($doc!("v", document!()), " AND v.kind = $5 AND v.id >= n.name AND v.id <= n.name"),
                "ORDER BY v.id, v.seq"
            ),
            is_visible!($doc)
        )
    };
}

pub(super) const LATEST: Sql = Sql {
    sqlite: concat!(named_sqlite!(), latest!(versions_sqlite, doc_sqlite)),
    postgres: concat!(named_postgres!(), latest!(versions_postgres, doc_postgres)),
};

/// The versions of some keys that a view shows, tombstones included.
pub(crate) async fn latest(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    doc: &str,
    keys: impl Iterator<Item = &GraphKey> + Clone,
) -> Result<BTreeMap<GraphKey, Version>, StoreError> {
    let mut found = BTreeMap::new();
    for kind in [GraphKind::Node, GraphKind::Edge] {
        let mut names: Vec<String> =
            keys.clone().filter(|key| key.kind() == kind).map(ToString::to_string).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            continue;
        }
        let args = args![ws, view.branch(), doc, stored(&names), kind.number()];
        for row in tx.rows(LATEST, args).await? {
            let version = version::from_row(&row)?;
            found.insert(version.key.clone(), version);
        }
    }
    Ok(found)
}

/// Live edges that a view shows. The `+` keeps SQLite from building an index of all live edges.
macro_rules! edges {
    ($versions:expr, $doc:ident) => {
        concat!(
            "SELECT ",
            columns!(),
            ", n.place FROM named n CROSS JOIN parts p CROSS JOIN ",
            $versions,
            " +v.deleted = 0 AND (n.place > 0 OR v.seq <= $5) AND ",
            is_visible!($doc)
        )
    };
}

/// Edges that begin at the node, then those that only end there. `}` is the character after `|`, which separates the
/// parts of an edge key.
macro_rules! edges_of {
    ($versions:ident, $doc:ident) => {
        concat!(
            edges!(
                $versions!(
                    concat!(
                        $doc!("v", document!()),
                        " AND v.kind = 1 AND v.id >= n.name || '|' AND v.id < n.name || '}'"
                    ),
                    "ORDER BY v.id, v.seq"
                ),
                $doc
            ),
            " UNION ALL ",
            edges!(
                $versions!(
                    concat!(
                        "v.doc = ",
                        document!(),
                        " AND v.kind = 1 AND v.goal >= n.name AND v.goal <= n.name AND v.start <> n.name"
                    ),
                    "ORDER BY v.goal, v.seq"
                ),
                $doc
            ),
            " ORDER BY 16, 1 DESC LIMIT $6"
        )
    };
}

pub(super) const EDGES: Sql = Sql {
    sqlite: concat!(named_sqlite!(), edges_of!(versions_sqlite, doc_sqlite)),
    postgres: concat!(named_postgres!(), edges_of!(versions_postgres, doc_postgres)),
};

/// The live edges of some nodes, node by node, newest first; of the first node only those at or below a `seq`.
pub(crate) async fn edges(
    tx: &mut Tx,
    ws: i64,
    view: &View,
    doc: &str,
    nodes: &[&GraphNodeId],
    below: i64,
    most: i64,
) -> Result<Vec<Vec<Version>>, StoreError> {
    let mut found = vec![Vec::new(); nodes.len()];
    if nodes.is_empty() {
        return Ok(found);
    }
    let args = args![ws, view.branch(), doc, stored(nodes), below, most];
    for row in tx.rows(EDGES, args).await? {
        let place = usize::try_from(row.int(15)?).ok().and_then(|place| found.get_mut(place));
        let edges = place.ok_or_else(|| StoreError::Damaged("an edge without a node was found".into()))?;
        edges.push(version::from_row(&row)?);
    }
    Ok(found)
}
