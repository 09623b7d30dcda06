//! Imports: both backends reject the same invalid rows with the same message, and every accepted row can be read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenon_contract::clock::Clock;
use tenon_testkit::postgres;
use tenon_work::{Access, Store, StoreError, StoreLocation, Work, WorkSettings, WorkTool};

use crate::client::{Client, On, call};
use crate::fixture::{close, task};
use crate::graph::{edge, node};

async fn export(client: &Client) -> String {
    let mut bytes = Vec::new();
    client.work.store().export(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A workspace with rows of every kind in every table.
async fn rows_of_every_kind(client: &Client) {
    task(client).await;
    for (tool, args) in [
        ("tasks_create", json!({"title": "Later", "parent": "PLAN-001", "depends_on": ["TASK-001"]})),
        ("tasks_create", json!({"title": "Never", "parent": "PLAN-001", "contract_data": {"a": [1, "b"]}})),
        ("tasks_delete", json!({"task": "TASK-003"})),
        ("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "a note"})),
        (
            "tasks_evidence",
            json!({"task": "TASK-001", "path": "s:1", "checkpoint": "tests",
                "items": [{"kind": "cmd_output", "command": "make", "exit_code": 0, "output": "fine"}]}),
        ),
        ("tasks_block", json!({"task": "TASK-001", "path": "s:1", "blocked": true, "reason": "waits"})),
        ("tasks_undo", json!({"task": "TASK-001"})),
        ("tasks_next", json!({"claim": true, "agent": "ada"})),
        ("tasks_focus_set", json!({"task": "TASK-001"})),
        ("memory_notes_commit", json!({"branch": "main", "doc": "notes", "content": "of main"})),
        ("memory_branch_create", json!({"name": "a"})),
        (
            "memory_notes_commit",
            json!({"branch": "a", "doc": "notes", "content": "of a", "title": "T", "format": "md",
                "meta": {"from": "here"}}),
        ),
        ("memory_merge", json!({"from": "a", "into": "main", "doc": "notes"})),
        (
            "memory_think_card",
            json!({"target": "TASK-001", "card": {"type": "decision", "title": "So", "text": "be it"}}),
        ),
    ] {
        client.call_quietly(tool, args).await.ok();
    }
    close(client, "TASK-001", "s:0.s:0").await;
    for (branch, ops) in [
        ("main", json!([node("n", "N"), node("m", "M"), node("gone", "G"), edge("n", "m")])),
        ("main", json!([{"op": "node_delete", "id": "gone"}])),
    ] {
        client
            .call_quietly("memory_graph_apply", json!({"branch": branch, "doc": "g", "ops": ops}))
            .await
            .ok();
    }
    client.call_quietly("memory_branch_create", json!({"name": "b"})).await.ok();
    for (branch, title) in [("b", "theirs"), ("main", "ours")] {
        let mut ops = vec![node("n", title), node("m", title), edge(title, "n")];
        ops[0]["tags"] = json!(["x", "y"]);
        ops[0]["status"] = json!("open");
        ops[2]["meta"] = json!({"weight": 1.5});
        client
            .call_quietly("memory_graph_apply", json!({"branch": branch, "doc": "g", "ops": ops}))
            .await
            .ok();
    }
    let merged = client
        .call_quietly("memory_graph_merge", json!({"from": "b", "into": "main", "doc": "g"}))
        .await
        .ok();
    let resolution = json!({"conflict_id": merged["conflict_ids"][0], "resolution": "use_from"});
    client.call_quietly("memory_graph_conflict_resolve", resolution).await.ok();
}

/// Every reading tool, with arguments that cover all tables.
fn reads(export: &str) -> Vec<(&'static str, Value)> {
    let lines = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let conflict =
        lines.filter_map(|line| line["row"]["conflict"].as_str().map(str::to_owned)).next_back().unwrap();
    let reads = vec![
        ("tasks_context", json!({})),
        ("tasks_context", json!({"text": "later", "tags": ["ci"]})),
        ("tasks_focus_get", json!({})),
        ("tasks_radar", json!({"task": "TASK-001"})),
        ("tasks_handoff", json!({"task": "TASK-001"})),
        ("tasks_resume", json!({"task": "TASK-001"})),
        ("tasks_delta", json!({"limit": 200})),
        ("tasks_history", json!({"task": "TASK-001"})),
        ("memory_status", json!({})),
        ("memory_show", json!({"branch": "a", "doc": "notes"})),
        ("memory_show", json!({"target": "TASK-001", "doc_kind": "trace"})),
        ("memory_export", json!({"target": "TASK-001"})),
        ("memory_diff", json!({"from": "main", "to": "a"})),
        ("memory_branch_list", json!({})),
        ("memory_graph_query", json!({"branch": "b", "doc": "g", "include_deleted": true})),
        ("memory_graph_validate", json!({"branch": "main", "doc": "g"})),
        ("memory_graph_diff", json!({"from": "b", "to": "main", "doc": "g"})),
        ("memory_graph_conflicts", json!({"into": "main", "doc": "g"})),
        ("memory_graph_conflict_show", json!({"conflict_id": conflict})),
        ("memory_think_template", json!({"type": "decision"})),
        ("memory_think_context", json!({"target": "TASK-001"})),
        ("memory_search", json!({"query": "a"})),
    ];
    for tool in WorkTool::ALL.iter().filter(|tool| tool.access() == Access::Read) {
        assert!(reads.iter().any(|(name, _)| *name == tool.name()), "{}", tool.name());
    }
    reads
}

/// The first line of each kind of row in each table.
fn one_line_per_kind(lines: &[Value]) -> Vec<usize> {
    let mut known = BTreeSet::new();
    let kind = |line: &Value| {
        let row = line["row"].as_object()?;
        let variant = ["kind", "deleted", "resolution"].map(|name| row.get(name).map(Value::to_string));
        Some((line["table"].to_string(), variant))
    };
    (0..lines.len()).filter(|&at| kind(&lines[at]).is_some_and(|kind| known.insert(kind))).collect()
}

async fn open(location: &StoreLocation) -> Work {
    let clock = Clock::fixed("2026-02-03T04:05:06Z".parse().unwrap()).0;
    Work::new(Store::open(location).await.unwrap(), clock, WorkSettings { workspace: None, strict: true })
}

/// The error of a rejected import.
async fn import_error(work: &Work, export: &str) -> Option<String> {
    match work.store().import(&mut export.as_bytes()).await {
        Ok(_) => None,
        Err(error @ StoreError::Import { .. }) => Some(error.to_string()),
        Err(other) => panic!("{other:?}"),
    }
}

/// Puts texts, numbers, null and malformed texts into every column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altered_export_is_rejected_or_readable() {
    let client = Client::new(On::Sqlite).await;
    rows_of_every_kind(&client).await;
    let export = export(&client).await;
    let reads = reads(&export);
    let lines: Vec<&str> = export.lines().collect();
    let good: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let folder = TempDir::new().unwrap();
    let sqlite = open(&StoreLocation::Sqlite(folder.path().join("store.db"))).await;
    let postgres = open(&StoreLocation::Postgres(postgres::database())).await;
    let others = [json!("zzz"), json!(7), json!(null), json!(-1), json!("a\0b"), json!("{\"broken\":")];
    let (mut tried, mut accepted) = (0, 0);
    for at in one_line_per_kind(&good) {
        for column in good[at]["row"].as_object().unwrap().keys() {
            for other in others.iter().filter(|other| **other != good[at]["row"][column]) {
                let change = format!("{column} of {} to {other}", lines[at]);
                let mut workspace = good[1].clone();
                workspace["row"]["name"] = json!(format!("w{tried}"));
                let mut line = if at == 1 { workspace.clone() } else { good[at].clone() };
                line["row"][column] = other.clone();
                let name = if at == 1 { &line } else { &workspace }["row"]["name"].clone();
                let (workspace, line) = (workspace.to_string(), line.to_string());
                let mut changed = lines.clone();
                changed[1] = &workspace;
                changed[at] = &line;
                let text = changed.join("\n");
                let (here, there) =
                    tokio::join!(import_error(&sqlite, &text), import_error(&postgres, &text));
                tried += 1;
                match &here {
                    // The database itself rejected the row; the backends word this differently.
                    Some(error) if error.contains("was rejected") => assert!(there.is_some(), "{change}"),
                    _ => assert_eq!(here, there, "{change}"),
                }
                if here.is_some() {
                    continue;
                }
                accepted += 1;
                for (tool, args) in &reads {
                    let mut args = args.clone();
                    args["workspace"] = name.clone();
                    let (here, there) =
                        tokio::join!(call(&sqlite, tool, args.clone()), call(&postgres, tool, args));
                    assert_ne!(here.envelope["error"]["code"], "STORE_ERROR", "{change}: {}", here.text);
                    assert_eq!(here.text, there.text, "{change}");
                }
            }
        }
    }
    for work in [&sqlite, &postgres] {
        let report = work.store().check().await.unwrap();
        assert_eq!((report.workspaces, report.problems), (accepted, Vec::new()));
    }
    assert!(accepted > 30 && accepted < tried / 5, "{accepted} of {tried}");
}

/// Changes values in the first matching line of a table.
fn changed(export: &str, table: &str, matches: impl Fn(&Value) -> bool, changes: Value) -> String {
    let mut lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter_mut().find(|line| line["table"] == table && matches(&line["row"])).unwrap();
    line["row"].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn import_error_names_the_line_and_the_reason() {
    let client = Client::new(On::Sqlite).await;
    rows_of_every_kind(&client).await;
    let export = export(&client).await;
    let folder = TempDir::new().unwrap();
    let sqlite = open(&StoreLocation::Sqlite(folder.path().join("store.db"))).await;
    let postgres = open(&StoreLocation::Postgres(postgres::database())).await;
    let row = |name: &'static str, value: Value| move |row: &Value| row[name] == value;
    let task = |number: i64| (1_i64 << 40) + number;
    for (export, message) in [
        (
            changed(&export, "workspaces", |_| true, json!({"checkout": "zzz"})),
            "line 2 of the import: `checkout` of workspaces is not a branch",
        ),
        (
            changed(&export, "targets", row("target", json!(1)), json!({"title": "a\0b"})),
            "line 3 of the import: `title` of targets is not a title",
        ),
        (
            changed(&export, "targets", row("target", json!(1)), json!({"tags": "[\"b\",\"a\"]"})),
            "line 3 of the import: `tags` of targets is not a list of tags",
        ),
        (
            changed(&export, "targets", row("target", json!(1)), json!({"blockers": "[\"a\\u0000b\"]"})),
            "line 3 of the import: `blockers` of targets is not a list of texts",
        ),
        (
            changed(&export, "targets", row("target", json!(task(2))), json!({"parent": task(1)})),
            "a row of targets: a task has a plan as parent, a plan has none",
        ),
        (
            changed(&export, "dependencies", |_| true, json!({"needs": task(3)})),
            "the dependency table differs",
        ),
        (
            changed(&export, "steps", row("step", json!(2)), json!({"step": 1})),
            "a row of steps is a duplicate or out of order",
        ),
        (
            changed(&export, "entries", row("kind", json!("note")), json!({"branch": 9})),
            "an entry has no branch",
        ),
        (
            changed(&export, "entries", row("kind", json!("note")), json!({"format": ""})),
            "`format` of entries",
        ),
        (changed(&export, "branches", row("name", json!("a")), json!({"base": 9})), "has a missing base"),
        (changed(&export, "graph", row("kind", json!(1)), json!({"goal": "other"})), "only an edge has ends"),
        (changed(&export, "workspaces", |_| true, json!({"focus": task(3)})), "the focus does not exist"),
        (changed(&export, "workspaces", |_| true, json!({"seqs": 41})), "the counter, which is at 41"),
    ] {
        let (here, there) = tokio::join!(import_error(&sqlite, &export), import_error(&postgres, &export));
        assert_eq!(here, there);
        assert!(here.as_ref().is_some_and(|here| here.contains(message)), "{here:?}: {message}");
    }
}

/// Branches may be nested 32 deep, in imports too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn import_limits_the_depth_of_branches() {
    let client = Client::new(On::Sqlite).await;
    for number in 1..=32 {
        let from = if number == 1 { "main".to_owned() } else { format!("b{}", number - 1) };
        let args = json!({"name": format!("b{number}"), "from": from});
        client.call_quietly("memory_init", json!({})).await.ok();
        client.call_quietly("memory_branch_create", args).await.ok();
    }
    let export = export(&client).await;
    let folder = TempDir::new().unwrap();
    let work = open(&StoreLocation::Sqlite(folder.path().join("store.db"))).await;
    let (row, end) = export.rsplit_once("{\"rows\"").unwrap();
    let deepest = row.lines().last().unwrap();
    let deeper = deepest.replace("\"b32\"", "\"b33\"").replace("\"branch\":33", "\"branch\":34");
    let deeper = deeper.replace("\"base\":32", "\"base\":33");
    let rows = row.lines().count();
    let deeper =
        format!("{row}{deeper}\n{{\"rows\":{rows}}}\n").replace("\"branches\":33", "\"branches\":34");
    assert!(end.starts_with(':'));
    let message = import_error(&work, &deeper).await.unwrap();
    assert!(message.contains("branch 34 has a missing base, or too many"), "{message}");
    assert_eq!(import_error(&work, &export).await, None);
}
