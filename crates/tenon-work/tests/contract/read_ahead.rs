//! On PostgreSQL a write reads its task and step together with the lock of the workspace.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tenon_work::StoreLocation;

use crate::client::{Client, On, call};
use crate::fixture::{step, step_of, task};

/// Another writer: a connection that locks the workspace.
struct Holder(PgConnection);

impl Holder {
    async fn new(client: &Client) -> Self {
        let StoreLocation::Postgres(url) = &client.location else { panic!("a server") };
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute("BEGIN; SELECT 1 FROM workspaces WHERE name = 'w' FOR UPDATE").await.unwrap();
        Self(connection)
    }

    /// Waits until another connection waits for the lock.
    async fn has_waiter(&mut self) {
        let waiters = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        // A transaction keeps the statistics that it has read until it drops them.
        while sqlx::query_scalar::<_, i64>(waiters).fetch_one(&mut self.0).await.unwrap() == 0 {
            self.0.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_while_waiting_for_the_lock_is_seen() {
    for (named, is_on_step) in [
        (json!({"task": "TASK-001", "path": "s:0"}), true),
        (json!({"task": "TASK-001", "step_id": "STEP-00000001"}), true),
        (json!({"task": "TASK-001"}), false),
    ] {
        let client = Client::new(On::Postgres).await;
        task(&client).await;
        let mut holder = Holder::new(&client).await;
        let mut args = named.clone();
        args["note"] = json!("n");
        let peer = client.peer().await;
        let waiting = tokio::spawn(async move { call(&peer, "tasks_note", args).await.ok() });
        holder.has_waiter().await;
        let changes = "
            UPDATE targets SET revision = 40, notes = 7, title = 'Changed' WHERE parent IS NOT NULL;
            UPDATE steps SET revision = 50, notes = 9 WHERE step = 1;
            UPDATE workspaces SET events = events + 1;
            COMMIT";
        holder.0.execute(changes).await.unwrap();
        let noted = waiting.await.unwrap();
        assert_eq!(noted["revision"], 41, "{named}");
        if is_on_step {
            assert_eq!(noted["step"]["revision"], 51, "{named}");
        }
        let found = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await;
        let shown = &found["tasks"][0];
        assert_eq!(shown["title"], "Changed", "{named}");
        assert_eq!(shown["notes"], if is_on_step { 7 } else { 8 }, "{named}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_writer_changes_nothing() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let mut holder = Holder::new(&client).await;
    let peer = client.peer().await;
    let args = json!({"task": "TASK-001", "path": "s:0", "note": "n"});
    let waiting = tokio::spawn(async move { call(&peer, "tasks_note", args).await.ok() });
    holder.has_waiter().await;
    holder.0.execute("UPDATE targets SET revision = 40; ROLLBACK").await.unwrap();
    assert_eq!(waiting.await.unwrap()["revision"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_notes_of_several_stores_are_all_kept() {
    const WRITERS: usize = 4;
    const NOTES: usize = 25;
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let peer = Arc::new(client.peer().await);
        // Two at once on the connections of one store.
        for half in [NOTES / 2, NOTES - NOTES / 2] {
            let peer = Arc::clone(&peer);
            writers.push(tokio::spawn(async move {
                let mut revisions = Vec::new();
                for _ in 0..half {
                    let args = json!({"task": "TASK-001", "path": "s:0", "note": "n"});
                    let noted = call(&peer, "tasks_note", args).await.ok();
                    revisions.push((noted["revision"].as_u64(), noted["step"]["revision"].as_u64()));
                }
                revisions
            }));
        }
    }
    let mut revisions = BTreeSet::new();
    for writer in writers {
        revisions.extend(writer.await.unwrap());
    }
    let expected = (1..=(WRITERS * NOTES) as u64).map(|number| (Some(number), Some(number)));
    assert_eq!(revisions, expected.collect());
    assert_eq!(step_of(&client, "TASK-001", "s:0").await["notes"], WRITERS * NOTES);
    assert_eq!(client.store().check().await.unwrap().problems, Vec::<String>::new());
}

/// SQLite reads nothing ahead, so equal answers mean that reading ahead does not show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_same_as_without_reading_ahead() {
    let (sqlite, postgres) = (Client::new(On::Sqlite).await, Client::new(On::Postgres).await);
    let note = |named: Value| {
        let mut args = named;
        args["note"] = json!("n");
        ("tasks_note", args)
    };
    let calls = [
        // The workspace does not exist yet.
        note(json!({"task": "TASK-001", "path": "s:0"})),
        ("tasks_create", json!({"title": "Plan"})),
        ("tasks_create", json!({"title": "One", "parent": "PLAN-001", "steps": [step("a"), step("b")]})),
        ("tasks_create", json!({"title": "Two", "parent": "PLAN-001", "steps": [step("c")]})),
        ("tasks_create", json!({"title": "Three", "parent": "PLAN-009"})),
        note(json!({"task": "TASK-001", "path": "s:0"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-00000002"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-00000001", "path": "s:0"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-00000001", "path": "s:1"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-00000003"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-FFFFFFFFFFFFFFFF"})),
        note(json!({"task": "TASK-001", "step_id": "s:0", "path": "s:0"})),
        note(json!({"task": "TASK-001", "path": "s:7"})),
        note(json!({"task": "TASK-001", "path": "7"})),
        note(json!({"task": "TASK-009", "path": "s:0"})),
        note(json!({"task": "TASK-1", "path": "s:0"})),
        note(json!({"task": "TASK-001", "path": "s:0", "expected_revision": 1})),
        note(json!({"path": "s:0"})),
        ("tasks_focus_set", json!({"task": "TASK-002"})),
        note(json!({"path": "s:0"})),
        ("tasks_delete", json!({"task": "TASK-001", "path": "s:0"})),
        note(json!({"task": "TASK-001", "path": "s:0"})),
        note(json!({"task": "TASK-001", "step_id": "STEP-00000001"})),
        ("tasks_delete", json!({"task": "TASK-001"})),
        note(json!({"task": "TASK-001"})),
        note(json!({"task": "TASK-001", "path": "s:1"})),
        ("tasks_undo", json!({"task": "TASK-001"})),
        note(json!({"task": "TASK-001", "path": "s:1"})),
        ("memory_notes_commit", json!({"target": "TASK-001", "content": "n"})),
    ];
    for (tool, args) in calls {
        let expected = sqlite.call_quietly(tool, args.clone()).await.text;
        assert_eq!(postgres.call_quietly(tool, args.clone()).await.text, expected, "{tool} {args}");
    }
}
