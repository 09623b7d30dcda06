//! On PostgreSQL a small write goes without a lock first, and runs again with it if another writer came in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tenon_contract::clock::{Clock, ClockControl};
use tenon_testkit::postgres::PostgresServer;
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkspaceName};

use crate::client::{Client, On, call};
use crate::fixture::{step, step_of, task};
use crate::proxy::Proxy;
use crate::read_ahead::Holder;

fn note() -> Value {
    json!({"task": "TASK-001", "path": "s:0", "note": "n"})
}

/// A note after which [`note`] reads; after a note on the same step it does not.
fn note_on_task() -> Value {
    json!({"task": "TASK-001", "note": "n"})
}

/// Its clock moves only when advanced: a call that runs twice has the times of one that runs once.
async fn open(location: &StoreLocation) -> (Work, ClockControl) {
    let (clock, control) = Clock::fixed("2026-01-02T03:04:05Z".parse().unwrap());
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    (Work::new(Store::open(location).await.unwrap(), clock, settings), control)
}

/// SQLite reads nothing ahead, and a connection as behind a pooler always locks. So equal answers and equal rows mean that
/// neither shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_rows_are_the_same_with_and_without_the_lock() {
    let clients =
        [Client::new(On::Sqlite).await, Client::new(On::Postgres).await, Client::new(On::Postgres).await];
    let [sqlite, optimistic, locking] = clients.each_ref().map(|client| client.location.clone());
    let StoreLocation::Postgres(locking) = locking else { panic!("a server") };
    let locking = StoreLocation::Postgres(format!("{locking}?statement-cache-capacity=0"));
    let (sqlite, sqlite_clock) = open(&sqlite).await;
    let (optimistic, optimistic_clock) = open(&optimistic).await;
    let (locking, locking_clock) = open(&locking).await;
    let note = |named: Value| {
        let mut args = named;
        args["note"] = json!("n");
        ("tasks_note", args)
    };
    let criteria = json!({"criteria": {"confirmed": true}});
    let output = json!([{"kind": "cmd_output", "command": "c", "output": "o"}]);
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
        ("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": criteria})),
        ("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": criteria})),
        (
            "tasks_evidence",
            json!({"task": "TASK-001", "path": "s:1", "checkpoint": "criteria", "items": output}),
        ),
        ("tasks_focus_set", json!({"task": "TASK-001"})),
        ("tasks_focus_set", json!({"task": "TASK-009"})),
        note(json!({"task": "TASK-001", "path": "s:1"})),
        ("memory_notes_commit", json!({"target": "TASK-001", "content": "n"})),
    ];
    for (tool, args) in calls {
        for clock in [&sqlite_clock, &optimistic_clock, &locking_clock] {
            clock.advance(Duration::from_millis(1));
        }
        let expected = call(&sqlite, tool, args.clone()).await.text;
        assert_eq!(call(&optimistic, tool, args.clone()).await.text, expected, "optimistic: {tool} {args}");
        assert_eq!(call(&locking, tool, args.clone()).await.text, expected, "locking: {tool} {args}");
    }
    let mut exports = Vec::new();
    for work in [&sqlite, &optimistic, &locking] {
        let mut bytes = Vec::new();
        work.store().export(&mut bytes).await.unwrap();
        exports.push(String::from_utf8(bytes).unwrap());
    }
    assert_eq!(exports[1], exports[0]);
    assert_eq!(exports[2], exports[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_notes_of_several_stores_are_all_kept() {
    const WRITERS: usize = 4;
    const NOTES: usize = 50;
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let peer = Arc::new(if number == 0 { client.locking_peer().await } else { client.peer().await });
        // Two at once on the connections of one store.
        for half in [NOTES / 2, NOTES - NOTES / 2] {
            let peer = Arc::clone(&peer);
            writers.push(tokio::spawn(async move {
                let mut numbers = Vec::new();
                for _ in 0..half {
                    let noted = call(&peer, "tasks_note", note()).await.ok();
                    let event = noted["event"]["event_id"].as_str().unwrap().trim_start_matches("evt_");
                    let event = event.parse::<u64>().unwrap();
                    numbers.push((event, noted["revision"].as_u64(), noted["step"]["revision"].as_u64()));
                }
                numbers
            }));
        }
    }
    let mut numbers = BTreeSet::new();
    for writer in writers {
        numbers.extend(writer.await.unwrap());
    }
    // Two events have created the plan and the task.
    let expected = (1..=(WRITERS * NOTES) as u64).map(|number| (number + 2, Some(number), Some(number)));
    assert_eq!(numbers, expected.collect());
    assert_eq!(step_of(&client, "TASK-001", "s:0").await["notes"], WRITERS * NOTES);
    assert_eq!(client.store().check().await.unwrap().problems, Vec::<String>::new());
}

/// A note whose write waits for a writer that makes these changes, after a first note.
async fn note_during(client: &Client, first: Value, changes: &'static str) -> Value {
    let peer = client.peer().await;
    // Connects.
    call(&peer, "tasks_note", first).await.ok();
    let mut holder = Holder::new(&client.location).await;
    let waiting = tokio::spawn(async move { call(&peer, "tasks_note", note()).await.ok() });
    holder.has_waiter().await;
    holder.0.execute(changes).await.unwrap();
    holder.0.execute("COMMIT").await.unwrap();
    waiting.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_before_the_write_is_seen() {
    let changes = "
        UPDATE targets SET revision = 40, title = 'Changed' WHERE parent IS NOT NULL;
        UPDATE steps SET revision = 50 WHERE step = 1;
        UPDATE workspaces SET events = events + 1";
    for first in [note(), note_on_task()] {
        let client = Client::new(On::Postgres).await;
        task(&client).await;
        let noted = note_during(&client, first, changes).await;
        assert_eq!((&noted["revision"], &noted["step"]["revision"]), (&json!(41), &json!(51)));
        // Two created the plan and the task, one is the first note, one is of the other writer.
        assert_eq!(noted["event"]["event_id"], "evt_0000000000000005");
        let found = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await;
        assert_eq!(found["tasks"][0]["title"], "Changed");
    }
}

/// Between two notes of one process, another one does this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_of_another_process_between_two_notes_is_seen() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let other = client.peer().await;
    assert_eq!(client.ok("tasks_note", note()).await["revision"], 1);
    assert_eq!(call(&other, "tasks_note", note()).await.ok()["revision"], 2);
    assert_eq!(client.ok("tasks_note", note()).await["step"]["revision"], 3);
    call(&other, "tasks_delete", json!({"task": "TASK-001"})).await.ok();
    call(&client.work, "tasks_note", note()).await.fails("UNKNOWN_ID");
    call(&other, "tasks_undo", json!({"task": "TASK-001"})).await.ok();
    let noted = client.ok("tasks_note", note()).await;
    assert_eq!(noted["step"]["revision"], 4);
    assert_eq!(step_of(&client, "TASK-001", "s:0").await["notes"], 4);
    // What this process knows is outdated, so a revision that it believes to be wrong may be right.
    call(&other, "tasks_note", note()).await.ok();
    let mut expected = note();
    expected["expected_revision"] = json!(noted["revision"].as_i64().unwrap() + 1);
    client.ok("tasks_note", expected).await;
    assert_eq!(client.store().check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_focus_and_checkout_of_another_writer_are_kept() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let StoreLocation::Postgres(url) = &client.location else { panic!("a server") };
    let mut database = PgConnection::connect(url).await.unwrap();
    for (change, read) in [
        ("UPDATE workspaces SET plans = 77", "SELECT plans FROM workspaces"),
        ("UPDATE workspaces SET tasks = 77", "SELECT tasks FROM workspaces"),
        ("UPDATE workspaces SET steps = 77", "SELECT steps FROM workspaces"),
        ("UPDATE workspaces SET branches = 77", "SELECT branches FROM workspaces"),
        ("UPDATE workspaces SET focus = 77", "SELECT focus FROM workspaces"),
        ("UPDATE workspaces SET checkout = 77", "SELECT checkout FROM workspaces"),
    ] {
        note_during(&client, note(), change).await;
        note_during(&client, note_on_task(), change).await;
        let kept: i64 = sqlx::query_scalar(read).fetch_one(&mut database).await.unwrap();
        assert_eq!(kept, 77, "{change}");
    }
    let noted = note_during(&client, note(), "UPDATE workspaces SET seqs = 77").await;
    assert_eq!(noted["note_seq"], 78);
}

/// A lock that is held for longer than an optimistic write waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn note_waits_for_a_long_transaction() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let mut holder = Holder::new(&client.location).await;
    let peer = client.peer().await;
    let waiting = tokio::spawn(async move { call(&peer, "tasks_note", note()).await.ok() });
    holder.has_waiter_that("FOR UPDATE").await;
    holder.0.execute("ROLLBACK").await.unwrap();
    assert_eq!(waiting.await.unwrap()["revision"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_lock_for_a_while_after_a_conflict() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let location = StoreLocation::Postgres(proxy.url.clone());
    let (work, _) = open(&location).await;
    let work = Arc::new(work);
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    call(&work, "tasks_create", json!({"title": "Task", "parent": "PLAN-001", "steps": [step("s")]}))
        .await
        .ok();
    call(&work, "tasks_note", note_on_task()).await.ok();
    let mut holder = Holder::new(&location).await;
    let waiting = tokio::spawn({
        let work = Arc::clone(&work);
        async move { call(&work, "tasks_note", note()).await.ok() }
    });
    holder.has_waiter().await;
    holder.0.execute("UPDATE workspaces SET events = events + 1; COMMIT").await.unwrap();
    waiting.await.unwrap();
    let mut counts = Vec::new();
    for _ in 0..34 {
        proxy.faults.sent();
        call(&work, "tasks_note", note()).await.ok();
        counts.push(proxy.faults.sent());
    }
    assert_eq!(counts, [vec![(1, 2); 32], vec![(0, 2), (0, 1)]].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn note_succeeds_after_its_connection_was_closed() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let StoreLocation::Postgres(url) = &client.location else { panic!("a server") };
    let mut database = PgConnection::connect(url).await.unwrap();
    for revision in 1..=4 {
        let noted = client.ok("tasks_note", note()).await;
        assert_eq!(noted["revision"], revision);
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        database.execute(kill).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_note_leaves_no_broken_connection() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let peer = Arc::new(client.peer().await);
    call(&peer, "tasks_note", note()).await.ok();
    let mut holder = Holder::new(&client.location).await;
    let waiting = tokio::spawn({
        let peer = Arc::clone(&peer);
        async move { call(&peer, "tasks_note", note()).await }
    });
    holder.has_waiter().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    holder.0.execute("ROLLBACK").await.unwrap();
    let mut last = 1;
    for _ in 0..3 {
        let revision = call(&peer, "tasks_note", note()).await.ok()["revision"].as_i64().unwrap();
        // The server may have finished the cancelled write.
        assert!(revision == last + 1 || (last == 1 && revision == 3), "{revision} after {last}");
        last = revision;
    }
    assert_eq!(client.store().check().await.unwrap().problems, Vec::<String>::new());
}
