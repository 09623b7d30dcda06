//! What an edit reports: the difference that it makes to the diagnostics, for exactly the texts before and after.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::FutureExt;
use serde_json::{Value, json};
use tenon_code::EditText;
use tenon_code::edit::{
    BaselineTexts, EditDiagnostics, EditFile, EditKind, Editor, EditorOptions, FileState, Lines,
    ReportedChange, Unfinished, WriteFile,
};
use tenon_contract::root::WorkspacePath;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::linter;
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{ChangedText, Options};
use tenon_lsp::watch::UNFINISHED_EDIT;

/// The time for diagnostics of other files.
const WAIT: Duration = Duration::from_secs(2);

fn editor_with(bench: &Workbench, baselines: BaselineTexts) -> Editor {
    let servers = bench.orchestrator.clone();
    let options = EditorOptions {
        own_paths: Vec::new(),
        journal: Utf8PathBuf::from_path_buf(bench.root()).unwrap().with_file_name("edits"),
        servers: Box::new(move || std::future::ready(Some(servers.clone())).boxed()),
        baselines,
        severities: BTreeSet::from([Severity::Error]),
    };
    Editor::new(&Utf8PathBuf::from_path_buf(bench.root()).unwrap(), options).unwrap()
}

/// An editor that finds no text before a change by another program.
fn editor(bench: &Workbench) -> Editor {
    editor_with(bench, Box::new(|paths| std::future::ready(vec![None; paths.len()]).boxed()))
}

/// An editor that finds this text before every change by another program.
fn editor_after(bench: &Workbench, text: &'static str) -> Editor {
    let texts = move |paths: Vec<WorkspacePath>| vec![Some(text.to_owned()); paths.len()];
    editor_with(bench, Box::new(move |paths| std::future::ready(texts(paths)).boxed()))
}

async fn edit(editor: &Editor, file: &str, old: &str, new: &str) -> EditDiagnostics {
    let edit = EditFile {
        file: file.to_owned(),
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        expected_sha256: None,
    };
    editor.edit(edit, WAIT, &Workbench::call()).await.unwrap().diagnostics
}

async fn write(editor: &Editor, file: &str, text: &str) -> EditDiagnostics {
    let write = WriteFile { file: file.to_owned(), text: text.to_owned(), expected_sha256: None };
    editor.write(write, WAIT, &Workbench::call()).await.unwrap().diagnostics
}

async fn after(editor: &Editor, bench: &Workbench, files: &[&str]) -> EditDiagnostics {
    let gate = bench.orchestrator.gate();
    let change =
        |file: &&str| ReportedChange { path: gate.admit_target(file).unwrap(), before: None, is_new: false };
    let files = files.iter().map(change).collect();
    editor.diagnostics_after(files, Unfinished::Retry, WAIT, &Workbench::call()).await
}

fn text(found: &EditDiagnostics) -> String {
    EditText::new(found).to_string()
}

async fn bench() -> Workbench {
    let builder = Workbench::new().file("a.fake", "one\nold bad\ntwo\n").file("b.fake", "bad\n");
    builder.server("fake", linter()).patient().open().await
}

