//! The store: schema versions, export and import, checks, and errors.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;
use tenon_contract::clock::Clock;
use tenon_work::{Store, StoreError, StoreLocation, StoreLocationError, Work, WorkSettings, WorkspaceName};

use crate::budget::fill;
use crate::client::{Client, On, call, on_both};
use crate::fixture::{close, revision, task};
use tenon_testkit::postgres;

/// Runs a statement on the database directly, bypassing the store.
async fn execute_directly(location: &StoreLocation, sql: &'static str) {
    match location {
        StoreLocation::Sqlite(path) => {
            rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
        }
        StoreLocation::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            connection.execute(sql).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

async fn exported(store: &Store) -> String {
    let mut bytes = Vec::new();
    store.export(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A new store of the given kind; the folder keeps it alive.
async fn empty(on: On) -> (Store, StoreLocation, TempDir) {
    let folder = TempDir::new().unwrap();
    let location = match on {
        On::Sqlite => StoreLocation::Sqlite(folder.path().join("deep/er/store.db")),
        On::Postgres => StoreLocation::Postgres(postgres::database()),
    };
    (Store::open(&location).await.unwrap(), location, folder)
}

on_both! {
    async fn newer_schema_is_rejected_with_a_hint(client: &Client) {
        task(client).await;
        execute_directly(&client.location, "UPDATE tenon_schema SET version = 99").await;
        let Err(error) = Store::open(&client.location).await else { panic!("opened") };
        assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 5 }), "{error}");
        assert!(error.hint().unwrap().contains("upgrade"));
        // The failed open changed nothing.
        execute_directly(&client.location, "UPDATE tenon_schema SET version = 5").await;
        Store::open(&client.location).await.unwrap();
    }

    async fn times_before_1970_and_at_the_end_of_time_pass_the_check(client: &Client) {
        for (name, time) in [("early", "1960-01-02T03:04:05Z"), ("late", "9999-12-30T22:00:00.999Z")] {
            let store = Store::open(&client.location).await.unwrap();
            let settings = WorkSettings { workspace: Some(WorkspaceName::parse(name).unwrap()), strict: false };
            let work = Work::new(store, Clock::fixed(time.parse().unwrap()).0, settings);
            call(&work, "tasks_create", json!({"title": "p"})).await.ok();
            call(&work, "tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await.ok();
            call(&work, "tasks_note", json!({"task": "TASK-001", "note": "n"})).await.ok();
            call(&work, "tasks_next", json!({"claim": true, "agent": "a"})).await.ok();
            assert_eq!(work.store().check().await.unwrap().problems, Vec::<String>::new(), "{name}");
        }
    }

    async fn reopened_store_has_the_same_content(client: &Client) {
        task(client).await;
        close(client, "TASK-001", "s:1").await;
        let before = exported(client.work.store()).await;
        client.work.store().close().await;
        let again = Store::open(&client.location).await.unwrap();
        assert_eq!(exported(&again).await, before);
        assert_eq!(again.schema_version(), 5);
    }

    async fn export_round_trips_through_both_backends(client: &Client) {
        fill(client).await;
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        client.ok("tasks_create", json!({"workspace": "another", "title": "Zürich \u{1f600} \"quoted\""})).await;
        let first = exported(client.work.store()).await;
        let mut folders = Vec::new();
        for on in [On::Sqlite, On::Postgres] {
            let (store, _, folder) = empty(on).await;
            let carried = store.import(&mut first.as_bytes()).await.unwrap();
            assert_eq!((carried.workspaces, carried.rows), (2, first.lines().count() as u64 - 2));
            assert_eq!(exported(&store).await, first, "{on:?}");
            assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
            folders.push(folder);

            // The copy answers like the original and continues its counters.
            let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
            let copy = Work::new(store, Clock::fixed("2026-02-03T04:05:06Z".parse().unwrap()).0, settings);
            for (tool, args) in [
                ("memory_search", json!({"query": "note"})),
                ("memory_search", json!({"query": "decide because", "in": ["cards"]})),
                ("memory_search", json!({"query": "step", "in": ["tasks"]})),
                ("tasks_context", json!({"text": "task"})),
                ("memory_graph_query", json!({"branch": "a", "doc": "g", "text": "theirs"})),
                ("tasks_resume", json!({"task": "TASK-001"})),
                ("memory_graph_conflicts", json!({"into": "main", "doc": "g"})),
            ] {
                let ours = client.call_quietly(tool, args.clone()).await.ok();
                assert_eq!(call(&copy, tool, args).await.ok(), ours, "{tool} on {on:?}");
            }
            let next = call(&copy, "tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await.ok();
            assert_eq!(next["id"], "TASK-004");
            call(&copy, "tasks_redo", json!({"task": "TASK-001"})).await.ok();
        }
    }

    async fn import_is_atomic(client: &Client) {
        task(client).await;
        let export = exported(client.work.store()).await;
        assert!(matches!(client.work.store().import(&mut export.as_bytes()).await, Err(StoreError::WorkspaceExists(name)) if name == "w"));
        let on = if matches!(client.location, StoreLocation::Sqlite(_)) { On::Sqlite } else { On::Postgres };
        let (store, _, _folder) = empty(on).await;
        let empty_export = exported(&store).await;
        let lines: Vec<&str> = export.lines().collect();
        let (half, last) = (lines[..lines.len() / 2].join("\n"), lines.len() - 1);
        let broken = [
            String::new(),
            "not an export".to_owned(),
            "{\"format\":\"something-else\",\"schema\":1}".to_owned(),
            half.clone(),
            format!("{half}\n{}", lines[last]),
            export.replace("\"table\":\"steps\"", "\"table\":\"stairs\""),
            export.replacen("\"notes\":0", "\"notes\":[]", 1),
            export.replacen("\"notes\":0,", "", 1),
            export.replacen("\"name\":\"w\"", "\"name\":\"-\"", 1),
            [lines[0], lines[2], lines[last]].join("\n"),
            // Unexpected data after the last line.
            format!("{export}{export}"),
            format!("{export}x"),
            format!("{export}\n\n\n\n"),
        ];
        for (number, text) in broken.iter().enumerate() {
            let outcome = store.import(&mut text.as_bytes()).await;
            assert!(matches!(outcome, Err(StoreError::Import { .. })), "{number}: {outcome:?}");
            assert_eq!(exported(&store).await, empty_export, "{number}");
        }
        let newer = export.replacen("\"schema\":5", "\"schema\":9", 1);
        assert!(matches!(store.import(&mut newer.as_bytes()).await, Err(StoreError::NewerSchema { found: 9, .. })));
        let older = export.replacen("\"schema\":5", "\"schema\":1", 1);
        store.import(&mut format!("{older}\n").as_bytes()).await.unwrap();
        assert_eq!(exported(&store).await, export);
    }

    async fn check_finds_invalid_rows(client: &Client) {
        fill(client).await;
        client.ok("tasks_focus_set", json!({"task": "TASK-001"})).await;
        let export = exported(client.work.store()).await;
        let on = if matches!(client.location, StoreLocation::Sqlite(_)) { On::Sqlite } else { On::Postgres };
        let anywhere = [
            ("UPDATE targets SET status = 'zzz' WHERE target = 1", "`status` of targets is not a status (row `1`)"),
            ("UPDATE steps SET tests = 'zzz' WHERE step = 3", "`tests` of steps is not a list of texts (row `3`)"),
            ("UPDATE events SET payload = '7' WHERE event = 3", "`payload` of events is not what an event changed"),
            ("UPDATE branches SET name = 'not json' WHERE branch = 2", "`name` of branches is not a name (row `2`)"),
            ("UPDATE entries SET content = NULL WHERE kind = 'note'", "a note has content"),
            ("UPDATE graph SET id = 'a|b' WHERE kind = 1", "`id` is not a graph key"),
            ("UPDATE workspaces SET checkout = 99", "branch 99 is missing"),
            ("UPDATE workspaces SET focus = 77", "the focus does not exist"),
            ("UPDATE workspaces SET tasks = 1", "TASK-003 exceeds the counter, which is at 1"),
            ("UPDATE branches SET base = 2 WHERE branch = 2", "branch 2 has a missing base, or too many"),
            ("UPDATE entries SET branch = 99 WHERE branch = 2", "an entry has no branch"),
            ("UPDATE steps SET target = 77 WHERE step = 3", "a step has no plan or task"),
            ("INSERT INTO dependencies SELECT ws, 1099511627777, 1099511627778 FROM workspaces", "the dependency table differs"),
        ];
        // PostgreSQL rejects these by type.
        let untyped = [
            ("UPDATE workspaces SET branches = 'zzz'", "`branches` of workspaces is not a count"),
            ("UPDATE entries SET seq = 'zzz' WHERE event = 3", "`seq` of entries is not a number from 1 on"),
            ("UPDATE targets SET title = 'a' || char(0) WHERE target = 1", "`title` of targets is not a title"),
        ];
        let untyped = untyped.into_iter().filter(|_| on == On::Sqlite);
        let (other, _, _other_folder) = empty(on).await;
        for (sql, message) in anywhere.into_iter().chain(untyped) {
            let (store, location, _folder) = empty(on).await;
            store.import(&mut export.as_bytes()).await.unwrap();
            execute_directly(&location, sql).await;
            let problems = store.check().await.unwrap().problems;
            assert!(problems.iter().any(|problem| problem.contains(message)), "{sql}: {problems:?}");
            // Another store does not import them either.
            let carried = other.import(&mut exported(&store).await.as_bytes()).await;
            assert!(matches!(carried, Err(StoreError::Import { .. })), "{sql}: {carried:?}");
            store.close().await;
        }
    }

    async fn check_finds_inconsistencies(client: &Client) {
        fill(client).await;
        close(client, "TASK-001", "s:1").await;
        client.ok("tasks_delete", json!({"task": "TASK-002"})).await;
        let report = client.work.store().check().await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!((report.workspaces, report.records), (1, 19));
        for (sql, message) in [
            ("UPDATE targets SET title = 'forged' WHERE target = 1", "PLAN-001 differs from the sum of the events"),
            ("UPDATE steps SET completed = 1 WHERE step = 3", "STEP-00000003 differs from the sum"),
            ("DELETE FROM events WHERE event = 3", "event 3 is missing"),
            ("DELETE FROM entries WHERE event = 5", "an event is missing from the trace"),
            ("UPDATE graph SET next = NULL WHERE next IS NOT NULL", "does not link to the next version"),
            ("UPDATE workspaces SET seqs = 1", "the counter, which is at 1"),
        ] {
            execute_directly(&client.location, sql).await;
            let problems = client.work.store().check().await.unwrap().problems;
            assert!(problems.iter().any(|problem| problem.contains(message)), "{sql}: {problems:?}");
        }
    }

    async fn locked_store_is_busy(client: &Client) {
        task(client).await;
        let store = Store::open_with(&client.location, Duration::from_millis(200)).await.unwrap();
        let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
        let impatient = Work::new(store, Clock::system(), settings);
        let note = json!({"task": "TASK-001", "note": "n"});
        match &client.location {
            StoreLocation::Sqlite(path) => {
                let held = rusqlite::Connection::open(path).unwrap();
                held.execute_batch("BEGIN IMMEDIATE").unwrap();
                let answer = call(&impatient, "tasks_note", note.clone()).await.fails("STORE_BUSY");
                assert_eq!(answer.error()["retryable"], true);
                // Readers and writers do not block each other.
                call(&impatient, "tasks_radar", json!({"task": "TASK-001"})).await.ok();
                held.execute_batch("ROLLBACK").unwrap();
            }
            StoreLocation::Postgres(url) => {
                let mut other = PgConnection::connect(url).await.unwrap();
                let mut held = other.begin().await.unwrap();
                held.execute("SELECT * FROM workspaces FOR UPDATE").await.unwrap();
                let answer = call(&impatient, "tasks_note", note.clone()).await.fails("STORE_BUSY");
                assert_eq!(answer.error()["retryable"], true);
                call(&impatient, "tasks_radar", json!({"task": "TASK-001"})).await.ok();
                held.rollback().await.unwrap();
            }
        }
        call(&impatient, "tasks_note", note).await.ok();
        assert_eq!(revision(client, "TASK-001").await, 1);
    }

    async fn database_error_is_a_store_error(client: &Client) {
        task(client).await;
        execute_directly(&client.location, "ALTER TABLE events RENAME TO elsewhere").await;
        let answer = client.call("tasks_note", json!({"task": "TASK-001", "note": "n"})).await.fails("STORE_ERROR");
        assert_eq!(answer.error()["retryable"], false);
        execute_directly(&client.location, "ALTER TABLE elsewhere RENAME TO events").await;
        assert_eq!(revision(client, "TASK-001").await, 0);
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "n"})).await;
    }
}

