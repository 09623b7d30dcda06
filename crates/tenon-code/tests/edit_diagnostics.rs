//! The diagnostics after an edit: of the edited files and their dependents, for exactly the new text.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_code::edit::{ChangedFile, EditDiagnostics, FileDiagnosticLines};
use tenon_fake_lsp::Workbench;
use tenon_lsp::CallContext;
use tenon_lsp::watch::UNFINISHED_EDIT;

/// The time for diagnostics of other files.
const WAIT: Duration = Duration::from_secs(2);

fn publish(uri: &str, message: &str) -> Value {
    json!({ "publish": { "uri": uri, "version": "none", "diagnostics": [{ "line": 2, "message": message, "code": "E1" }] } })
}

fn nothing(uri: &str) -> Value {
    json!({ "publish": { "uri": uri, "version": "none", "diagnostics": [] } })
}

async fn bench(rules: Value) -> Workbench {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules });
    let builder = Workbench::new().file("b.fake", "one").file("a.fake", "two").file("c.fake", "three");
    builder.server("fake", script).patient().open().await
}

fn touched(bench: &Workbench, file: &str, text: Option<&str>) -> ChangedFile {
    ChangedFile { path: bench.path(file), text: text.map(str::to_owned), before: None }
}

async fn edit(bench: &Workbench, file: &str, text: &str) -> EditDiagnostics {
    EditDiagnostics::collect(
        &bench.orchestrator,
        &[touched(bench, file, Some(text))],
        WAIT,
        &Workbench::call(),
    )
    .await
}

/// `file: message, …` for the touched files, then for the others.
fn shown(found: &EditDiagnostics) -> (Vec<String>, Vec<String>) {
    let lines = |files: &[FileDiagnosticLines]| {
        let line = |file: &FileDiagnosticLines| {
            let all: Vec<String> =
                file.diagnostics.iter().map(tenon_lsp::diagnostic_line::DiagnosticLine::to_line).collect();
            format!("{}: {}", file.file, all.join(", "))
        };
        files.iter().map(line).collect()
    };
    (lines(&found.changed), lines(&found.others))
}

#[tokio::test]
async fn edit_reports_diagnostics_of_the_edited_file_and_of_others() {
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "text": "bad", "do": [
            { "publish": { "uri": "$uri" } }, publish("c.fake", "c breaks"), publish("a.fake", "a breaks"),
        ]},
        { "on": "textDocument/didChange", "text": "good", "do": [
            { "publish": { "uri": "$uri" } }, nothing("c.fake"), nothing("a.fake"),
        ]},
    ]))
    .await;
    bench.check("b.fake").await;
    let broken = edit(&bench, "b.fake", "now bad").await;
    let expected = (
        vec!["b.fake: ERROR [1:5] this is bad".to_owned()],
        vec!["a.fake: ERROR [3:1] a breaks (E1)".to_owned(), "c.fake: ERROR [3:1] c breaks (E1)".to_owned()],
    );
    assert_eq!(shown(&broken), expected);
    assert!(broken.complete && broken.pending.is_empty());
    let fixed = edit(&bench, "b.fake", "good").await;
    assert_eq!(shown(&fixed), (vec!["b.fake: ".to_owned()], vec![]));
    assert!(fixed.complete);
}

#[tokio::test]
async fn pending_server_is_named_and_its_stale_diagnostics_are_left_out() {
    // Once both files are open, an edit of one publishes nothing for the other.
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri",
            "diagnostics": [{ "message": "from before" }] } }] },
        { "on": "textDocument/didOpen", "file": "b.fake", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } },
            { "progress": { "token": "t", "kind": "begin" } }] },
    ]))
    .await;
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    let found = edit(&bench, "b.fake", "bad").await;
    assert_eq!(shown(&found), (vec!["b.fake: ERROR [1:1] this is bad".to_owned()], vec![]));
    assert!(!found.complete);
    assert_eq!(found.pending, ["fake"]);
}

