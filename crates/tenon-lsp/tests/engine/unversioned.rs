//! Publishes without a version: which text they are about.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::GapReason;

fn publish() -> Value {
    json!({ "publish": { "uri": "$uri", "version": "none" } })
}

fn old() -> Value {
    json!({ "publish": {
        "uri": "$uri", "version": "none", "diagnostics": [{ "message": "about the old text" }],
    }})
}

/// A server without threads that publishes while it handles a text, and ignores every request that it does not know.
fn simple(capabilities: Value, rules: &[Value]) -> Value {
    let mut all = vec![
        json!({ "on": "textDocument/didOpen", "do": [{ "wait_ms": 20 }, publish()] }),
        json!({ "on": "textDocument/didChange", "do": [{ "wait_ms": 20 }, publish()] }),
    ];
    all.extend_from_slice(rules);
    json!({ "capabilities": capabilities, "rules": all, "in_order": true, "ignores_unknown": true })
}

/// Checks several texts of one file: every answer is complete and about its text.
async fn texts_are_checked(bench: &Workbench) {
    for (text, wrong) in [("bad", 1), ("one", 0), ("two", 0), ("bad bad", 2), ("bad", 1), ("three", 0)] {
        let answer = bench.check_text("a.fake", Some(text)).await;
        assert_eq!((answer.value.len(), answer.is_complete()), (wrong, true), "{text}: {answer:?}");
    }
}

#[tokio::test]
async fn publish_inside_did_open_and_did_change_counts() {
    let script = simple(
        json!({ "textDocumentSync": 1, "hoverProvider": true }),
        &[json!({ "on": "textDocument/hover", "do": [{ "reply": null }] })],
    );
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    texts_are_checked(&bench).await;
}

#[tokio::test]
async fn server_that_ignores_unknown_requests_is_asked_another_one() {
    let script = simple(
        json!({ "textDocumentSync": 1, "hoverProvider": true, "codeActionProvider": true }),
        &[json!({ "on": "textDocument/codeAction", "do": [{ "reply": [] }] })],
    );
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    texts_are_checked(&bench).await;
    let ignored = bench.received_count("fake", "textDocument/hover");
    assert!(ignored < 8, "an ignored request is not sent again: {ignored}");
}

#[tokio::test]
async fn server_that_answers_nothing_is_judged_by_settling() {
    let script = simple(json!({ "textDocumentSync": 1 }), &[]);
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    texts_are_checked(&bench).await;
    let asked = bench.received_count("fake", "$/tenon/barrier");
    assert!(asked < 8, "an ignored request is not sent again: {asked}");
}

#[tokio::test]
async fn change_before_the_first_check_finds_out_what_the_server_answers() {
    let script = simple(
        json!({ "textDocumentSync": 1, "hoverProvider": true, "definitionProvider": true }),
        &[json!({ "on": "textDocument/definition", "nth": 1, "do": [{ "reply": [] }] })],
    );
    let bench = Workbench::new().file("a.fake", "one").server("fake", script).patient().open().await;
    // Opens the document without a check.
    let path = bench.path("a.fake");
    let asked = bench.orchestrator.definition(&path, Workbench::at(0, 0), &Workbench::call()).await;
    assert!(asked.is_ok());
    texts_are_checked(&bench).await;
}

#[tokio::test]
async fn publish_before_the_first_answer_is_about_the_old_text() {
    // Three requests while the check of the first text waits for silence, then one before and one after the change.
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [publish()] },
        { "on": "textDocument/hover", "nth": 4, "do": [old(), { "reply": null }] },
        { "on": "textDocument/hover", "nth": 5, "do": [{ "reply": null }, { "wait_ms": 300 }, publish()] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.received_count("fake", "textDocument/hover"), 3);
    let answer = bench.check_text("a.fake", Some("two\nbad")).await;
    assert!(answer.is_complete());
    assert_eq!(Workbench::shown(&answer.value), ["1:0 this is bad"]);
}

#[tokio::test]
async fn publish_between_the_answers_is_replaced_by_a_later_one() {
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [publish()] },
        { "on": "textDocument/didChange", "do": [old()] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
        { "on": "textDocument/hover", "nth": 5, "do": [{ "wait_ms": 100 }, publish()] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server_with("fake", script, |entry| entry.settle_ms = 2000)
        .patient()
        .open()
        .await;
    bench.check("a.fake").await;
    let answer = bench.check_text("a.fake", Some("two\nbad")).await;
    assert!(answer.is_complete());
    assert_eq!(Workbench::shown(&answer.value), ["1:0 this is bad"]);
}

#[tokio::test]
async fn publish_that_has_not_settled_is_not_reported_when_time_is_up() {
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [publish()] },
        { "on": "textDocument/didChange", "do": [old()] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server_with("fake", script, |entry| entry.settle_ms = 60_000)
        .option(|options| {
            options.timeouts.check = Duration::from_millis(500);
            options.timeouts.first_check = Duration::from_millis(500);
        })
        .open()
        .await;
    bench.check("a.fake").await;
    let answer = bench.check_text("a.fake", Some("two")).await;
    assert_eq!(answer.gaps[0].why, GapReason::Pending);
    assert_eq!(answer.value, []);
}

#[tokio::test]
async fn server_may_publish_with_and_without_versions() {
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true }, "in_order": true, "rules": [
        { "on": "textDocument/didOpen", "file": "b.fake", "do": [publish()] },
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [publish()] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .file("b.fake", "bad")
        .server("fake", script)
        .patient()
        .open()
        .await;
    assert_eq!(bench.check("b.fake").await.value.len(), 1);
    texts_are_checked(&bench).await;
}

#[tokio::test]
async fn silent_server_is_pending_and_never_clean() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "ignores_unknown": true });
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server("fake", script)
        .option(|options| options.timeouts.first_check = Duration::from_millis(500))
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert_eq!(answer.gaps[0].why, GapReason::Pending);
}
