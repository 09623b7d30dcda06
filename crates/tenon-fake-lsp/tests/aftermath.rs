//! What an edit led to: here and elsewhere, for exactly its own text, and who had not finished.

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::aftermath::{Aftermath, Touched};

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

fn touched(bench: &Workbench, file: &str, text: Option<&str>) -> Touched {
    Touched { path: bench.path(file), text: text.map(str::to_owned) }
}

async fn edit(bench: &Workbench, file: &str, text: &str) -> Aftermath {
    Aftermath::of(&bench.orchestrator, &[touched(bench, file, Some(text))], &Workbench::call()).await
}

/// `file: message, …` for the touched files, then for the others.
fn told(found: &Aftermath) -> (Vec<String>, Vec<String>) {
    let lines = |files: &[tenon_lsp::aftermath::FileFindings]| {
        let line = |file: &tenon_lsp::aftermath::FileFindings| {
            let all: Vec<String> =
                file.diagnostics.iter().map(tenon_lsp::finding::Finding::to_line).collect();
            format!("{}: {}", file.file, all.join(", "))
        };
        files.iter().map(line).collect()
    };
    (lines(&found.touched), lines(&found.others))
}

#[tokio::test]
async fn an_edit_shows_what_it_broke_here_and_elsewhere() {
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
    assert_eq!(told(&broken), expected);
    assert!(broken.complete && broken.pending.is_empty());
    let mended = edit(&bench, "b.fake", "good").await;
    assert_eq!(told(&mended), (vec!["b.fake: ".to_owned()], vec![]));
    assert!(mended.complete);
}

#[tokio::test]
async fn a_server_that_is_not_done_elsewhere_is_named_and_its_old_words_are_left_out() {
    // Once both files are open, an edit of one says nothing about the other any more.
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
    assert_eq!(told(&found), (vec!["b.fake: ERROR [1:1] this is bad".to_owned()], vec![]));
    assert!(!found.complete);
    assert_eq!(found.pending, ["fake"]);
}

#[tokio::test]
async fn an_edit_that_is_overtaken_answers_for_its_own_text_or_not_at_all() {
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "wait_ms": 100 }, { "publish": { "uri": "$uri" } }] },
    ]))
    .await;
    bench.check("a.fake").await;
    let (first, second) = tokio::join!(edit(&bench, "a.fake", "bad bad"), async {
        Workbench::until("changed", || bench.heard("fake", "textDocument/didChange") > 0).await;
        edit(&bench, "a.fake", "fine, bad").await
    });
    assert!(!first.complete, "{first:?}");
    assert_eq!(told(&first).0, ["a.fake: "]);
    assert_eq!(told(&second).0, ["a.fake: ERROR [1:7] this is bad"]);
    assert!(second.complete);
}

#[tokio::test]
async fn several_files_are_shown_in_the_order_given_and_a_lost_one_is_not_complete() {
    let bench = bench(json!([
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]))
    .await;
    bench.write("c.fake", "bad");
    let all = [touched(&bench, "c.fake", None), touched(&bench, "a.fake", None)];
    let found = Aftermath::of(&bench.orchestrator, &all, &Workbench::call()).await;
    assert_eq!(told(&found).0, ["c.fake: ERROR [1:1] this is bad", "a.fake: "]);
    assert!(found.complete);
    std::fs::remove_file(&all[0].path).expect("the file is there");
    let found = Aftermath::of(&bench.orchestrator, &all, &Workbench::call()).await;
    assert_eq!(told(&found).0, ["c.fake: ", "a.fake: "]);
    assert!(!found.complete && found.pending.is_empty());
}

#[tokio::test]
async fn a_file_that_nobody_serves_has_no_aftermath() {
    let bench = bench(json!([])).await;
    bench.write("plain.txt", "bad");
    let found = edit(&bench, "plain.txt", "worse").await;
    assert_eq!(told(&found), (vec!["plain.txt: ".to_owned()], vec![]));
    assert!(found.complete && found.pending.is_empty());
}

#[tokio::test]
async fn a_server_that_sees_files_alone_is_asked_about_no_dependent_and_owes_nothing() {
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
    // Open, and nobody has asked what is wrong with it.
    bench.orchestrator.hover(&bench.path("c.fake"), Workbench::at(0, 0), &Workbench::call()).await.unwrap();
    let found = edit(&bench, "a.fake", "other").await;
    assert!(found.complete, "{found:?}");
    assert_eq!(
        told(&found),
        (vec!["a.fake: ".to_owned()], vec!["c.fake: ERROR [1:4] this is bad".to_owned()])
    );
    let opened = bench.received("fake", "textDocument/didOpen");
    let b = bench.path("b.fake");
    assert!(opened.iter().all(|one| one["params"]["textDocument"]["uri"] != b.uri().as_str()), "{opened:?}");
}
