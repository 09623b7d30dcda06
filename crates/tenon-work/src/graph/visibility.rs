//! SQL for what a view shows: `parts` walks down the bases; a version is visible if no newer one hides it.
//!
//! In all of it `$1` is the workspace, `$2` the branch of the view and `$3` the document.
//!
//! The statements fix their own plan, because neither planner knows the size of a graph. In SQLite `CROSS JOIN` fixes the
//! order of the tables. In PostgreSQL `OFFSET 0` or `ORDER BY` keeps a `LATERAL` subquery from being merged, and an order
//! that only one index has selects that index; for the order to matter, keys are not compared with `=`.

/// The parts of a view, newest first.
macro_rules! parts {
    () => {
        "WITH RECURSIVE parts (branch, upto, rank) AS (
            SELECT CAST($2 AS BIGINT), CAST(9223372036854775807 AS BIGINT), CAST(0 AS BIGINT)
            UNION ALL
            SELECT b.base, b.base_seq, p.rank + 1 FROM parts p
            JOIN branches b ON b.ws = $1 AND b.branch = p.branch WHERE b.base IS NOT NULL
        )"
    };
}

/// Versions `v` on the branch of part `p`, followed by the start of a condition on them.
macro_rules! versions_sqlite {
    ($which:expr, $fence:literal) => {
        concat!("graph v WHERE v.ws = $1 AND v.branch = p.branch AND ", $which, " AND ")
    };
}

/// The same as a subquery that cannot be merged: `$fence` is `OFFSET 0` or an order.
macro_rules! versions_postgres {
    ($which:expr, $fence:literal) => {
        concat!(
            "LATERAL (SELECT * FROM graph v WHERE v.ws = $1 AND v.branch = p.branch AND ",
            $which,
            " ",
            $fence,
            ") v WHERE "
        )
    };
}

/// A condition on the document of a row whose key is looked up.
macro_rules! doc_sqlite {
    ($row:literal, $doc:expr) => {
        concat!($row, ".doc = ", $doc)
    };
}

/// The same for the index over a prefix of the name (`schema::indices_of_postgres`).
macro_rules! doc_postgres {
    ($row:literal, $doc:expr) => {
        concat!("left(", $row, ".doc, 64) = left(", $doc, ", 64) AND ", $row, ".doc = ", $doc)
    };
}

/// True for the versions `v` of part `p` that the view shows, tombstones included.
macro_rules! is_visible {
    ($doc:ident) => {
        concat!(
            " v.seq <= p.upto AND (v.next IS NULL OR v.next > p.upto)
            AND (p.rank = 0 OR (
                SELECT min((
                    SELECT o.seq FROM graph o WHERE o.ws = $1 AND o.branch = q.branch AND ",
            $doc!("o", "v.doc"),
            " AND o.kind = v.kind
                    AND o.id >= v.id AND o.id <= v.id AND o.seq <= q.upto ORDER BY o.id, o.seq LIMIT 1
                )) FROM parts q WHERE q.rank < p.rank
            ) IS NULL) "
        )
    };
}

pub(super) use {doc_postgres, doc_sqlite, is_visible, parts, versions_postgres, versions_sqlite};

#[cfg(test)]
mod tests {
    use tenon_testkit::postgres;

    use super::super::{bulk_read, compare, summary, version};
    use crate::store::{Arg, Store, StoreLocation, args};

    /// The plan of PostgreSQL for a statement on tables without statistics.
    async fn plan(statement: &str, args: &[Arg<'_>]) -> String {
        let store = Store::open(&StoreLocation::Postgres(postgres::database())).await.unwrap();
        let mut tx = store.read().await.unwrap();
        let mut plan = String::new();
        tx.each_text(&format!("EXPLAIN {statement}"), args, |row| {
            plan.push_str(&row.text(0)?);
            plan.push('\n');
            Ok(())
        })
        .await
        .unwrap();
        drop(tx);
        store.close().await;
        assert!(!plan.contains("Seq Scan on graph"), "{plan}");
        plan
    }

    #[tokio::test]
    async fn keys_are_looked_up_by_index() {
        let latest = plan(bulk_read::LATEST.postgres, args![1, 1, "doc", "[\"a\"]", 0]).await;
        assert_eq!(latest.matches("using graph_versions").count(), 2, "{latest}");
        let edges = plan(bulk_read::EDGES.postgres, args![1, 1, "doc", "[\"a\"]", 9, 9]).await;
        assert_eq!(edges.matches("using graph_versions").count(), 3, "{edges}");
        assert_eq!(edges.matches("using graph_goals").count(), 1, "{edges}");
        let latest_on = plan(version::LATEST_ON.postgres, args![1, 1, "doc", 0, "a", 9]).await;
        assert_eq!(latest_on.matches("using graph_versions").count(), 1, "{latest_on}");
        let keys = plan(compare::KEYS.postgres, args![1, 1, "doc", 0, 9, 0, "", true, 9]).await;
        assert_eq!(keys.matches("using graph_versions").count(), 1, "{keys}");
        assert!(!keys.contains("Sort"), "{keys}");
    }

    #[tokio::test]
    async fn nodes_are_not_scanned_for_every_edge() {
        let check = plan(summary::CHECK.postgres, args![1, 1, "doc", "", 9]).await;
        assert_eq!(check.matches("Full Join").count(), 2, "{check}");
        assert_eq!(check.matches("using graph_versions on graph o").count(), 2, "{check}");
    }
}
