//! `didSave`, and checks that a server runs on the saved files.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::GapReason;
use tenon_lsp::orchestrator::{ChangedText, FileCheck};
use tenon_servers::registry::{OnSave, ReadinessRule, ServerEntry};

fn progress(kind: &str) -> Value {
    json!({ "progress": { "token": "fake/check/0", "kind": kind } })
}

fn found(messages: &[&str]) -> Value {
    let items: Vec<Value> =
        messages.iter().map(|message| json!({ "message": message, "source": "check" })).collect();
    json!({ "publish": { "uri": "$uri", "diagnostics": items } })
}

/// Pulled diagnostics are about the text; the pushed ones come from a check that runs when the server is ready and after a
/// save.
fn checker(rules: &[Value]) -> Value {
    let status =
        json!({ "notify": { "method": "experimental/serverStatus", "params": { "quiescent": true } } });
    let register = json!({ "request": { "method": "client/registerCapability", "params": { "registrations": [
        { "id": "s", "method": "textDocument/didSave", "registerOptions": {
            "includeText": false, "documentSelector": [{ "pattern": "**/*.fake" }] } },
        { "id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": {
            "watchers": [{ "globPattern": "**/*.fake" }] } },
    ]}}});
    let mut all = vec![
        json!({ "on": "initialized", "do": [register, status, { "wait_ms": 50 }, progress("begin"), { "wait_ms": 50 }, progress("end")] }),
        json!({ "on": "textDocument/diagnostic", "do": ["reply_lint"] }),
    ];
    all.extend_from_slice(rules);
    json!({
        "capabilities": { "textDocumentSync": { "openClose": true, "change": 2 }, "hoverProvider": true,
            "diagnosticProvider": { "interFileDependencies": true } },
        "rules": all,
    })
}

fn checks(entry: &mut ServerEntry) {
    entry.ready = Some(ReadinessRule::ServerStatus { caches: None });
    entry.on_save = Some(OnSave {
        sources: vec!["check".to_owned()],
        progress: Some("fake/check/".to_owned()),
        grace_ms: 5000,
        failure: Some("check failed".to_owned()),
    });
}

#[tokio::test]
async fn check_waits_until_the_saved_files_were_checked() {
    let script = checker(&[
        json!({ "on": "textDocument/didSave", "nth": 1, "do": [
            { "wait_ms": 100 }, progress("begin"), { "wait_ms": 300 }, progress("end"), found(&["moved"])] }),
        // The list stays the same, so it is not published again.
        json!({ "on": "textDocument/didSave", "nth": 2, "do": [progress("begin"), { "wait_ms": 100 }, progress("end")] }),
        json!({ "on": "textDocument/didSave", "nth": 3, "do": [
            progress("begin"), { "wait_ms": 100 }, found(&[]), progress("end")] }),
    ]);
    let bench =
        Workbench::new().file("a.fake", "one").server_with("fake", script, checks).patient().open().await;
    let first = bench.check("a.fake").await;
    assert_eq!((first.value.len(), first.is_complete()), (0, true), "{first:?}");
    for (text, expected) in
        [("two", vec!["0:0 moved"]), ("three", vec!["0:0 moved"]), ("bad", vec!["0:0 this is bad"])]
    {
        bench.write("a.fake", text);
        let answer = bench.check("a.fake").await;
        assert!(answer.is_complete(), "{text}: {answer:?}");
        assert_eq!(Workbench::shown(&answer.value), expected, "{text}");
    }
    assert_eq!(bench.received("fake", "textDocument/didSave").len(), 3);
}

#[tokio::test]
async fn running_check_is_pending_and_its_old_findings_are_left_out() {
    let script = checker(&[
        json!({ "on": "textDocument/didSave", "nth": 1, "do": [
            progress("begin"), found(&["moved"]), progress("end")] }),
        json!({ "on": "textDocument/didSave", "nth": 2, "do": [progress("begin"), found(&["moved"])] }),
    ]);
    let bench = Workbench::new()
        .file("a.fake", "one")
        .server_with("fake", script, checks)
        .option(|options| options.timeouts.check = Duration::from_secs(2))
        .open()
        .await;
    bench.check("a.fake").await;
    bench.write("a.fake", "two");
    assert_eq!(Workbench::shown(&bench.check("a.fake").await.value), ["0:0 moved"]);
    bench.write("a.fake", "bad");
    let answer = bench.check("a.fake").await;
    assert_eq!(Workbench::shown(&answer.value), ["0:0 this is bad"], "the check may have nothing to say now");
    assert_eq!(answer.gaps[0].why, GapReason::Pending);
}