#[tokio::test]
async fn store_that_cannot_be_opened_is_an_error() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "not a database, but long enough to look at".repeat(100))
        .unwrap();
    let damaged = Store::open(&StoreLocation::Sqlite(folder.path().join("file"))).await;
    assert!(matches!(damaged, Err(StoreError::Damaged(_))));
    let inside = Store::open(&StoreLocation::Sqlite(folder.path().join("file/store.db"))).await;
    assert!(matches!(inside, Err(StoreError::Folder { .. })));
    let directory = Store::open(&StoreLocation::Sqlite(folder.path().to_owned())).await;
    assert!(matches!(directory, Err(StoreError::Open(_))));
    let unreachable = StoreLocation::Postgres("postgres://ada@127.0.0.1:1/none".into());
    let unreachable = Store::open_with(&unreachable, Duration::from_secs(2)).await;
    assert!(unreachable.is_err());
}

/// Turns a store on SQLite into one of schema 4: all texts are in the full-text index.
const TO_SCHEMA_4: &str = "
    INSERT INTO search_index (rowid, kind, ref, words) SELECT rowid, kind, ref, words FROM search_recent;
    DROP TABLE search_recent;
    ALTER TABLE search_index RENAME TO search;
    ALTER TABLE search_index_content RENAME TO search_content;
    UPDATE tenon_schema SET version = 4;";

