//! Diagnostics before and after a change.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::Diagnostic;
use tenon_lsp::orchestrator::{ChangeCheck, ChangedText, FileCheck};

const LONG: Duration = Duration::from_secs(600);

fn range(line: u32) -> Value {
    json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 3 } })
}

fn users(files: &[&str]) -> Value {
    files.iter().map(|file| json!({ "uri": format!("$root/{file}"), "range": range(0) })).collect()
}

/// A server that knows the function `fun` on line 1 of `a.fake`, used in these files.
fn server(used_in: &[&str], more: Vec<Value>) -> Value {
    let mut rules = vec![
        json!({ "on": "textDocument/documentSymbol", "do": [{ "reply": [
            { "name": "fun", "kind": 12, "range": range(1), "selectionRange": range(1) },
        ]}]}),
        json!({ "on": "textDocument/references", "do": [{ "reply": users(used_in) }] }),
    ];
    rules.extend(more);
    json!({ "capabilities": { "textDocumentSync": 2, "documentSymbolProvider": true, "referencesProvider": true }, "rules": rules })
}

fn publishes(on: &str) -> Value {
    json!({ "on": on, "do": [{ "publish": { "uri": "$uri" } }] })
}

fn pushing(used_in: &[&str]) -> Value {
    server(used_in, vec![publishes("textDocument/didOpen"), publishes("textDocument/didChange")])
}

fn pulling(used_in: &[&str]) -> Value {
    let mut script = server(used_in, vec![json!({ "on": "textDocument/diagnostic", "do": ["reply_lint"] })]);
    script["capabilities"]["diagnosticProvider"] = json!({ "interFileDependencies": true });
    script
}

const OLD: &str = "bad\nfun\n";
const NEW: &str = "bad\nfunny bad\n";

async fn bench(script: Value) -> Workbench {
    let files = Workbench::new().file("a.fake", NEW).file("b.fake", "bad fun").file("c.fake", "other");
    files.server("fake", script).patient().open().await
}

fn changed(bench: &Workbench, file: &str, before: Option<&str>, after: Option<&str>) -> ChangedText {
    let path = bench.orchestrator.gate().admit_target(file).unwrap();
    ChangedText { path, before: before.map(str::to_owned), after: after.map(str::to_owned) }
}

async fn change(bench: &Workbench, before: Option<&str>) -> ChangeCheck {
    let files = [changed(bench, "a.fake", before, Some(NEW))];
    bench.orchestrator.check_change(&files, LONG, &Workbench::call()).await
}

/// The number of diagnostics before and after.
fn counts(file: &FileCheck) -> Vec<(Option<usize>, Option<usize>)> {
    let count = |items: &Option<Vec<Diagnostic>>| items.as_ref().map(Vec::len);
    file.servers.iter().map(|one| (count(&one.before), count(&one.after))).collect()
}

