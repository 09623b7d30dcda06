//! Diagnostics belong to the current text, and a check waits until they do.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tenon_fake_lsp::Workbench;
use tenon_fake_lsp::scripts::linter;
use tenon_lsp::CallContext;
use tenon_lsp::model::GapReason;
use tenon_servers::registry::ReadinessRule;

fn shown(answer: &tenon_lsp::model::LspAnswer<Vec<tenon_lsp::model::Diagnostic>>) -> Vec<String> {
    Workbench::shown(&answer.value)
}

#[tokio::test]
async fn clean_file_is_complete_before_the_timeout() {
    let bench = Workbench::new().file("a.fake", "fine").server("fake", linter()).patient().open().await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete() && answer.value.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn early_empty_publish_does_not_end_the_check() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [] } },
        { "wait_ms": 100 },
        { "publish": { "uri": "$uri", "diagnostics": [] } },
        { "wait_ms": 100 },
        { "publish": { "uri": "$uri" } },
    ]}]});
    let bench = Workbench::new()
        .file("a.fake", "so bad")
        .server_with("fake", script, |entry| entry.settle_ms = 2000)
        .patient()
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete());
    assert_eq!(shown(&answer), ["0:3 this is bad"]);
}

#[tokio::test]
async fn crash_ends_the_wait() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 50 }, { "exit": 7 }] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    let answer = bench.check("a.fake").await;
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    assert!(answer.value.is_empty());
}

#[tokio::test]
async fn late_publish_for_an_old_version_is_ignored() {
    let older = json!({ "publish": {
        "uri": "$uri", "version": { "exactly": 1 }, "diagnostics": [{ "message": "older still" }],
    }});
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [
            { "publish": { "uri": "$uri", "diagnostics": [] } },
            { "wait_ms": 300 },
            { "publish": { "uri": "$uri", "diagnostics": [{ "line": 0, "message": "about the old text" }] } },
        ]},
        { "on": "textDocument/didChange", "do": [
            older, { "wait_ms": 600 }, { "publish": { "uri": "$uri" } }, older,
        ]},
    ]});
    let bench = Workbench::new().file("a.fake", "old").server("fake", script).patient().open().await;
    assert!(bench.check("a.fake").await.is_complete());
    let answer = bench.check_text("a.fake", Some("new, bad")).await;
    assert!(answer.is_complete());
    assert_eq!(shown(&answer), ["0:5 this is bad"]);
}

#[tokio::test]
async fn timed_out_check_returns_known_diagnostics_and_names_pending_servers() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server("silent", script)
        .server("fine", linter())
        .option(|options| options.timeouts.check = Duration::from_millis(300))
        .open()
        .await;
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    let answer = bench.check_text("a.fake", Some("good")).await;
    assert_eq!(answer.value, [], "diagnostics of the old text are dropped");
    assert_eq!(answer.pending().map(|id| id.as_str()).collect::<Vec<_>>(), ["silent"]);
}

#[tokio::test]
async fn pulled_diagnostics_are_merged_with_pushed_ones() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "diagnosticProvider": { "identifier": "me" } }, "rules": [
        { "on": "textDocument/diagnostic", "nth": 1, "do": [{ "refuse": { "code": -32802, "message": "again" } }] },
        { "on": "textDocument/diagnostic", "nth": 2, "do": [{ "refuse": { "code": -32801, "message": "modified" } }] },
        { "on": "textDocument/diagnostic", "from": 3, "do": [
            { "publish": { "uri": "$uri", "diagnostics": [{ "line": 0, "message": "pushed" }] } }, "reply_lint",
        ]},
    ]});
    let bench = Workbench::new().file("a.fake", "bad\nbad").server("fake", script).patient().open().await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete());
    assert_eq!(shown(&answer), ["0:0 pushed", "0:0 this is bad", "1:0 this is bad"]);
    assert_eq!(bench.received("fake", "textDocument/diagnostic")[2]["params"]["identifier"], "me");
}

#[tokio::test]
async fn server_may_register_for_pull_while_a_push_is_awaited() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 50 }, { "request": {
            "method": "client/registerCapability",
            "params": { "registrations": [{ "id": "1", "method": "textDocument/diagnostic", "registerOptions": {} }] },
        }}]},
        { "on": "textDocument/diagnostic", "do": ["reply_lint"] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    assert_eq!(shown(&bench.check("a.fake").await), ["0:0 this is bad"]);
}