#[tokio::test]
async fn superseded_edit_is_incomplete_and_reports_no_diagnostics_of_the_newer_text() {
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "wait_ms": 100 }, { "publish": { "uri": "$uri" } }] },
    ]))
    .await;
    bench.check("a.fake").await;
    let (first, second) = tokio::join!(edit(&bench, "a.fake", "bad bad"), async {
        Workbench::until("changed", || bench.received_count("fake", "textDocument/didChange") > 0).await;
        edit(&bench, "a.fake", "fine, bad").await
    });
    assert!(!first.complete, "{first:?}");
    assert_eq!(shown(&first).0, ["a.fake: "]);
    assert_eq!(shown(&second).0, ["a.fake: ERROR [1:7] this is bad"]);
    assert!(second.complete);
}

#[tokio::test]
async fn files_are_reported_in_the_given_order_and_a_missing_one_is_incomplete() {
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]))
    .await;
    bench.write("c.fake", "bad");
    let all = [touched(&bench, "c.fake", None), touched(&bench, "a.fake", None)];
    let found = EditDiagnostics::collect(&bench.orchestrator, &all, WAIT, &Workbench::call()).await;
    assert_eq!(shown(&found).0, ["c.fake: ERROR [1:1] this is bad", "a.fake: "]);
    assert!(found.complete);
    std::fs::remove_file(&all[0].path).expect("the file is there");
    let found = EditDiagnostics::collect(&bench.orchestrator, &all, WAIT, &Workbench::call()).await;
    assert_eq!(shown(&found).0, ["c.fake: ", "a.fake: "]);
    assert!(!found.complete && found.pending.is_empty());
}

#[tokio::test]
async fn file_without_a_server_is_complete_without_diagnostics() {
    let bench = bench(json!([])).await;
    bench.write("plain.txt", "bad");
    let found = edit(&bench, "plain.txt", "worse").await;
    assert_eq!(shown(&found), (vec!["plain.txt: ".to_owned()], vec![]));
    assert!(found.complete && found.pending.is_empty());
}

#[tokio::test]
async fn server_without_inter_file_dependencies_is_not_asked_for_dependents() {
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "hoverProvider": true,
            "diagnosticProvider": { "interFileDependencies": false, "workspaceDiagnostics": false } },
        "rules": [
            { "on": "textDocument/diagnostic", "do": ["reply_lint"] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
        ],
    });
    let builder = Workbench::new().file("a.fake", "name").file("b.fake", "name").file("c.fake", "so bad");
    let bench = builder.server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    // Open, and not checked yet.
    bench.orchestrator.hover(&bench.path("c.fake"), Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    let found = edit(&bench, "a.fake", "other").await;
    assert!(found.complete, "{found:?}");
    assert_eq!(
        shown(&found),
        (vec!["a.fake: ".to_owned()], vec!["c.fake: ERROR [1:4] this is bad".to_owned()])
    );
    let opened = bench.received("fake", "textDocument/didOpen");
    let b = bench.path("b.fake");
    assert!(opened.iter().all(|one| one["params"]["textDocument"]["uri"] != b.uri().as_str()), "{opened:?}");
}

/// A pull server with inter-file dependencies that lints `a.fake`.
fn pulling(mut rules: Value) -> Value {
    let rules = rules.as_array_mut().expect("rules are a list");
    rules.push(json!({ "on": "textDocument/diagnostic", "file": "a.fake", "do": ["reply_lint"] }));
    json!({ "capabilities": { "textDocumentSync": 2,
        "diagnosticProvider": { "interFileDependencies": true, "workspaceDiagnostics": false } }, "rules": rules })
}

async fn two_files(script: Value) -> Workbench {
    let builder = Workbench::new().file("a.fake", "one").file("b.fake", "two");
    builder.server("fake", script).patient().open().await
}

#[tokio::test]
async fn push_does_not_refresh_stale_pulled_diagnostics() {
    let before = json!({ "kind": "full", "items": [{ "message": "from before", "range":
        { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } } }] });
    let bench = two_files(pulling(json!([
        { "on": "textDocument/diagnostic", "file": "b.fake", "nth": 1, "do": [{ "reply": before }] },
        { "on": "textDocument/didChange", "do": [
            { "publish": { "uri": "b.fake", "version": { "exactly": 1 }, "diagnostics": [] } }] },
    ])))
    .await;
    bench.check("a.fake").await;
    assert_eq!(Workbench::shown(&bench.check("b.fake").await.value), ["0:0 from before"]);
    let found = edit(&bench, "a.fake", "so bad").await;
    assert_eq!(shown(&found), (vec!["a.fake: ERROR [1:4] this is bad".to_owned()], vec![]));
    assert_eq!((found.complete, found.pending), (false, vec!["fake".to_owned()]));
}

