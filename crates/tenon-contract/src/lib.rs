//! The grammar all crates obey: canonical JSON, ids, cursors, snapshots, budgets, positions and roots.
