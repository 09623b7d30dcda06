//! Diagnostics of files that depend on an edited file.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::Diagnostic;

const LONG: Duration = Duration::from_secs(600);

fn range(line: u32) -> Value {
    json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 3 } })
}

/// A server that knows one function on line 1 of `a.fake`, used in `b.fake` and `c.fake`.
fn server(more: Vec<Value>) -> Value {
    let user = |file: &str| json!({ "uri": format!("$root/{file}"), "range": range(0) });
    let mut rules = vec![
        json!({ "on": "textDocument/documentSymbol", "do": [{ "reply": [
            { "name": "top", "kind": 12, "range": range(0), "selectionRange": range(0) },
            { "name": "fun", "kind": 12, "range": range(1), "selectionRange": range(1) },
        ]}]}),
        json!({ "on": "textDocument/references", "do": [{ "reply": [user("a.fake"), user("b.fake"), user("c.fake")] }] }),
    ];
    rules.extend(more);
    json!({ "capabilities": { "textDocumentSync": 2, "documentSymbolProvider": true, "referencesProvider": true }, "rules": rules })
}

fn pushing() -> Value {
    server(vec![
        json!({ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] }),
        json!({ "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] }),
    ])
}

async fn bench(script: Value) -> Workbench {
    let builder =
        Workbench::new().file("a.fake", "one\ntwo\n").file("b.fake", "bad").file("c.fake", "bad\nbad");
    builder.server("fake", script).patient().open().await
}

async fn after(bench: &Workbench, epoch: u64, wait: Duration) -> Vec<(String, usize)> {
    let files = bench.orchestrator.diagnostics_after(epoch, wait, &Workbench::call()).await;
    let shown = |items: &Vec<Diagnostic>| items.len();
    files.iter().map(|(path, items)| (bench.orchestrator.gate().display(path), shown(items))).collect()
}

#[tokio::test]
async fn dependents_of_an_edited_symbol_are_opened_and_reported() {
    let bench = bench(pushing()).await;
    bench.check("a.fake").await;
    let epoch = bench.orchestrator.epoch();
    bench.check_text("a.fake", Some("one\ntwo changed bad\n")).await;
    let files = after(&bench, epoch, LONG).await;
    assert_eq!(files, [("a.fake".to_owned(), 1), ("b.fake".to_owned(), 1), ("c.fake".to_owned(), 2)]);
    let asked = bench.received("fake", "textDocument/references");
    let lines: Vec<_> = asked.iter().map(|one| one["params"]["position"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1], "only the edited symbol is searched");
}

#[tokio::test]
async fn dependents_of_a_removed_name_are_opened_and_reported() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "def old_name():\n")
        .file("user.fake", "bad old_name()")
        .file("other.fake", "bad old_names")
        .file("user.txt", "old_name()")
        .server("fake", script)
        .patient()
        .open()
        .await;
    bench.check("a.fake").await;
    let epoch = bench.orchestrator.epoch();
    bench.check_text("a.fake", Some("def new_name():\n")).await;
    assert_eq!(after(&bench, epoch, LONG).await, [("user.fake".to_owned(), 1)]);
}

#[tokio::test]
async fn open_documents_of_pull_servers_are_pulled_again_after_an_edit() {
    let mut script = server(vec![json!({ "on": "textDocument/diagnostic", "do": ["reply_lint"] })]);
    script["capabilities"]["diagnosticProvider"] = json!({ "interFileDependencies": true });
    let bench = bench(script).await;
    bench.check("b.fake").await;
    let epoch = bench.orchestrator.epoch();
    bench.check_text("a.fake", Some("one\ntwo bad\n")).await;
    let files = after(&bench, epoch, LONG).await;
    assert_eq!(files, [("a.fake".to_owned(), 1), ("b.fake".to_owned(), 1), ("c.fake".to_owned(), 2)]);
    let pulled = |file: &str| {
        let all = bench.received("fake", "textDocument/diagnostic");
        all.iter()
            .filter(|one| one["params"]["textDocument"]["uri"].as_str().unwrap().ends_with(file))
            .count()
    };
    assert_eq!(pulled("b.fake"), 2, "once for its own check, once after the edit of another file");
}

#[tokio::test]
async fn wait_ends_at_its_deadline() {
    let silent = server(vec![
        json!({ "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] }),
    ]);
    let bench = bench(silent).await;
    let epoch = bench.orchestrator.epoch();
    bench.check_text("a.fake", Some("bad\n")).await;
    // The server publishes nothing for the dependents it opened.
    let files = after(&bench, epoch, Duration::from_millis(700)).await;
    assert_eq!(files, [("a.fake".to_owned(), 1)]);
}

#[tokio::test]
async fn wait_without_pending_work_ends_at_once() {
    let bench = bench(pushing()).await;
    assert_eq!(after(&bench, bench.orchestrator.epoch(), LONG).await, []);
}

#[tokio::test]
async fn wait_includes_work_that_a_server_announced() {
    let progress = |kind: &str| json!({ "progress": { "token": "t", "kind": kind } });
    let elsewhere =
        json!({ "publish": { "uri": "c.fake", "version": "none", "diagnostics": [{ "message": "late" }] } });
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        progress("begin"), { "publish": { "uri": "$uri" } }, { "wait_ms": 300 }, elsewhere, progress("end"),
    ]}]});
    let bench = bench(script).await;
    let epoch = bench.orchestrator.epoch();
    bench.check("a.fake").await;
    assert_eq!(after(&bench, epoch, LONG).await, [("c.fake".to_owned(), 1)]);
}

#[tokio::test]
async fn epoch_moves_with_every_change_and_every_check() {
    let bench = bench(pushing()).await;
    let mut last = bench.orchestrator.epoch();
    for text in ["bad", "bad bad", "good", "good", "bad"] {
        bench.check_text("a.fake", Some(text)).await;
        let now = bench.orchestrator.epoch();
        assert!(now > last, "{text}");
        last = now;
    }
    bench.orchestrator.diagnostics().await;
    assert_eq!(bench.orchestrator.epoch(), last, "reading diagnostics does not move the epoch");
}
