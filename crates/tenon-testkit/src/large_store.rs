//! A store with 100,000 tasks and as many events and graph nodes, in a second.

use std::path::Path;

use serde_json::{Value, json};

/// What the tools must have made before [`fill`]: calls of `tasks_create` and `memory_graph_apply`.
pub fn first_calls() -> [(&'static str, Value); 3] {
    let node = |id: &str| json!({"op": "node_upsert", "id": id, "type": "fact", "title": id});
    let edge = json!({"op": "edge_upsert", "from": "one", "rel": "supports", "to": "two"});
    let ops = json!([node("one"), node("two"), edge]);
    [
        ("tasks_create", json!({"title": "Plan"})),
        ("tasks_create", json!({"parent": "PLAN-001", "title": "Task 1"})),
        ("memory_graph_apply", json!({"branch": "main", "doc": "graph", "ops": ops})),
    ]
}

/// Copies the rows of the first task, its branch and event, and of the node `one`.
const FILL: &str = "
    BEGIN IMMEDIATE;
    CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n;
    INSERT INTO targets SELECT ws, target - 1 + i, parent, 'Task ' || i, description, contract, contract_data, status, priority,
        tags, depends_on, blockers, claim_agent, claim_expires_ms, notes, revision, deleted, created_ms, updated_ms,
        search_seq, undone FROM targets, n WHERE target = 1099511627777;
    INSERT INTO branches SELECT ws, branch - 1 + i, 'task/TASK-' || printf('%03d', i), base, base_seq, created_ms
        FROM branches, n WHERE name = 'task/TASK-001';
    INSERT INTO events SELECT e.ws, w.events + i, ts_ms, target - 1 + i, place, type, tool, operation, undone, revision, payload
        FROM events e, workspaces w, n WHERE e.target = 1099511627777 AND e.event = 2 AND w.ws = e.ws;
    INSERT INTO graph SELECT g.ws, w.seqs + i, branch, doc, kind, 'many' || i, next, revision, deleted, type, 'Node ' || i,
        body, status, tags, meta, start, goal, ts_ms, origin FROM graph g, workspaces w, n WHERE g.id = 'one' AND w.ws = g.ws;
    UPDATE workspaces SET tasks = 100000, events = events + 100000, seqs = seqs + 100000;
    COMMIT;
";

/// Fills the SQLite store of a workspace in which the [`first_calls`] were made.
///
/// # Panics
/// When the store is not as expected.
pub fn fill(store: &Path) {
    let store = rusqlite::Connection::open(store).expect("the store exists");
    store.execute_batch(FILL).expect("the store has the rows of the first calls");
    let events: i64 = store.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("a count");
    assert!(events >= 100_000, "{events} events");
}