/// The check that runs when the server is ready reads the new text from the disk.
#[tokio::test]
async fn first_check_of_a_server_that_a_change_starts_is_not_the_state_before() {
    let script = checker(&[
        json!({ "on": "textDocument/didOpen", "do": [found(&["moved"])] }),
        json!({ "on": "textDocument/didSave", "do": [progress("begin"), found(&["moved"]), progress("end")] }),
    ]);
    let files = Workbench::new().file("a.fake", "one");
    let bench = files.server_with("fake", script, checks).patient().open().await;
    bench.write("a.fake", "two");
    let changed = ChangedText {
        path: bench.path("a.fake"),
        before: Some("one".to_owned()),
        after: Some("two".to_owned()),
    };
    let check =
        bench.orchestrator.check_change(&[changed], Duration::from_secs(60), &Workbench::call()).await;
    assert!(!check.complete && !check.pending.is_empty(), "{check:?}");
    assert_eq!(check.changed[0].servers[0].before, None, "{check:?}");
}

#[tokio::test]
async fn change_is_compared_with_the_last_check_of_the_saved_files() {
    let other = |messages: &[&str]| {
        let items: Vec<Value> =
            messages.iter().map(|message| json!({ "message": message, "source": "check" })).collect();
        json!({ "publish": { "uri": "b.fake", "diagnostics": items } })
    };
    let script = checker(&[json!({ "on": "textDocument/didSave", "do": [
        progress("begin"), found(&["moved"]), other(&["not found"]), progress("end")] })]);
    let files = Workbench::new().file("a.fake", "one").file("b.fake", "other");
    let bench = files.server_with("fake", script, checks).patient().open().await;
    bench.check("b.fake").await;
    bench.write("a.fake", "two");
    let changed = ChangedText {
        path: bench.path("a.fake"),
        before: Some("one".to_owned()),
        after: Some("two".to_owned()),
    };
    let check =
        bench.orchestrator.check_change(&[changed], Duration::from_secs(60), &Workbench::call()).await;
    assert!(check.complete, "{check:?}");
    let lists = |file: &FileCheck| {
        let shown = |list: &Option<Vec<_>>| Workbench::shown(list.as_ref().unwrap());
        (shown(&file.servers[0].before), shown(&file.servers[0].after))
    };
    assert_eq!(lists(&check.changed[0]), (vec![], vec!["0:0 moved".to_owned()]));
    assert_eq!(check.others.len(), 1, "a file that no reference leads to: {check:?}");
    assert_eq!(lists(&check.others[0]), (vec![], vec!["0:0 not found".to_owned()]));
}

#[tokio::test]
async fn change_is_incomplete_if_the_last_check_of_the_saved_files_is_outdated() {
    let script =
        checker(&[json!({ "on": "textDocument/didSave", "do": [progress("begin"), progress("end")] })]);
    let files = Workbench::new().file("a.fake", "one").file("b.fake", "other");
    let bench = files.server_with("fake", script, checks).patient().open().await;
    // The diagnostics of the text before are stored.
    assert!(bench.check("a.fake").await.is_complete());
    let change = |before: &str, after: &str| ChangedText {
        path: bench.path("a.fake"),
        before: Some(before.to_owned()),
        after: Some(after.to_owned()),
    };
    let check = async |changed| {
        let call = Workbench::call();
        bench.orchestrator.check_change(&[changed], Duration::from_secs(60), &call).await
    };
    // Whether the last check includes this change is not known, so what it found in `b.fake` does not count.
    bench.write("b.fake", "another");
    bench.write("a.fake", "two");
    let outdated = check(change("one", "two")).await;
    assert!(!outdated.complete, "{outdated:?}");
    assert_eq!(outdated.pending.len(), 1);
    bench.write("a.fake", "three");
    let next = check(change("two", "three")).await;
    assert!(next.complete, "{next:?}");
}

#[tokio::test]
async fn check_that_could_not_run_found_nothing_and_proves_nothing() {
    let status = |message: Value| {
        json!({ "notify": { "method": "experimental/serverStatus", "params": {
            "quiescent": true, "health": "warning", "message": message } } })
    };
    let script = checker(&[
        json!({ "on": "textDocument/didSave", "nth": 1, "do": [
            progress("begin"), progress("end"), status(json!("check failed to start:\nerror: no such package"))] }),
        json!({ "on": "textDocument/didSave", "nth": 2, "do": [progress("begin"), status(Value::Null), progress("end")] }),
    ]);
    let bench =
        Workbench::new().file("a.fake", "one").server_with("fake", script, checks).patient().open().await;
    bench.check("a.fake").await;
    bench.write("a.fake", "two");
    let failed = bench.check("a.fake").await;
    let why = GapReason::Refused("check failed: error: no such package".to_owned());
    assert_eq!(failed.gaps[0].why, why, "{failed:?}");
    bench.write("a.fake", "three");
    assert!(bench.check("a.fake").await.is_complete());
}