#[tokio::test]
async fn edit_reports_the_new_and_counts_the_rest() {
    let bench = bench().await;
    let editor = editor(&bench);
    bench.check("b.fake").await;
    let broken = edit(&editor, "a.fake", "one\n", "one\nnow bad\n").await;
    insta::assert_snapshot!(text(&broken), @"
    edited a.fake:1-2
    1 new, 0 gone, 1 unchanged
    NEW error a.fake:2:5: this is bad
    ");
    assert!(broken.complete, "{broken:?}");
    let fixed = edit(&editor, "a.fake", "now bad\nold bad\n", "good\n").await;
    assert_eq!(text(&fixed), "edited a.fake:2\n0 new, 2 gone, 0 unchanged");
    assert_eq!(fixed.gone.iter().map(|one| one.line.line).collect::<Vec<_>>(), [2, 3]);
    let same = edit(&editor, "a.fake", "good", "good").await;
    assert_eq!(text(&same), "unchanged a.fake\n0 new, 0 gone, 0 unchanged");
}

#[tokio::test]
async fn new_file_has_an_empty_baseline() {
    let bench = bench().await;
    let created = write(&editor(&bench), "new.fake", "good\nbad\n").await;
    let expected = "created new.fake:1-2\n1 new, 0 gone, 0 unchanged\nNEW error new.fake:2:1: this is bad";
    assert_eq!(text(&created), expected);
    assert!(created.complete, "{created:?}");
}

#[tokio::test]
async fn file_without_a_server_is_not_called_clean() {
    let builder = Workbench::new().file("a.fake", "one").file("plain.txt", "one");
    let bench = builder
        .server_with("fake", linter(), |entry| entry.command = "/nowhere/at/all".into())
        .patient()
        .open()
        .await;
    let editor = editor(&bench);
    let unserved = edit(&editor, "plain.txt", "one", "two").await;
    assert_eq!(text(&unserved), "edited plain.txt:1\nnot checked: no language server for plain.txt");
    assert!(!unserved.complete && !unserved.is_compared() && unserved.is_silent());
    let unavailable = edit(&editor, "a.fake", "one", "two").await;
    assert_eq!(
        text(&unavailable),
        "edited a.fake:1\nnot checked: no language server is available for a.fake"
    );
    assert!(!unavailable.complete && !unavailable.is_silent());
}

#[tokio::test]
async fn crashed_server_is_named_and_nothing_is_counted() {
    let rules = json!([{ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": ["die"] }]);
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules });
    let bench = Workbench::new().file("a.fake", "one\n").server("fake", script).patient().open().await;
    let found = edit(&editor(&bench), "a.fake", "one", "bad").await;
    assert_eq!(text(&found), "edited a.fake:1\nnot checked by: fake");
    assert!(!found.complete);
}

#[tokio::test]
async fn newer_edit_does_not_wait_for_a_superseded_text_and_reports_both() {
    // The server never reports on the first text.
    let rules = json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "text": "zero", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "text": "second", "do": [{ "publish": { "uri": "$uri" } }] },
    ]);
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules });
    let bench = Workbench::new().file("a.fake", "zero\n").server("fake", script).patient().open().await;
    let editor = editor(&bench);
    bench.check("a.fake").await;
    let (first, second) = tokio::join!(edit(&editor, "a.fake", "zero", "first bad"), async {
        Workbench::until("changed", || bench.received_count("fake", "textDocument/didChange") > 0).await;
        edit(&editor, "a.fake", "first", "second").await
    });
    assert!(first.superseded && !first.complete && first.new.is_empty(), "{first:?}");
    assert!(
        text(&first).starts_with("edited a.fake:1\nnot checked: a newer edit replaced this text"),
        "{first:?}"
    );
    assert!(!second.superseded && second.complete, "{second:?}");
    assert_eq!(
        text(&second),
        "edited a.fake:1\n1 new, 0 gone, 0 unchanged\nNEW error a.fake:1:8: this is bad"
    );
    let third = edit(&editor, "a.fake", "second", "second or third").await;
    assert_eq!(text(&third), "edited a.fake:1\n0 new, 0 gone, 1 unchanged");
}

/// A server that reports on a text with `bad` only when it gets one for the second time.
fn late_server() -> Value {
    let publish = |diagnostics: Value| json!([{ "publish": { "uri": "$uri", "diagnostics": diagnostics } }]);
    let late = json!([{ "line": 0, "message": "late" }]);
    let rules = json!([
        { "on": "textDocument/didOpen", "text": "good", "do": publish(json!([])) },
        { "on": "textDocument/didChange", "text": "good", "do": publish(json!([])) },
        { "on": "textDocument/didChange", "text": "bad", "from": 2, "do": publish(late) },
    ]);
    json!({ "capabilities": { "textDocumentSync": 1 }, "rules": rules })
}

async fn late_bench() -> Workbench {
    let builder = Workbench::new().file("a.fake", "good\n").server("late", late_server());
    let short = |options: &mut Options| options.timeouts.check = Duration::from_millis(300);
    let bench = builder.server("fake", linter()).option(short).open().await;
    bench.check("a.fake").await;
    bench
}