#[tokio::test]
async fn texts_are_found_after_a_migration_from_schema_4_and_when_they_move_to_the_index() {
    let (store, location, _folder) = empty(On::Sqlite).await;
    let work = |store| {
        let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
        Work::new(store, Clock::system(), settings)
    };
    let seqs = async |work: &Work, query: &str| {
        let found = call(work, "memory_search", json!({"query": query, "limit": 200})).await.ok();
        let hits = found["hits"].as_array().unwrap().iter().map(|hit| hit["seq"].as_i64().unwrap());
        hits.collect::<Vec<_>>()
    };
    let old = work(store);
    let mut expected = Vec::new();
    for number in 0..200 {
        let content = format!("every note{number} {}", if number % 3 == 0 { "third" } else { "other" });
        let answer =
            call(&old, "memory_notes_commit", json!({"branch": "main", "doc": "notes", "content": content}));
        expected.insert(0, answer.await.ok()["entry"]["seq"].as_i64().unwrap());
        // At any time, all notes are found, each once.
        if number % 16 == 0 || (60..70).contains(&number) {
            assert_eq!(seqs(&old, "every").await, expected);
            assert_eq!(seqs(&old, &format!("note{number}")).await, expected[..1]);
            assert_eq!(seqs(&old, "thir* every").await.len(), number / 3 + 1);
        }
    }
    old.store().close().await;

    execute_directly(&location, TO_SCHEMA_4).await;
    let store = Store::open(&location).await.unwrap();
    assert_eq!((store.found_version(), store.schema_version()), (4, 5));
    let new = work(store);
    assert_eq!(seqs(&new, "every").await, expected);
    let note = json!({"branch": "main", "doc": "notes", "content": "every new note"});
    let answer = call(&new, "memory_notes_commit", note).await.ok();
    expected.insert(0, answer["entry"]["seq"].as_i64().unwrap());
    expected.truncate(200);
    assert_eq!(seqs(&new, "every").await, expected);
    assert_eq!(new.store().check().await.unwrap().problems, Vec::<String>::new());
}

