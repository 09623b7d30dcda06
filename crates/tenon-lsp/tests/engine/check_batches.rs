//! Checks of many files: a file that a server cannot check is named, and the others are checked.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::{Builder, Workbench};
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::workspace_check::{self, CheckReport, Verdict};

fn brief(builder: Builder) -> Builder {
    builder.option(|options| {
        options.timeouts.check = Duration::from_millis(200);
        options.timeouts.first_check = Duration::from_secs(5);
        options.timeouts.stalled = Duration::from_millis(600);
        options.timeouts.alone = Duration::from_secs(1);
    })
}

async fn check(bench: &Workbench, files: &[&str]) -> CheckReport {
    let files: Vec<_> = files.iter().map(|file| bench.path(file)).collect();
    let severities = BTreeSet::from([Severity::Error]);
    let call = CallContext::within(Duration::from_secs(60));
    workspace_check::run(&bench.orchestrator, &files, &severities, &call, &mut |_| {}).await
}

fn missing(report: &CheckReport) -> Vec<String> {
    let of = |file: &workspace_check::CheckedFile| {
        file.missing.iter().map(|one| format!("{}: {one}", file.file)).collect::<Vec<_>>()
    };
    report.files.iter().flat_map(of).collect()
}

fn publishing(rules: &[Value]) -> Value {
    let mut all =
        vec![json!({ "on": "textDocument/didOpen", "text": "ok", "do": [{ "publish": { "uri": "$uri" } }] })];
    all.extend_from_slice(rules);
    json!({ "capabilities": { "textDocumentSync": 1 }, "rules": all })
}

#[tokio::test]
async fn silent_server_is_incomplete_and_never_clean() {
    let builder = Workbench::new().file("a.fake", "x").file("b.fake", "x").server("fake", publishing(&[]));
    let bench = brief(builder).open().await;
    let report = check(&bench, &["a.fake", "b.fake"]).await;
    assert_eq!(report.verdict(), Verdict::Incomplete);
    assert_eq!(
        missing(&report),
        ["a.fake: fake: did not finish in time", "b.fake: fake: did not finish in time"]
    );
    assert_eq!(report.checked, 0);
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn file_without_an_answer_does_not_hide_the_findings_of_others() {
    let builder = Workbench::new().file("a.fake", "ok bad").file("b.fake", "x").file("c.fake", "ok");
    let bench = brief(builder.server("fake", publishing(&[]))).open().await;
    let report = check(&bench, &["a.fake", "b.fake", "c.fake"]).await;
    assert_eq!((report.verdict(), report.checked), (Verdict::Findings, 2));
    assert_eq!(missing(&report), ["b.fake: fake: did not finish in time"]);
    assert!(!report.is_complete());
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn server_that_ends_on_one_file_is_started_again_for_the_others() {
    let poison = json!({ "on": "textDocument/didOpen", "text": "poison", "do": [{ "exit": 1 }] });
    let mut builder = Workbench::new().file("poison.fake", "poison");
    let names: Vec<String> = (0..50).map(|number| format!("{number:02}.fake")).collect();
    for name in &names {
        builder = builder.file(name, "ok bad");
    }
    let bench = builder.server("fake", publishing(&[poison])).open().await;
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.push("poison.fake");
    let report = check(&bench, &all).await;
    assert_eq!(missing(&report), ["poison.fake: fake: ended while it checked this file"]);
    assert_eq!((report.checked, report.findings().count()), (50, 50));
    // It is skipped from then on, until it changes.
    let again = bench.check("poison.fake").await;
    assert_eq!(again.gaps.len(), 1);
    assert!(bench.check("00.fake").await.is_complete());
    bench.write("poison.fake", "ok bad");
    let changed = bench.check("poison.fake").await;
    assert!(changed.is_complete(), "{:?}", changed.gaps);
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn server_that_ends_on_every_file_is_not_started_forever() {
    let poison = json!({ "on": "textDocument/didOpen", "do": [{ "exit": 1 }] });
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}.fake")).collect();
    let builder = names.iter().fold(Workbench::new(), |builder, name| builder.file(name, "ok"));
    let bench = builder.server("fake", publishing(&[poison])).open().await;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let report = check(&bench, &all).await;
    assert_eq!((report.verdict(), report.checked), (Verdict::Incomplete, 0));
    assert_eq!(missing(&report).len(), 40);
    let started = bench.transcript("fake").iter().filter(|line| line.get("started").is_some()).count();
    assert!(started <= 17, "{started}");
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn unreadable_files_are_missing_with_the_reason() {
    let bench = Workbench::new().file("a.fake", "ok").server("fake", publishing(&[])).open().await;
    std::fs::write(bench.root().join("binary.fake"), [0xff, 0x00]).unwrap();
    std::fs::write(bench.root().join("large.fake"), vec![b'x'; 9 << 20]).unwrap();
    let report = check(&bench, &["a.fake", "binary.fake", "large.fake"]).await;
    assert_eq!((report.verdict(), report.checked), (Verdict::Incomplete, 1));
    assert_eq!(missing(&report).len(), 2, "{:?}", missing(&report));
    bench.orchestrator.shutdown().await;
}

#[tokio::test]
async fn file_that_a_server_forgot_is_opened_again() {
    let forgetful = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didOpen", "file": "b.fake", "from": 2, "do": [{ "publish": { "uri": "$uri" } }] },
    ] });
    let builder = Workbench::new().file("a.fake", "bad").file("b.fake", "bad").server("fake", forgetful);
    let bench = brief(builder).open().await;
    let report = check(&bench, &["a.fake", "b.fake"]).await;
    assert_eq!(missing(&report), Vec::<String>::new());
    assert_eq!((report.checked, report.findings().count()), (2, 2));
    bench.orchestrator.shutdown().await;
}