#[tokio::test]
async fn findings_of_a_late_server_are_reported_next_and_those_of_others_once() {
    let bench = late_bench().await;
    let editor = editor_after(&bench, "good\n");
    bench.write("a.fake", "so bad\n");
    let first = after(&editor, &bench, &["a.fake"]).await;
    insta::assert_snapshot!(text(&first), @"
    edited a.fake:1
    1 new, 0 gone, 0 unchanged
    NEW error a.fake:1:4: this is bad
    pending: late
    ");
    assert_eq!(first.unfinished, [bench.path("a.fake")]);
    // The lines move, so that the reported one has another place.
    bench.write("a.fake", "# good\nso bad\n");
    bench.write("a.fake", "\nso bad\n");
    let second = after(&editor, &bench, &["a.fake"]).await;
    insta::assert_snapshot!(text(&second), @"
    edited a.fake:1-2
    1 new, 0 gone, 1 unchanged
    NEW error a.fake:1:1: late
    ");
    assert!(second.unfinished.is_empty() && second.complete, "{second:?}");
    let third = after(&editor, &bench, &["a.fake"]).await;
    assert!(third.is_silent(), "{third:?}");
}

#[tokio::test]
async fn report_after_an_edit_has_the_findings_of_a_late_server() {
    let bench = late_bench().await;
    let editor = editor(&bench);
    let first = edit(&editor, "a.fake", "good", "so bad").await;
    assert_eq!((first.new.len(), &first.pending[..]), (1, &["late".to_owned()][..]), "{first:?}");
    let report = after(&editor, &bench, &["a.fake"]).await;
    insta::assert_snapshot!(text(&report), @"
    edited a.fake:1
    1 new, 0 gone, 1 unchanged
    NEW error a.fake:1:1: late
    ");
    let fixed = edit(&editor, "a.fake", "so bad", "good").await;
    assert_eq!(text(&fixed), "edited a.fake:1\n0 new, 2 gone, 0 unchanged");
}

#[tokio::test]
async fn reported_finding_that_is_fixed_while_a_server_is_late_is_gone() {
    let bench = late_bench().await;
    let editor = editor_after(&bench, "good\n");
    bench.write("a.fake", "so bad\n");
    assert_eq!(after(&editor, &bench, &["a.fake"]).await.new.len(), 1);
    bench.write("a.fake", "good\n");
    let fixed = after(&editor, &bench, &["a.fake"]).await;
    assert_eq!(text(&fixed), "unchanged a.fake\n0 new, 1 gone, 0 unchanged");
}

#[tokio::test]
async fn users_of_a_deleted_file_have_new_errors() {
    let rules = json!([{ "on": "textDocument/diagnostic", "do": ["reply_imports"] }]);
    let capabilities = json!({ "textDocumentSync": 1, "diagnosticProvider": { "interFileDependencies": true, "workspaceDiagnostics": false } });
    let script = json!({ "capabilities": capabilities, "rules": rules });
    let builder = Workbench::new().file("used.fake", "helper\n").file("user.fake", "import used\nhelper\n");
    let other = "import missing\nhelper\n";
    let bench = builder.file("other.fake", other).server("fake", script).patient().open().await;
    let editor = editor_after(&bench, "helper\n");
    std::fs::remove_file(bench.root().join("used.fake")).unwrap();
    let found = after(&editor, &bench, &["used.fake"]).await;
    assert_eq!(new_files(&found), ["user.fake"], "{found:?}");
    bench.write("used.fake", "helper\n");
    let restored = after(&editor, &bench, &["used.fake"]).await;
    assert_eq!(restored.edited[0].kind, EditKind::Edited(Some(Lines { first: 1, last: 1 })), "{restored:?}");
}

fn new_files(found: &EditDiagnostics) -> Vec<&str> {
    found.new.iter().map(|one| one.file.as_str()).collect()
}

#[tokio::test]
async fn fifty_thousand_old_errors_in_a_file_of_eight_mebibytes_are_counted() {
    let text_before = format!("bad {}\n", "x".repeat(162)).repeat(50_000);
    assert!((8_300_000..8 << 20).contains(&text_before.len()));
    let builder = Workbench::new().file("a.fake", &(text_before + "last\n"));
    let bench = builder.server("fake", linter()).patient().open().await;
    let found = edit(&editor(&bench), "a.fake", "last", "last bad").await;
    let expected =
        "edited a.fake:50001\n1 new, 0 gone, 50000 unchanged\nNEW error a.fake:50001:6: this is bad";
    assert_eq!(text(&found), expected);
}

#[tokio::test]
async fn new_diagnostics_name_the_symbol_around_them() {
    let symbol = |name: &str, kind: u32, children: Value| {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
        json!({ "name": name, "kind": kind, "range": range, "selectionRange": range, "children": children })
    };
    let mut script = linter();
    script["capabilities"]["documentSymbolProvider"] = json!(true);
    let symbols = json!([symbol("Query", 5, json!([symbol("filter", 6, json!([]))]))]);
    script["rules"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "on": "textDocument/documentSymbol", "do": [{ "reply": symbols }] }));
    let bench = Workbench::new().file("a.fake", "one\n").server("fake", script).patient().open().await;
    let editor = editor(&bench);
    // On a busy machine the server may be slow to name it.
    for _ in 0..50 {
        let found = edit(&editor, "a.fake", "one", "bad").await;
        if text(&found).contains("\nNEW error a.fake:1:1 in Query.filter: this is bad") {
            return;
        }
        edit(&editor, "a.fake", "bad", "one").await;
    }
    panic!("the symbol is never named");
}

#[tokio::test]
async fn change_by_another_program_is_compared_with_the_last_report() {
    let bench = bench().await;
    let editor = editor_after(&bench, "one\nold bad\n");
    bench.write("a.fake", "one\nold bad\nbad\n");
    let expected = "edited a.fake:3\n1 new, 0 gone, 1 unchanged\nNEW error a.fake:3:1: this is bad";
    assert_eq!(text(&after(&editor, &bench, &["a.fake"]).await), expected, "compared with the baseline");
    bench.write("a.fake", "one\nold bad\nbad\nmore bad\n");
    let expected = "edited a.fake:4\n1 new, 0 gone, 2 unchanged\nNEW error a.fake:4:6: this is bad";
    assert_eq!(text(&after(&editor, &bench, &["a.fake"]).await), expected, "compared with the last report");
    let unchanged = after(&editor, &bench, &["a.fake"]).await;
    assert_eq!(text(&unchanged), "unchanged a.fake\n0 new, 0 gone, 3 unchanged");
    assert!(unchanged.is_silent());
}

#[tokio::test]
async fn text_that_a_server_reported_on_is_a_baseline() {
    let bench = bench().await;
    bench.check("a.fake").await;
    bench.write("a.fake", "one\nold bad\ntwo bad\n");
    let found = after(&editor(&bench), &bench, &["a.fake"]).await;
    let expected = "edited a.fake:3\n1 new, 0 gone, 1 unchanged\nNEW error a.fake:3:5: this is bad";
    assert_eq!(text(&found), expected);
}

#[tokio::test]
async fn change_without_a_baseline_lists_what_is_wrong_now() {
    let bench = bench().await;
    let found = after(&editor(&bench), &bench, &["b.fake"]).await;
    insta::assert_snapshot!(text(&found), @"
    edited b.fake
    no baseline: the diagnostics before are not known for b.fake; all 1 listed
    error b.fake:1:1: this is bad
    ");
    assert!(!found.complete && !found.is_silent());
}

#[tokio::test]
async fn deleted_and_unreadable_files_are_named() {
    let bench = bench().await;
    let editor = editor_after(&bench, "bad\n");
    std::fs::remove_file(bench.root().join("b.fake")).unwrap();
    std::fs::write(bench.root().join("a.fake"), b"\xff\xfe\0").unwrap();
    let found = after(&editor, &bench, &["b.fake", "a.fake"]).await;
    insta::assert_snapshot!(text(&found), @"
    deleted b.fake
    edited a.fake
    0 new, 1 gone, 0 unchanged
    not checked: a.fake (not UTF-8 text, or too large)
    ");
    assert!(!found.complete);
    let never = after(&self::editor(&bench), &bench, &["never.fake"]).await;
    assert!(never.edited.is_empty() && never.is_silent(), "{never:?}");
}

#[tokio::test]
async fn file_of_another_language_is_silent_beside_a_compared_one() {
    let bench = bench().await;
    bench.write("notes.txt", "text");
    let found = after(&editor_after(&bench, "one\nold bad\ntwo\n"), &bench, &["a.fake", "notes.txt"]).await;
    let states: Vec<FileState> = found.edited.iter().map(|file| file.state).collect();
    assert_eq!(states, [FileState::Compared, FileState::Unserved]);
    assert!(found.is_silent(), "{found:?}");
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
    let found = edit(&editor(&bench), "a.fake", "one", "bad").await;
    assert!(found.complete, "{found:?}");
    // The server sends a request right before it answers.
    let lines: Vec<String> = bench.transcript("fake").iter().map(Value::to_string).collect();
    let first = |word: &str| lines.iter().position(|line| line.contains(word)).unwrap();
    assert!(first("success") < first("textDocument/didChange"), "{lines:#?}");
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
    let builder = Workbench::new().file("a.fake", "one");
    let bench = builder.server("fake", script).patient().open().await;
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
    let builder = Workbench::new().file("a.fake", "one").file("b.fake", "two");
    let bench = builder.server("fake", script).patient().open().await;
    bench.write("a.fake", "after");
    // The server is notified of the change and has not opened the file.
    let ask = async || {
        let place = Workbench::at(0, 0);
        bench.orchestrator.hover(&bench.path("b.fake"), place, &Workbench::call()).await.unwrap()
    };
    ask().await;
    let before = Some("before".to_owned());
    let changed = [ChangedText { path: bench.path("a.fake"), before, after: Some("after".to_owned()) }];
    let call = Workbench::call();
    let is_shown = || bench.received_count("fake", "textDocument/documentSymbol") == 1;
    // Drop the request while it waits for the symbols of the previous text.
    tokio::select! {
        _ = bench.orchestrator.check_change(&changed, WAIT, &call) => panic!("the server never answers for the previous text"),
        () = Workbench::until("the previous text is sent", is_shown) => {}
    }
    let shown = |method: &str| {
        let about_it =
            |message: &&Value| message["params"]["textDocument"]["uri"].to_string().contains("a.fake");
        bench.received("fake", method).iter().filter(about_it).count()
    };
    assert_eq!(shown("textDocument/didOpen"), 1);
    ask().await;
    let changes = bench.received("fake", "textDocument/didChange");
    let last = changes.last().map(|message| message["params"]["contentChanges"][0]["text"].clone());
    assert_eq!(last, Some(json!("after")), "the next request sends the current text");
}