/// Opening a store from before schema 2 adds the planner statistics.
#[tokio::test]
async fn migration_adds_planner_statistics() {
    let (store, location, _folder) = empty(On::Sqlite).await;
    store.close().await;
    execute_directly(&location, TO_SCHEMA_4).await;
    execute_directly(&location, "DELETE FROM sqlite_stat1; UPDATE tenon_schema SET version = 1").await;
    let store = Store::open(&location).await.unwrap();
    assert_eq!((store.found_version(), store.schema_version()), (1, 5));
    store.close().await;
    let StoreLocation::Sqlite(path) = location else { panic!("a file") };
    let connection = rusqlite::Connection::open(path).unwrap();
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let lines = connection.query_row("SELECT count(*) FROM sqlite_stat1", [], count).unwrap();
    assert!(lines > 20);
}

/// Without the statistics, SQLite would scan the whole workspace for each of these queries.
#[tokio::test]
async fn queries_use_the_intended_index() {
    let (store, location, _folder) = empty(On::Sqlite).await;
    let StoreLocation::Sqlite(path) = location else { panic!("a file") };
    let connection = rusqlite::Connection::open(path).unwrap();
    for (sql, index) in [
        (
            "SELECT * FROM graph WHERE ws = 1 AND branch = 1 AND doc = 'd' AND kind = 0 AND id = 'i' AND seq <= 9 ORDER BY seq DESC",
            "graph_versions",
        ),
        (
            "SELECT * FROM graph WHERE ws = 1 AND branch = 1 AND doc = 'd' AND kind = 0 AND next IS NULL AND deleted = 0 AND seq <= 9 ORDER BY seq DESC",
            "graph_live",
        ),
        (
            "SELECT * FROM graph WHERE ws = 1 AND branch = 1 AND doc = 'd' AND kind = 1 AND goal = 'g' AND seq <= 9 ORDER BY seq DESC",
            "graph_goals",
        ),
        ("SELECT count(*) FROM steps WHERE ws = 1 AND target = 1 AND deleted = 0", "steps_place"),
        ("UPDATE events SET undone = 2 WHERE ws = 1 AND target = 1 AND undone = 1", "events_target"),
        (
            "SELECT * FROM entries WHERE ws = 1 AND branch = 1 AND doc = 'd' AND seq <= 9 ORDER BY seq DESC",
            "entries_doc",
        ),
        (
            "SELECT * FROM targets WHERE ws = 1 AND deleted = 0 AND target >= 1 AND target <= 9 AND status = 'todo' ORDER BY target",
            "targets_status",
        ),
        (
            "SELECT count(*) FROM targets WHERE ws = 1 AND deleted = 0 AND target >= 1 AND target <= 9 AND status = 'todo'",
            "COVERING INDEX targets_status",
        ),
    ] {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let plan: String = connection.query_row(&explain, [], |row| row.get(3)).unwrap();
        assert!(plan.contains(index), "{sql}: {plan}");
    }
    store.close().await;
}

