//! PostgreSQL as a team uses it: TLS with checked certificates, a pooler, and a server that restarts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tenon_contract::clock::Clock;
use tenon_testkit::pgbouncer::PgBouncer;
use tenon_testkit::postgres::PostgresServer;
use tenon_work::{Store, StoreError, StoreLocation, Work, WorkSettings, WorkspaceName};

use crate::client::call;
use crate::fixture::step;

async fn open(url: &str) -> Result<Work, StoreError> {
    let store = Store::open(&StoreLocation::Postgres(url.to_owned())).await?;
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    Ok(Work::new(store, Clock::system(), settings))
}

#[tokio::test]
async fn certificates_are_checked_as_the_mode_says() {
    let (server, certificates) = PostgresServer::with_tls();
    let plain = server.database();
    let by_name = plain.replace("127.0.0.1", "localhost");
    let root = |path: &Path| format!("sslrootcert={}", path.display());
    let (own, other) = (root(&certificates.root), root(&certificates.other_root));
    let (certificate, key) = &certificates.client;
    let client = format!("sslcert={}&sslkey={}", certificate.display(), key.display());
    let certified = by_name.replace("tenon@", "certified@");
    for (url, accepted) in [
        (format!("{by_name}?sslmode=disable"), false),
        (format!("{by_name}?sslmode=require"), true),
        (format!("{plain}?sslmode=require"), true),
        // As `verify-ca`: a root that is named is checked.
        (format!("{by_name}?sslmode=require&{other}"), false),
        (format!("{by_name}?sslmode=verify-ca&{own}"), true),
        (format!("{plain}?sslmode=verify-ca&{own}"), true),
        (format!("{by_name}?sslmode=verify-ca&{other}"), false),
        (format!("{by_name}?sslmode=verify-ca"), false),
        (format!("{by_name}?sslmode=verify-full&{own}"), true),
        (format!("{by_name}?sslmode=verify-full&{other}"), false),
        // The certificate is for `localhost`.
        (format!("{plain}?sslmode=verify-full&{own}"), false),
        (format!("{certified}?sslmode=verify-full&{own}"), false),
        (format!("{certified}?sslmode=verify-full&{own}&{client}"), true),
    ] {
        let opened = open(&url).await;
        assert_eq!(opened.is_ok(), accepted, "{url}: {:?}", opened.err());
        if let Ok(work) = opened {
            call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
            work.store().close().await;
        } else if let Err(error) = opened {
            assert!(error.hint().is_some(), "{error}");
        }
    }
    for mode in ["prefer", "disable", "allow"] {
        let error = open(&format!("{by_name}?sslmode={mode}&{own}")).await.err();
        assert!(matches!(error, Some(StoreError::TlsMode)), "{mode}: {error:?}");
    }
    let missing = open(&format!("{by_name}?sslmode=verify-full&sslrootcert=/no/such/file")).await.err();
    assert!(missing.is_some());
}