#[tokio::test]
async fn publish_before_readiness_does_not_end_the_check() {
    let progress = |kind: &str| json!({ "progress": { "token": "load", "kind": kind } });
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        progress("begin"), { "publish": { "uri": "$uri", "diagnostics": [] } }, { "wait_ms": 400 }, progress("end"),
        { "wait_ms": 20 }, { "publish": { "uri": "$uri" } },
    ]}]});
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server_with("fake", script, |entry| entry.ready = Some(ReadinessRule::Progress { grace_ms: 5000 }))
        .patient()
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete());
    assert_eq!(shown(&answer), ["0:0 this is bad"]);
}

#[tokio::test]
async fn newer_edit_supersedes_a_pending_check() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let bench = Workbench::new().file("a.fake", "one").server("fake", script).patient().open().await;
    let first = bench.check("a.fake");
    let second = async {
        while bench.received("fake", "textDocument/didOpen").is_empty() {
            tokio::task::yield_now().await;
        }
        bench.check_text("a.fake", Some("bad two")).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.gaps[0].why, GapReason::Pending);
    assert_eq!(first.value, []);
    assert!(second.is_complete());
    assert_eq!(second.value.len(), 1);
}

#[tokio::test]
async fn cancelled_check_returns_known_diagnostics_at_once() {
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server("silent", json!({ "capabilities": { "textDocumentSync": 1 } }))
        .server("fine", linter())
        .patient()
        .open()
        .await;
    let call = CallContext::within(Duration::from_secs(600));
    let cancel = call.cancel.clone();
    let path = bench.path("a.fake");
    let check = bench.orchestrator.check(&path, None, &call);
    let cancelling = async {
        while bench.orchestrator.diagnostics().await.is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(check, cancelling);
    let answer = answer.unwrap();
    assert_eq!(shown(&answer), ["0:0 this is bad"]);
    assert_eq!(answer.gaps[0].server.as_str(), "silent");
}

#[tokio::test]
async fn fifty_concurrent_checks_share_one_server() {
    let mut builder = Workbench::new().server("fake", linter()).patient();
    for number in 0..50 {
        builder = builder.file(&format!("f{number}.fake"), &format!("{}bad", "\n".repeat(number)));
    }
    let bench = builder.open().await;
    let names: Vec<String> = (0..50).map(|number| format!("f{number}.fake")).collect();
    let answers = join_all(names.iter().map(|name| bench.check(name))).await;
    for (number, answer) in answers.iter().enumerate() {
        assert!(answer.is_complete());
        assert_eq!(shown(answer), [format!("{number}:0 this is bad")]);
    }
    let starts = bench.transcript("fake").iter().filter(|line| line.get("started").is_some()).count();
    assert_eq!(starts, 1, "the server starts once");
}

#[tokio::test]
async fn ten_concurrent_checks_of_a_silent_server_take_one_timeout() {
    let mut builder = Workbench::new()
        .server("fake", json!({ "capabilities": { "textDocumentSync": 1 } }))
        .option(|options| options.timeouts.first_check = Duration::from_millis(1500));
    for number in 0..10 {
        builder = builder.file(&format!("f{number}.fake"), "bad");
    }
    let bench = builder.open().await;
    let names: Vec<String> = (0..10).map(|number| format!("f{number}.fake")).collect();
    // Sequential checks would take fifteen seconds.
    let all = join_all(names.iter().map(|name| bench.check(name)));
    let answers = tokio::time::timeout(Duration::from_secs(10), all).await.unwrap();
    assert!(answers.iter().all(|answer| answer.pending().count() == 1));
}

#[tokio::test]
async fn empty_text_from_the_caller_replaces_the_text_on_disk() {
    let bench = Workbench::new().file("a.fake", "bad").server("fake", linter()).patient().open().await;
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
    assert_eq!(bench.check_text("a.fake", Some("")).await.value.len(), 0);
    assert_eq!(bench.check_text("a.fake", Some("bad bad")).await.value.len(), 2);
    assert_eq!(bench.check("a.fake").await.value.len(), 1, "without a text the disk is read");
}

#[tokio::test]
async fn edit_on_disk_is_sent_with_the_next_check_of_any_file() {
    let bench = Workbench::new()
        .file("a.fake", "good")
        .file("b.fake", "good")
        .server("fake", linter())
        .patient()
        .open()
        .await;
    bench.check("a.fake").await;
    bench.check("b.fake").await;
    bench.write("a.fake", "now bad");
    assert_eq!(bench.check("b.fake").await.value, []);
    // The check of the other file updated the open document.
    assert_eq!(bench.received("fake", "textDocument/didChange").len(), 1);
    assert_eq!(bench.check("a.fake").await.value.len(), 1);
}

#[tokio::test]
async fn check_of_an_open_document_needs_no_second_publish() {
    let script = json!({ "capabilities": { "textDocumentSync": 1, "hoverProvider": true, "definitionProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 100 }, { "publish": { "uri": "$uri", "version": "none" } }] },
        { "on": "textDocument/definition", "do": ["reply_here"] },
        { "on": "textDocument/hover", "do": [{ "reply": null }] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    let path = bench.path("a.fake");
    for _ in 0..2 {
        let asked = bench.orchestrator.definition(&path, Workbench::at(0, 0), &Workbench::call()).await;
        assert!(asked.is_ok());
        while bench.orchestrator.diagnostics().await.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(shown(&bench.check("a.fake").await), ["0:0 this is bad"]);
    }
}

#[tokio::test]
async fn text_that_differs_from_disk_moves_the_text_epoch() {
    use tenon_contract::epoch::Epoch;

    let bench = Workbench::new().file("a.fake", "one").server("fake", linter()).patient().open().await;
    let epoch = || bench.orchestrator.epochs().get(Epoch::Text);
    bench.check("a.fake").await;
    let start = epoch();
    bench.check("a.fake").await;
    bench.check_text("a.fake", Some("one")).await;
    assert_eq!(epoch(), start, "passing the text on disk is not a change");
    bench.check_text("a.fake", Some("two")).await;
    let shown = epoch();
    assert!(shown > start);
    bench.check_text("a.fake", Some("two")).await;
    assert_eq!(epoch(), shown, "passing the same text again is not a change");
    bench.check("a.fake").await;
    assert!(epoch() > shown, "returning to the text on disk is a change");
}

#[tokio::test]
async fn server_that_does_not_repeat_an_empty_list_gets_the_document_reopened() {
    // typescript-language-server publishes nothing for a change that leaves a clean text clean.
    let script = json!({ "capabilities": { "textDocumentSync": { "openClose": true, "change": 2 } }, "rules": [
        { "on": "textDocument/didOpen", "do": [
            { "wait_ms": 50 }, { "publish": { "uri": "$uri", "version": "none" } },
        ]},
        { "on": "textDocument/didClose", "do": [
            { "publish": { "uri": "$uri", "version": "none", "diagnostics": [] } },
        ]},
    ]});
    let bench = Workbench::new()
        .file("a.fake", "one")
        .server_with("fake", script, |entry| entry.reopens = true)
        .patient()
        .open()
        .await;
    for (text, wrong) in [("one", 0), ("two", 0), ("three", 0), ("bad", 1), ("four", 0), ("bad bad", 2)] {
        let answer = bench.check_text("a.fake", Some(text)).await;
        assert_eq!((answer.value.len(), answer.is_complete()), (wrong, true), "{text}");
    }
    assert!(bench.received("fake", "textDocument/didChange").is_empty());
    let versions: Vec<_> = bench
        .received("fake", "textDocument/didOpen")
        .iter()
        .map(|one| one["params"]["textDocument"]["version"].as_i64().unwrap())
        .collect();
    assert!(versions.is_sorted() && versions.len() == 6, "{versions:?}");
}

#[tokio::test]
async fn check_waits_for_a_server_that_is_busy_past_its_settle_time() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true }, "rules": [
        { "on": "textDocument/didOpen", "do": [
            { "publish": { "uri": "$uri", "diagnostics": [] } }, { "wait_ms": 700 }, { "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/hover", "nth": 1, "do": ["reply_word"] },
        { "on": "textDocument/hover", "from": 2, "do": [{ "wait_ms": 900 }, "reply_word"] },
    ]});
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    let answer = bench.check("a.fake").await;
    assert_eq!(shown(&answer), ["0:0 this is bad"]);
    assert!(answer.is_complete());
}

#[tokio::test]
async fn same_diagnostic_of_two_servers_is_reported_once() {
    let saying = |source: &str| {
        json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": "textDocument/didOpen", "do": [
            { "publish": { "uri": "$uri", "diagnostics": [{ "line": 0, "message": "unused", "source": source }] } },
        ]}]})
    };
    let bench = Workbench::new()
        .file("a.fake", "so bad")
        .server("one", saying("one"))
        .server("two", saying("two"))
        .patient()
        .open()
        .await;
    let answer = bench.check("a.fake").await;
    assert!(answer.is_complete() && answer.servers.len() == 2, "{answer:?}");
    assert_eq!(shown(&answer), ["0:0 unused"]);
}