#[test]
fn location_is_a_postgres_url_or_an_absolute_path() {
    assert!(matches!(StoreLocation::parse("postgres://u@h/d"), Ok(StoreLocation::Postgres(_))));
    assert!(matches!(StoreLocation::parse("postgresql://u@h/d"), Ok(StoreLocation::Postgres(_))));
    assert!(matches!(StoreLocation::parse("/tmp/store.db"), Ok(StoreLocation::Sqlite(_))));
    assert!(matches!(StoreLocation::parse("/tmp/odd://name"), Ok(StoreLocation::Sqlite(_))));
    for other in ["mysql://h/d", "sqlite:///tmp/q.db", "postgress://ada:secret@db/x", "POSTGRES://h/d", "://"]
    {
        assert_eq!(StoreLocation::parse(other), Err(StoreLocationError::Scheme), "{other}");
    }
    for relative in ["", "plans.db", "./plans.db", "~/plans.db", "postgres:/ada:secret@db/x", "sqlite:x"] {
        assert_eq!(StoreLocation::parse(relative), Err(StoreLocationError::Relative), "{relative}");
    }
    for misplaced in [StoreLocationError::Scheme, StoreLocationError::Relative] {
        assert!(StoreError::from(misplaced).hint().unwrap().contains("`postgres://`"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn sqlite_file_is_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let (_store, location, _folder) = empty(On::Sqlite).await;
    let StoreLocation::Sqlite(path) = location else { panic!("a file") };
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Writes to a file that has been deleted or replaced would be lost.
#[cfg(unix)]
#[tokio::test]
async fn replaced_sqlite_file_is_rejected() {
    let client = Client::new(On::Sqlite).await;
    task(&client).await;
    let StoreLocation::Sqlite(path) = &client.location else { panic!("a file") };
    let aside = path.with_extension("aside");
    std::fs::rename(path, &aside).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::copy(&aside, path).unwrap();
        }
        for tool in ["tasks_note", "tasks_radar"] {
            let arguments = match tool {
                "tasks_note" => json!({"task": "TASK-001", "note": "n"}),
                _ => json!({"task": "TASK-001"}),
            };
            let answer = client.call(tool, arguments).await.fails("STORE_ERROR");
            assert!(answer.error()["message"].as_str().unwrap().contains("replaced"), "{}", answer.error());
        }
    }
    std::fs::rename(&aside, path).unwrap();
    client.ok("tasks_note", json!({"task": "TASK-001", "note": "n"})).await;
    assert_eq!(revision(&client, "TASK-001").await, 1);
}
