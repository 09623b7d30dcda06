//! §4.5: late answers, retries, and work that identical calls share.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_code::{CodeError, IndexingProgress};
use tenon_fake_lsp::scripts::{location, reply, script, slow_reply, symbol};
use tenon_fake_lsp::{ReadinessRule, Workbench};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, HOVER, REFERENCES, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
};

use crate::stage::{Stage, server_id};

#[test]
fn s4_5_late_answer_is_an_error_and_the_retry_gets_it() {
    let rules = [
        slow_reply("textDocument/definition", 600, json!([location("$root/a.fake", [0, 0, 0, 1])])),
        slow_reply("workspace/symbol", 600, json!([symbol("s", 12, "$root/a.fake", [0, 0, 0, 1])])),
    ];
    let builder = Workbench::new().file("a.fake", "x").server("fake", script(&rules));
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(250));
    for (tool, arguments, method) in [
        (DEFINITION, stage.at("a.fake", 0, 0), "textDocument/definition"),
        (WORKSPACE_SYMBOLS, json!({ "query": "s" }), "workspace/symbol"),
    ] {
        // A server that has not started yet would be the reason for lateness, so wait until it answers.
        stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
        assert_eq!(stage.ask(tool, arguments.clone()), Err(CodeError::Timeout));
        let payload = stage.payload(tool, arguments);
        assert!(payload["summary"].as_str().unwrap().contains('1'), "{payload}");
        assert_eq!(stage.bench.received("fake", method).len(), 1, "the retry joins the request in flight");
    }
}

#[test]
fn s4_5_server_that_is_not_ready_gives_indexing_not_a_partial_list() {
    let mut rules = vec![
        json!({ "on": "textDocument/didOpen", "nth": 1, "do": [
            { "progress": { "token": "load", "kind": "begin" } },
            { "wait_ms": 4000 },
            { "progress": { "token": "load", "kind": "end" } },
        ] }),
        reply("textDocument/references", json!([location("$root/a.fake", [0, 1, 0, 2])])),
        reply("textDocument/definition", json!([location("$root/a.fake", [0, 0, 0, 1])])),
        reply("textDocument/hover", json!(null)),
        reply("workspace/symbol", json!([symbol("s", 12, "$root/a.fake", [0, 0, 0, 1])])),
    ];
    rules.rotate_left(1);
    let builder = Workbench::new().file("a.fake", "bad").server_with("fake", script(&rules), |entry| {
        entry.ready = Some(ReadinessRule::Progress { grace_ms: 60_000 });
    });
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(200));
    for (tool, arguments) in [
        (REFERENCES, stage.at("a.fake", 0, 0)),
        (DEFINITION, stage.at("a.fake", 0, 0)),
        (HOVER, stage.at("a.fake", 0, 0)),
        (DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") })),
    ] {
        let indexing = CodeError::Indexing { servers: vec![server_id("fake")], progress: None };
        assert_eq!(stage.ask(tool, arguments), Err(indexing), "{tool}");
    }
    let references = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(references["items"].as_array().unwrap().len(), 1);
    let diagnostics = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    assert_eq!(diagnostics["diagnostics"].as_array().unwrap().len(), 1);
}

#[test]
fn s4_5_late_workspace_diagnostics_report_their_progress() {
    let mut builder = Workbench::new().server_with(
        "fake",
        json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
            { "on": "textDocument/didOpen", "do": [{ "wait_ms": 150 }, { "publish": { "uri": "$uri" } }] },
        ] }),
        |entry| entry.settle_ms = 100,
    );
    for number in 0..120 {
        builder = builder.file(&format!("{number:03}.fake"), "bad");
    }
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(400));
    let error = stage.ask(WORKSPACE_DIAGNOSTICS, json!({})).unwrap_err();
    assert!(matches!(error, CodeError::Indexing { .. }), "{error:?}");
    let mut last = 0;
    let payload = loop {
        match stage.ask(WORKSPACE_DIAGNOSTICS, json!({})) {
            Ok(reply) => break reply.payload,
            Err(CodeError::Indexing {
                progress: Some(IndexingProgress { done, total, pending }), ..
            }) => {
                assert_eq!(total, 120);
                assert_eq!(pending.len() as u64, (total - done).min(3), "{pending:?}");
                assert!((last..=total).contains(&done), "{done} after {last}");
                last = done;
            }
            // The files are not counted yet, or the time was up just when the last one was checked.
            Err(CodeError::Indexing { progress: None, .. } | CodeError::Timeout) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(last > 0, "a retry reports progress");
    assert_eq!(payload["items"].as_array().unwrap().len(), 100, "one page");
    assert_eq!(stage.bench.received("fake", "textDocument/didOpen").len(), 120, "every file was opened once");
}

#[test]
fn identical_calls_in_flight_share_one_computation() {
    let rules =
        [slow_reply("textDocument/references", 1500, json!([location("$root/a.fake", [0, 0, 0, 1])]))];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..8).map(|_| scope.spawn(|| stage.payload(REFERENCES, stage.at("a.fake", 0, 0)))).collect();
        let answers: Vec<Value> = asking.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    });
    assert_eq!(stage.bench.received("fake", "textDocument/references").len(), 1);
}

#[test]
fn s4_5_request_that_a_server_wants_repeated_is_repeated() {
    let rules = [
        json!({ "on": "textDocument/references", "nth": 1, "do": [{ "refuse": { "code": -32801, "message": "modified" } }] }),
        json!({ "on": "textDocument/references", "nth": 2, "do": [{ "refuse": { "code": -32802, "message": "busy" } }] }),
        json!({ "on": "textDocument/references", "from": 3, "do": [{ "reply": [location("$root/a.fake", [0, 0, 0, 1])] }] }),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&rules)));
    let payload = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(payload["items"].as_array().unwrap().len(), 1);
}

#[test]
fn change_during_a_request_repeats_the_request() {
    let rules = [
        json!({ "on": "textDocument/hover", "text": "old", "do": [{ "wait_ms": 500 }, { "reply_word": null }] }),
        json!({ "on": "textDocument/hover", "text": "new", "do": [{ "reply_word": null }] }),
    ];
    let stage = Stage::open(Workbench::new().file("a.fake", "old\n").server("fake", script(&rules)));
    stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| stage.payload(HOVER, stage.at("a.fake", 0, 1)));
        while stage.bench.received("fake", "textDocument/hover").is_empty() {
            std::thread::yield_now();
        }
        stage.bench.replace("a.fake", "new\n");
        let later = stage.payload(HOVER, stage.at("a.fake", 0, 1));
        assert_eq!(later["contents"][0]["value"], "new", "a request after the change sees the new text");
        let payload = asking.join().unwrap();
        assert_eq!(payload["contents"][0]["value"], "new");
    });
}
