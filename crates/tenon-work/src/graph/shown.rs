//! How SQL says what a view shows: `parts` walks down the bases, a version counts that nothing newer hides.
//!
//! In all of it `$1` is the workspace, `$2` the branch of the view and `$3` the document. Tables are joined with `CROSS JOIN`
//! because SQLite takes that for the order: it would rather walk through all versions of a store to join the handful of parts.

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

/// Holds for those versions `v` of the document in the part `p` that the view shows, tombstones too. What hides a version is
/// asked for with `min`, not with `NOT EXISTS`, for which PostgreSQL would read all versions there are.
macro_rules! is_shown {
    () => {
        " v.ws = $1 AND v.branch = p.branch AND v.doc = $3
        AND v.seq <= p.upto AND (v.next IS NULL OR v.next > p.upto)
        AND (
            SELECT min(o.seq) FROM parts q CROSS JOIN graph o WHERE q.rank < p.rank AND o.ws = $1
            AND o.branch = q.branch AND o.doc = $3 AND o.kind = v.kind AND o.id = v.id AND o.seq <= q.upto
        ) IS NULL "
    };
}

pub(super) use {is_shown, parts};
