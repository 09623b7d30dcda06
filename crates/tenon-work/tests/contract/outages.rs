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
        proxy.faults.reject_next.store(1, Ordering::SeqCst);
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
    proxy.faults.drop_commit_answer.store(true, Ordering::SeqCst);
    let answer = call(&work, "tasks_create", json!({"title": "Plan"})).await.fails("STORE_ERROR");
    let error = answer.error();
    assert!(error["message"].as_str().unwrap().contains("may or may not be stored"), "{error}");
    assert!(error["recovery"].as_str().unwrap().contains("before you repeat"), "{error}");
    assert_eq!(error["retryable"], false);
    let found = call(&work, "tasks_context", json!({})).await.ok();
    assert_eq!(found["plans"][0]["title"], "Plan");
}

/// A note takes four round trips: `BEGIN`, the lock of the workspace with the task and the step, all writes together, and
/// `COMMIT`. `BEGIN` and `COMMIT` are not prepared, so they do not count here.
#[tokio::test]
async fn note_takes_two_prepared_statements() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    call(&work, "tasks_create", json!({"title": "Task", "parent": "PLAN-001", "steps": [step("one")]}))
        .await
        .ok();
    let executed = || proxy.faults.executed.swap(0, Ordering::SeqCst);
    for (tool, args, statements) in [
        ("tasks_note", json!({"task": "TASK-001", "path": "s:0", "note": "n"}), 2),
        ("tasks_note", json!({"task": "TASK-001", "step_id": "STEP-00000001", "note": "n"}), 2),
        ("tasks_note", json!({"task": "TASK-001", "note": "n"}), 2),
        ("tasks_edit", json!({"task": "TASK-001", "title": "New"}), 3),
        ("tasks_create", json!({"title": "Task", "parent": "PLAN-001"}), 4),
        ("memory_notes_commit", json!({"target": "TASK-001", "content": "n"}), 2),
    ] {
        executed();
        call(&work, tool, args).await.ok();
        assert_eq!(executed(), statements, "{tool}");
    }
    assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new());
}