/// What the server received, as `method file`, without requests for symbols and proofs.
fn order(bench: &Workbench) -> Vec<String> {
    let messages =
        bench.transcript("fake").into_iter().filter_map(|mut line| line.get_mut("in").map(Value::take));
    let shown = ["textDocument/didOpen", "textDocument/didChange", "textDocument/references"];
    messages
        .filter(|message| shown.iter().any(|method| message["method"] == *method))
        .map(|message| {
            let uri = message["params"]["textDocument"]["uri"].as_str().unwrap();
            let method = message["method"].as_str().unwrap().trim_start_matches("textDocument/");
            format!("{method} {}", uri.rsplit('/').next().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn old_text_is_shown_and_queried_before_the_new_one() {
    let bench = bench(pushing(&["a.fake", "b.fake"])).await;
    let check = change(&bench, Some(OLD)).await;
    assert_eq!(
        order(&bench)[..4],
        ["didOpen a.fake", "references a.fake", "didOpen b.fake", "didChange a.fake"]
    );
    assert_eq!(counts(&check.changed[0]), [(Some(1), Some(2))]);
    assert_eq!(check.others.len(), 1, "only files that were checked for this change");
    assert_eq!(counts(&check.others[0]), [(Some(1), Some(1))]);
    assert_eq!((check.complete, check.unchecked, check.pending.len()), (true, 0, 0));
}

#[tokio::test]
async fn stored_diagnostics_are_reused_without_a_request() {
    let bench = bench(pulling(&["b.fake"])).await;
    bench.write("a.fake", OLD);
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    let pulled = || bench.received("fake", "textDocument/diagnostic").len();
    let before = pulled();
    let check = change(&bench, Some(OLD)).await;
    assert_eq!(counts(&check.changed[0]), [(Some(1), Some(2))]);
    assert_eq!(counts(&check.others[0]), [(Some(1), Some(1))]);
    assert!(check.complete);
    assert_eq!(pulled() - before, 2, "only after the change");
}

#[tokio::test]
async fn stored_diagnostics_do_not_count_after_another_file_changed() {
    let bench = bench(pulling(&["b.fake"])).await;
    bench.write("a.fake", OLD);
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    bench.write("c.fake", "other bad");
    let pulled = || bench.received("fake", "textDocument/diagnostic").len();
    let before = pulled();
    assert!(change(&bench, Some(OLD)).await.complete);
    assert_eq!(pulled() - before, 4, "before and after the change");
}

#[tokio::test]
async fn stored_diagnostics_do_not_count_after_another_program_changed_the_edited_file() {
    let bench = bench(pulling(&["b.fake"])).await;
    bench.write("a.fake", OLD);
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    assert!(change(&bench, Some(OLD)).await.complete);
    // As `git checkout` does: what is stored for `b.fake` belongs to the new text.
    bench.write("a.fake", OLD);
    let pulled = || bench.received("fake", "textDocument/diagnostic").len();
    let before = pulled();
    bench.write("a.fake", NEW);
    assert!(change(&bench, Some(OLD)).await.complete);
    assert_eq!(pulled() - before, 4, "before and after the change");
}

#[tokio::test]
async fn second_try_checks_dependents_with_the_tried_text_only() {
    let bench = bench(pulling(&["b.fake"])).await;
    bench.write("a.fake", OLD);
    let files = [changed(&bench, "a.fake", Some(OLD), Some(NEW))];
    let pulled = || {
        let requests = bench.received("fake", "textDocument/diagnostic");
        requests.iter().filter(|request| request.to_string().contains("b.fake")).count()
    };
    let mut counted = Vec::new();
    for _ in 0..2 {
        let before = pulled();
        let tried = bench.orchestrator.try_change(&files, LONG, &Workbench::call()).await.unwrap();
        assert!(tried.check.complete, "{tried:?}");
        counted.push(pulled() - before);
    }
    assert_eq!(counted, [2, 1]);
}

#[tokio::test]
async fn dependents_above_the_limit_are_counted() {
    let names: Vec<String> = (0..210).map(|number| format!("user{number}.fake")).collect();
    let used_in: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut files = Workbench::new().file("a.fake", NEW);
    for name in &used_in {
        files = files.file(name, "bad");
    }
    let bench = files.server("fake", pulling(&used_in)).patient().open().await;
    let check = change(&bench, Some(OLD)).await;
    assert_eq!((check.others.len(), check.unchecked, check.complete), (200, 10, false));
    assert!(check.others.iter().all(|file| counts(file) == [(Some(1), Some(1))]));
}

#[tokio::test]
async fn server_that_dies_with_the_new_text_leaves_the_result_incomplete() {
    let dying =
        vec![publishes("textDocument/didOpen"), json!({ "on": "textDocument/didChange", "do": ["die"] })];
    let bench = bench(server(&["b.fake"], dying)).await;
    let check = change(&bench, Some(OLD)).await;
    assert_eq!(counts(&check.changed[0]), [(Some(1), None)]);
    assert!(!check.complete);
    assert_eq!(check.unchecked, 1, "the dependent was not checked");
}

#[tokio::test]
async fn failed_reference_request_leaves_the_result_incomplete() {
    let mut script = pulling(&[]);
    script["rules"][1]["do"] = json!([{ "refuse": { "code": -32603, "message": "no" } }]);
    let bench = bench(script).await;
    let check = change(&bench, Some(OLD)).await;
    assert_eq!(counts(&check.changed[0]), [(Some(1), Some(2))]);
    assert_eq!(check.others.len(), 1, "files with the name are checked instead");
    assert!(!check.complete);
}

#[tokio::test]
async fn unknown_text_before_leaves_the_result_incomplete() {
    let bench = bench(pulling(&["b.fake"])).await;
    let check = change(&bench, None).await;
    assert_eq!(counts(&check.changed[0]), [(None, Some(2))]);
    assert!(!check.complete);
    let again = change(&bench, None).await;
    assert_eq!(counts(&again.changed[0]), [(Some(2), Some(2))], "the text that was checked last");
}

#[tokio::test]
async fn new_file_has_no_diagnostics_before() {
    let bench = bench(pulling(&[])).await;
    let check = change(&bench, Some("")).await;
    assert_eq!(counts(&check.changed[0]), [(Some(0), Some(2))]);
    assert!(check.complete);
}

#[tokio::test]
async fn users_of_a_deleted_file_are_checked() {
    let bench = bench(pulling(&["b.fake"])).await;
    std::fs::remove_file(bench.root().join("a.fake")).unwrap();
    let files = [changed(&bench, "a.fake", Some(OLD), None)];
    let check = bench.orchestrator.check_change(&files, LONG, &Workbench::call()).await;
    assert_eq!(counts(&check.changed[0]), [(Some(1), Some(0))]);
    assert_eq!(counts(&check.others[0]), [(Some(1), Some(1))]);
    assert!(check.complete);
}

#[tokio::test]
async fn diagnostics_of_unrelated_servers_are_not_reported() {
    let other = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        publishes("textDocument/didOpen"), publishes("textDocument/didChange"),
    ]});
    let files = Workbench::new().file("a.fake", NEW).file("b.fake", "good").file("old.other", "bad");
    let bench = files
        .server("fake", pushing(&["b.fake"]))
        .server_with("other", other, |entry| {
            entry.extensions = [(".other".to_owned(), "other".to_owned())].into_iter().collect();
        })
        .patient()
        .open()
        .await;
    assert_eq!(bench.check("old.other").await.value.len(), 1);
    let check = change(&bench, Some(OLD)).await;
    assert!(check.complete);
    assert_eq!(
        check.others.iter().map(|file| bench.orchestrator.gate().display(&file.path)).collect::<Vec<_>>(),
        ["b.fake"]
    );
}

/// A server whose hover shows the type of `fun`, which `a.fake` declares with a body on line 2.
fn with_types(old: &str, new: &str) -> Value {
    let hover = |text: &str, value: &str| json!({ "on": "textDocument/hover", "text": text, "do": [{ "reply": { "contents": value } }] });
    let mut script = pulling(&["b.fake"]);
    let body = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 9 } });
    script["rules"][0]["do"] =
        json!([{ "reply": [{ "name": "fun", "kind": 12, "range": body, "selectionRange": range(1) }] }]);
    script["capabilities"]["hoverProvider"] = json!(true);
    let rules = script["rules"].as_array_mut().unwrap();
    rules.extend([hover("old", old), hover("new", new)]);
    script
}