#[tokio::test]
async fn pull_does_not_refresh_stale_pushed_diagnostics() {
    let bench = two_files(pulling(json!([
        { "on": "textDocument/didOpen", "file": "b.fake", "do": [
            { "publish": { "uri": "$uri", "diagnostics": [{ "message": "from before" }] } }] },
        { "on": "textDocument/diagnostic", "file": "b.fake", "do": ["reply_lint"] },
    ])))
    .await;
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    while bench.orchestrator.diagnostics().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let found = edit(&bench, "a.fake", "bad").await;
    assert_eq!(shown(&found), (vec!["a.fake: ERROR [1:1] this is bad".to_owned()], vec![]));
    assert_eq!((found.complete, found.pending), (false, vec!["fake".to_owned()]));
}

#[tokio::test]
async fn edit_waits_for_a_search_that_the_server_cannot_cancel() {
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "hoverProvider": true },
        "rules": [
            { "on": "textDocument/references", "do": [
                { "wait_ms": 300 }, { "request": { "method": "window/showDocument", "params": {} } }, { "reply": [] }] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
        ],
    });
    let keeps = vec!["textDocument/references".to_owned()];
    let builder = Workbench::new().file("a.fake", "one");
    let bench = builder.server_with("fake", script, |entry| entry.keeps = keeps).patient().open().await;
    let (path, place) = (bench.path("a.fake"), Workbench::at(0, 0));
    bench.orchestrator.hover(&path, place, &Workbench::call()).await.unwrap();
    let hasty = CallContext::within(Duration::from_millis(1));
    let _ = bench.orchestrator.references(&path, place, false, &hasty).await;
    Workbench::until("asked", || bench.received_count("fake", "textDocument/references") == 1).await;
    let found = edit(&bench, "a.fake", "bad").await;
    assert!(found.complete, "{found:?}");
    // The server sends a request right before it answers.
    let lines: Vec<String> = bench.transcript("fake").iter().map(Value::to_string).collect();
    let first = |word: &str| lines.iter().position(|line| line.contains(word)).unwrap();
    assert!(first("success") < first("textDocument/didChange"), "{lines:#?}");
}

#[tokio::test]
async fn references_are_cached_until_another_file_changes() {
    let symbol = |name: &str, line: u32| {
        let range =
            json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 9 } });
        json!({ "name": name, "kind": 12, "range": range, "selectionRange": range,
            "children": [{ "name": "local", "kind": 13, "range": range, "selectionRange": range }] })
    };
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "documentSymbolProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": [symbol("used", 0)] }] },
            { "on": "textDocument/references", "do": [{ "reply_locations": { "uri": "b.fake", "count": 1 } }] },
        ],
    });
    let bench = two_files(script).await;
    for text in ["first", "second", "third"] {
        assert!(edit(&bench, "a.fake", text).await.complete);
    }
    assert_eq!(bench.received_count("fake", "textDocument/references"), 1);
    let opened = bench.received("fake", "textDocument/didOpen");
    assert_eq!(opened.len(), 2, "{opened:?}");
    bench.write("b.fake", "another");
    assert!(edit(&bench, "a.fake", "fourth").await.complete);
    assert_eq!(bench.received_count("fake", "textDocument/references"), 2);
}

#[tokio::test]
async fn temporary_files_of_edits_are_not_reported_to_servers() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "initialized", "do": [{ "request": {
            "method": "client/registerCapability",
            "params": { "registrations": [{ "id": "w", "method": "workspace/didChangeWatchedFiles",
                "registerOptions": { "watchers": [{ "globPattern": "**" }] } }] } } }] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = two_files(script).await;
    bench.check("a.fake").await;
    let unfinished = format!("{UNFINISHED_EDIT}0123");
    bench.write(&unfinished, "two");
    std::fs::rename(bench.root().join(unfinished), bench.root().join("a.fake")).unwrap();
    bench.check("a.fake").await;
    let shown: Vec<Value> = bench.received("fake", "workspace/didChangeWatchedFiles");
    let shown: Vec<&Value> =
        shown.iter().flat_map(|one| one["params"]["changes"].as_array().unwrap()).collect();
    assert!(!shown.is_empty());
    assert!(shown.iter().all(|one| one["uri"].as_str().unwrap().ends_with("/a.fake")), "{shown:?}");
}

