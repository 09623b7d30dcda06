//! Outages of the PostgreSQL server: error messages, retries and unanswered commits; and how often a call waits for it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tenon_contract::clock::Clock;
use tenon_testkit::postgres::PostgresServer;
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkspaceName};

use crate::client::call;
use crate::fixture::step;
use crate::proxy::Proxy;

/// Longer than any test: no answer is caused by this timeout.
const PATIENCE: Duration = Duration::from_secs(3600);

async fn work(url: &str) -> Work {
    let store = Store::open_with(&StoreLocation::Postgres(url.to_owned()), PATIENCE).await.unwrap();
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    Work::new(store, Clock::system(), settings)
}

/// With a plan that has one note.
async fn work_with_plan(proxy: &Proxy) -> Work {
    let work = work(&proxy.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    call(&work, "tasks_note", json!({"task": "PLAN-001", "note": "first"})).await.ok();
    work
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let server = PostgresServer::new();
    let work = work(&server.database()).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    drop(server);
    let (read, write, wait) = tokio::join!(
        call(&work, "tasks_context", json!({})),
        call(&work, "tasks_note", json!({"task": "PLAN-001", "note": "n"})),
        call(&work, "tasks_delta", json!({"wait_ms": 25_000})),
    );
    for answer in [read, write, wait] {
        let answer = answer.fails("STORE_ERROR");
        let error = answer.error();
        assert!(error["message"].as_str().unwrap().contains("cannot reach"), "{error}");
        assert!(error["recovery"].as_str().unwrap().contains("server"), "{error}");
        assert_eq!(error["retryable"], true);
    }
}

#[tokio::test]
async fn short_outage_is_retried() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    for (tool, args) in
        [("tasks_context", json!({})), ("tasks_note", json!({"task": "PLAN-001", "note": "n"}))]
    {
        // A write tries without a lock first, then with it.
        proxy.faults.reject_next.store(2, Ordering::SeqCst);
        proxy.faults.breaks.notify_waiters();
        call(&work, tool, args).await.ok();
        assert_eq!(proxy.faults.reject_next.load(Ordering::SeqCst), 0, "{tool}");
    }
}

#[tokio::test]
async fn unanswered_commit_is_reported_as_unknown() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "memory_init", json!({})).await.ok();
    *proxy.faults.drop_answer_to.lock().unwrap() = Some("COMMIT");
    let answer = call(&work, "tasks_create", json!({"title": "Plan"})).await.fails("STORE_ERROR");
    let error = answer.error();
    assert!(error["message"].as_str().unwrap().contains("may or may not be stored"), "{error}");
    assert!(error["recovery"].as_str().unwrap().contains("before you repeat"), "{error}");
    assert_eq!(error["retryable"], false);
    let found = call(&work, "tasks_context", json!({})).await.ok();
    assert_eq!(found["plans"][0]["title"], "Plan");
}

#[tokio::test]
async fn unanswered_optimistic_write_is_reported_as_unknown() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work_with_plan(&proxy).await;
    let note = |text: &str| call(&work, "tasks_note", json!({"task": "PLAN-001", "note": text}));
    // So that the note reads first.
    call(&work, "tasks_edit", json!({"task": "PLAN-001", "title": "New"})).await.ok();
    *proxy.faults.drop_answer_to.lock().unwrap() = Some("second");
    let answer = note("second").await.fails("STORE_ERROR");
    let error = answer.error();
    assert!(error["message"].as_str().unwrap().contains("may or may not be stored"), "{error}");
    assert_eq!(error["retryable"], false);
    note("third").await.ok();
    let found = call(&work, "tasks_context", json!({})).await.ok();
    assert_eq!(found["plans"][0]["notes"], 3);
}

/// The write of a call that did not read is tried again, unless it was stored.
#[tokio::test]
async fn unanswered_write_without_a_read_is_stored_once() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work_with_plan(&proxy).await;
    let note = |text: &str| call(&work, "tasks_note", json!({"task": "PLAN-001", "note": text}));
    for count in 2..=4 {
        *proxy.faults.drop_answer_to.lock().unwrap() = Some("again");
        // Whichever comes first, the server's commit or the second try.
        let answer = note("again").await;
        let is_unknown = answer.text.contains("may or may not be stored");
        assert!(is_unknown || answer.text.contains("\"success\":true"), "{}", answer.text);
        *proxy.faults.drop_answer_to.lock().unwrap() = None;
        let found = call(&work, "tasks_context", json!({})).await.ok();
        assert_eq!(found["plans"][0]["notes"], 2 * count - 2);
        note("known").await.ok();
    }
    assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new());
}

/// A small write takes two round trips: a read of the workspace with the task and the step, and all writes together. After
/// another one on the same step it does without the read. Any other write is a transaction: two more round trips, for
/// `BEGIN` and `COMMIT`.
#[tokio::test]
async fn note_takes_one_or_two_round_trips() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    let steps = [step("one"), step("two")];
    call(&work, "tasks_create", json!({"title": "Task", "parent": "PLAN-001", "steps": steps})).await.ok();
    let note = json!({"task": "TASK-001", "path": "s:0", "note": "n"});
    // Connects.
    call(&work, "tasks_note", note.clone()).await.ok();
    let criteria = json!({"criteria": {"confirmed": true}});
    let output = json!([{"kind": "cmd_output", "command": "c", "output": "o"}]);
    for (tool, args, expected) in [
        ("tasks_note", note, (0, 1)),
        ("tasks_note", json!({"task": "TASK-001", "step_id": "STEP-00000001", "note": "n"}), (0, 2)),
        ("tasks_note", json!({"task": "TASK-001", "note": "n"}), (0, 2)),
        ("tasks_verify", json!({"task": "TASK-001", "path": "s:0", "checkpoints": criteria}), (0, 2)),
        (
            "tasks_evidence",
            json!({"task": "TASK-001", "path": "s:1", "checkpoint": "criteria", "items": output}),
            (0, 2),
        ),
        ("tasks_focus_set", json!({"task": "TASK-001"}), (0, 2)),
        ("memory_notes_commit", json!({"target": "TASK-001", "content": "n"}), (0, 1)),
        ("tasks_note", json!({"task": "TASK-001", "note": "n"}), (0, 1)),
        // Uses the focus.
        ("tasks_note", json!({"note": "n"}), (1, 3)),
        ("tasks_edit", json!({"task": "TASK-001", "title": "New"}), (1, 3)),
        ("tasks_create", json!({"title": "Task", "parent": "PLAN-001"}), (1, 4)),
    ] {
        proxy.faults.sent();
        call(&work, tool, args).await.ok();
        assert_eq!(proxy.faults.sent(), expected, "{tool}");
    }
    assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new());
}