#[tokio::test]
async fn unsaved_text_is_never_called_checked() {
    let script = checker(&[json!({ "on": "textDocument/didSave", "do": [
        progress("begin"), found(&["moved"]), progress("end")] })]);
    let bench =
        Workbench::new().file("a.fake", "one").server_with("fake", script, checks).patient().open().await;
    bench.check("a.fake").await;
    let answer = bench.check_text("a.fake", Some("bad")).await;
    assert_eq!(Workbench::shown(&answer.value), ["0:0 this is bad"]);
    assert!(matches!(answer.gaps[0].why, GapReason::Refused(_)), "{answer:?}");
    assert!(bench.received("fake", "textDocument/didSave").is_empty());
    // The same text is now on disk: the server has it already, but has to be told.
    bench.write("a.fake", "bad");
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete(), "{answer:?}");
    assert_eq!(Workbench::shown(&answer.value), ["0:0 moved", "0:0 this is bad"]);
    assert_eq!(bench.received("fake", "textDocument/didSave").len(), 1);
}

#[tokio::test]
async fn change_of_another_file_on_disk_causes_a_new_check() {
    let script = checker(&[json!({ "on": "textDocument/didSave", "do": [
        progress("begin"), found(&["moved"]), progress("end")] })]);
    let bench = Workbench::new()
        .file("a.fake", "one")
        .file("b.fake", "one")
        .server_with("fake", script, checks)
        .patient()
        .open()
        .await;
    assert_eq!(bench.check("a.fake").await.value.len(), 0);
    bench.write("b.fake", "two");
    assert_eq!(Workbench::shown(&bench.check("a.fake").await.value), ["0:0 moved"]);
    bench.check("a.fake").await;
    assert_eq!(bench.received("fake", "textDocument/didSave").len(), 1, "nothing changed since");
}

#[tokio::test]
async fn saved_text_is_included_if_the_server_asks_for_it() {
    let script = json!({ "capabilities": { "textDocumentSync": { "change": 1, "save": { "includeText": true } } }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didSave", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new().file("a.fake", "one").server("fake", script).patient().open().await;
    bench.check("a.fake").await;
    bench.write("a.fake", "bad");
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    let saves = bench.received("fake", "textDocument/didSave");
    assert_eq!((saves.len(), &saves[0]["params"]["text"]), (1, &json!("bad")));
}

#[tokio::test]
async fn server_that_publishes_only_when_saved_is_saved_to() {
    // fortls: full synchronisation as a number, publishes when a document is opened or saved, without versions.
    let publish = json!({ "publish": { "uri": "$uri", "version": "none" } });
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true }, "in_order": true, "rules": [
        { "on": "textDocument/didOpen", "do": [publish] },
        { "on": "textDocument/didSave", "do": [publish] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "one")
        .server_with("fake", script, |entry| {
            entry.on_save = Some(OnSave { sources: Vec::new(), progress: None, grace_ms: 0, failure: None });
        })
        .patient()
        .open()
        .await;
    for (text, wrong) in [("one", 0), ("bad", 1), ("two", 0), ("bad bad", 2)] {
        bench.write("a.fake", text);
        let answer = bench.check("a.fake").await;
        assert_eq!((answer.value.len(), answer.is_complete()), (wrong, true), "{text}: {answer:?}");
    }
}

#[tokio::test]
async fn server_that_reports_an_error_about_itself_is_never_clean() {
    let status = json!({ "notify": { "method": "experimental/serverStatus", "params": {
        "quiescent": true, "health": "error", "message": "Failed to load workspaces.\ndetails" } } });
    let script = json!({ "capabilities": { "textDocumentSync": 2, "diagnosticProvider": {} }, "rules": [
        { "on": "initialized", "do": [status] }, { "on": "textDocument/diagnostic", "do": ["reply_lint"] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "fine")
        .server_with("fake", script, |entry| entry.ready = Some(ReadinessRule::ServerStatus { caches: None }))
        .patient()
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert_eq!(answer.gaps[0].why, GapReason::Refused("Failed to load workspaces.".to_owned()));
}