#[tokio::test]
async fn exactly_the_dependents_of_edited_symbols_are_opened() {
    let symbol = |name: &str, line: u32| {
        let range =
            json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 5 } });
        json!({ "name": name, "kind": 12, "range": range, "selectionRange": range })
    };
    let used_in = |file: &str| json!({ "reply_locations": { "uri": file, "count": 1 } });
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "documentSymbolProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/documentSymbol", "do": [{ "reply": [symbol("alpha", 0), symbol("omega", 1)] }] },
            { "on": "textDocument/references", "nth": 1, "do": [used_in("uses_omega.fake")] },
            { "on": "textDocument/references", "nth": 2, "do": [used_in("uses_alpha.fake")] },
        ],
    });
    let bench = Workbench::new()
        .file("a.fake", "alpha\nomega")
        .file("uses_alpha.fake", "bad")
        .file("uses_omega.fake", "bad")
        .server("fake", script)
        .patient()
        .open()
        .await;
    let edited = |before: &'static str, after: &'static str| {
        let touched =
            ChangedFile { before: Some(before.to_owned()), ..touched(&bench, "a.fake", Some(after)) };
        let bench = &bench;
        async move {
            shown(&EditDiagnostics::collect(&bench.orchestrator, &[touched], WAIT, &Workbench::call()).await)
                .1
        }
    };
    let alpha = "uses_alpha.fake: ERROR [1:1] this is bad";
    let omega = "uses_omega.fake: ERROR [1:1] this is bad";
    // The server has not opened the file yet, and still only the changed symbol counts. A word that is not a declaration
    // has no dependents.
    assert_eq!(edited("alpha\nomega bad", "alpha\nomega 1").await, [omega]);
    assert_eq!(edited("alpha\nomega 1", "alpha 2\nomega 1").await, [alpha, omega]);
    assert_eq!(edited("alpha 2\nomega 1", "alpha 2\nomega 3").await, [alpha, omega]);
    assert_eq!(bench.received_count("fake", "textDocument/references"), 2, "dependents are cached");
}

#[tokio::test]
async fn server_that_was_sent_the_previous_text_gets_the_current_one_next() {
    let script = json!({
        "capabilities": { "textDocumentSync": 2, "referencesProvider": true, "documentSymbolProvider": true,
            "hoverProvider": true },
        "rules": [
            { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
            { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
            // It never answers for the previous text.
            { "on": "textDocument/documentSymbol", "do": [] },
            { "on": "textDocument/hover", "do": ["reply_word"] },
        ],
    });
    let bench = two_files(script).await;
    bench.write("a.fake", "after");
    // The server is notified of the change and has not opened the file.
    let ask = async || {
        let place = Workbench::at(0, 0);
        bench.orchestrator.hover(&bench.path("b.fake"), place, &Workbench::call()).await.unwrap()
    };
    ask().await;
    let before = Some("before".to_owned());
    let touched = [ChangedFile { before, ..touched(&bench, "a.fake", Some("after")) }];
    let call = Workbench::call();
    let is_shown = || bench.received_count("fake", "textDocument/documentSymbol") == 1;
    // Drop the request while it waits for the symbols of the previous text.
    tokio::select! {
        _ = EditDiagnostics::collect(&bench.orchestrator, &touched, WAIT, &call) => panic!("the server never answers for the previous text"),
        () = Workbench::until("the previous text is sent", is_shown) => {}
    }
    let shown = |method: &str| {
        let about_it =
            |message: &&Value| message["params"]["textDocument"]["uri"].to_string().contains("a.fake");
        bench.received("fake", method).iter().filter(about_it).count()
    };
    assert_eq!(shown("textDocument/didOpen"), 1);
    ask().await;
    assert_eq!(shown("textDocument/didChange"), 1, "the next request sends the current text");
}