#[tokio::test]
async fn pooler_in_transaction_mode_serves_many_writers() {
    let server = PostgresServer::new();
    let pooler = PgBouncer::in_transaction_mode(&server);
    let url = pooler.url(&server.database());
    let first = Arc::new(open(&url).await.unwrap());
    call(&first, "tasks_create", json!({"title": "Plan"})).await.ok();
    let second = Arc::new(open(&url).await.unwrap());
    let mut writers = Vec::new();
    for number in 0..20 {
        let work = Arc::clone(if number % 2 == 0 { &first } else { &second });
        writers.push(tokio::spawn(async move {
            call(&work, "tasks_note", json!({"task": "PLAN-001", "note": format!("note {number}")}))
                .await
                .ok();
            call(&work, "memory_search", json!({"query": "note"})).await.ok();
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let shown = call(&first, "tasks_context", json!({})).await.ok();
    assert_eq!(shown["plans"][0]["notes"], 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_of_the_server_loses_no_acknowledged_write() {
    let server = PostgresServer::new();
    let work = Arc::new(open(&server.database()).await.unwrap());
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (work, stop) = (Arc::clone(&work), Arc::clone(&stop));
        writers.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            let mut number = 0;
            while !stop.load(Ordering::SeqCst) {
                number += 1;
                let text = format!("w{writer}n{number}");
                let answer = call(&work, "tasks_note", json!({"task": "PLAN-001", "note": text})).await;
                if answer.envelope["success"] == json!(true) {
                    acknowledged.push(text);
                }
            }
            // After the restart every writer gets through again.
            call(&work, "tasks_note", json!({"task": "PLAN-001", "note": format!("w{writer}last")}))
                .await
                .ok();
            acknowledged.push(format!("w{writer}last"));
            acknowledged
        }));
    }
    for _ in 0..2 {
        tokio::task::block_in_place(|| server.restart());
        call(&work, "tasks_note", json!({"task": "PLAN-001", "note": "between"})).await.ok();
    }
    stop.store(true, Ordering::SeqCst);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let mut stored = std::collections::BTreeSet::new();
    let mut cursor = json!(null);
    loop {
        let page = json!({"target": "PLAN-001", "limit": 200, "max_chars": 100_000, "cursor": cursor});
        let shown = call(&work, "memory_show", page).await.ok();
        for entry in shown["entries"].as_array().unwrap() {
            stored.insert(entry["content"].as_str().unwrap().to_owned());
        }
        cursor = shown["pagination"]["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let lost: Vec<&String> = acknowledged.iter().filter(|text| !stored.contains(*text)).collect();
    assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), acknowledged.len());
}

/// The scripts of `examples/team`, as its README runs them.
#[tokio::test]
async fn roles_of_the_example_may_work_and_nothing_else() {
    let server = PostgresServer::new();
    let url = server.database();
    let example = tenon_testkit::repository_root().join("examples/team");
    let script = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
    let as_role = |role: &str| url.replace("tenon@", &format!("{role}@"));
    server.psql_in(&url, &script("roles.sql")).unwrap();
    // Only the owner makes the tables.
    let early = open(&as_role("ada")).await.err().unwrap();
    assert!(matches!(early, StoreError::Database(_)), "{early:?}");
    open(&as_role("tenon_owner")).await.unwrap().store().close().await;
    server.psql_in(&url, &script("grants.sql")).unwrap();

    let (ada, bob) = (open(&as_role("ada")).await.unwrap(), open(&as_role("bob")).await.unwrap());
    call(&ada, "tasks_create", json!({"title": "Plan"})).await.ok();
    call(&ada, "tasks_create", json!({"title": "Task", "parent": "PLAN-001", "steps": [step("one")]}))
        .await
        .ok();
    call(&bob, "tasks_note", json!({"task": "TASK-001", "path": "s:0", "note": "from bob"})).await.ok();
    call(&bob, "tasks_next", json!({"claim": true, "agent": "bob"})).await.ok();
    call(
        &ada,
        "memory_think_card",
        json!({"target": "TASK-001", "card": {"type": "decision", "title": "Go"}}),
    )
    .await
    .ok();
    call(&ada, "tasks_edit", json!({"task": "TASK-001", "depends_on": []})).await.ok();
    let found = call(&ada, "memory_search", json!({"query": "bob"})).await.ok();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    let delta = call(&bob, "tasks_delta", json!({"wait_ms": 1000})).await.ok();
    assert!(!delta["events"].as_array().unwrap().is_empty());
    call(&ada, "tasks_delete", json!({"task": "TASK-001"})).await.ok();
    assert_eq!(ada.store().check().await.unwrap().problems, Vec::<String>::new());

    for statement in [
        "UPDATE tenon_schema SET version = 99",
        "DELETE FROM tenon_schema",
        "TRUNCATE entries",
        "DROP TABLE entries",
        "ALTER TABLE entries ADD COLUMN a INT",
        "CREATE TABLE mine (a INT)",
        "CREATE TEMPORARY TABLE mine (a INT)",
        "CREATE SCHEMA mine",
        "CREATE ROLE eve LOGIN",
        "SET ROLE tenon_owner",
        "COPY entries TO PROGRAM 'cat'",
        "SELECT pg_read_file('PG_VERSION')",
    ] {
        let refused = server.psql_in(&as_role("ada"), statement).unwrap_err();
        let reasons = ["permission denied", "must be owner", "must be superuser"];
        assert!(reasons.iter().any(|reason| refused.contains(reason)), "{statement}: {refused}");
    }
    server.psql("CREATE ROLE eve LOGIN");
    let refused = server.psql_in(&as_role("eve"), "SELECT 1").unwrap_err();
    assert!(refused.contains("permission denied for database"), "{refused}");
    // The owner keeps the tables, and runs the scripts again after an upgrade.
    server.psql_in(&url, &script("grants.sql")).unwrap();
}