async fn change_body(script: Value) -> (Workbench, ChangeCheck) {
    let bench = bench(script).await;
    let (before, after) = ("bad\nfun() {\n old", "bad\nfun() {\n new");
    bench.write("a.fake", after);
    let files = [changed(&bench, "a.fake", Some(before), Some(after))];
    let check = bench.orchestrator.check_change(&files, LONG, &Workbench::call()).await;
    (bench, check)
}

#[tokio::test]
async fn body_with_the_same_type_has_no_dependents() {
    let (bench, check) = change_body(with_types("fun: int", "fun: int")).await;
    assert!(check.complete);
    assert!(check.others.is_empty());
    assert_eq!(bench.received_count("fake", "textDocument/references"), 0);
}

#[tokio::test]
async fn body_with_another_type_has_dependents_with_diagnostics_before() {
    let (bench, check) = change_body(with_types("fun: int", "fun: str")).await;
    assert!(check.complete);
    assert_eq!(counts(&check.others[0]), [(Some(1), Some(1))], "the old text was shown once more");
    let restored = || {
        let last = bench.received("fake", "textDocument/didChange").pop();
        last.is_some_and(|last| last["params"]["contentChanges"][0]["text"] == "new")
    };
    Workbench::until("the server gets the new text again", restored).await;
}
