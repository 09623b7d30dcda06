//! §4.5: answers that take long, and what is said meanwhile. Shared work.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_servers::registry::Ready;
use tenon_testkit::client::RpcError;

use crate::stage::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, HOVER, REFERENCES, Stage, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
    code, location, reply, script, symbol,
};

fn reason(error: &RpcError) -> &str {
    assert_eq!(code(error), "CAP_EXCEEDED", "{error:?}");
    assert!(error.data["details"]["retryAfterMs"].as_u64().is_some_and(|pause| pause > 0), "{error:?}");
    error.data["details"]["reason"].as_str().unwrap()
}

/// A server that answers after a while.
fn slow(on: &str, pause_ms: u64, value: Value) -> Value {
    json!({ "on": on, "do": [{ "wait_ms": pause_ms }, { "reply": value }] })
}

#[test]
fn s4_5_late_is_an_error_and_the_retry_gets_the_answer() {
    let rules = [
        slow("textDocument/definition", 600, json!([location("$root/a.fake", [0, 0, 0, 1])])),
        slow("workspace/symbol", 600, json!([symbol("s", 12, "$root/a.fake", [0, 0, 0, 1])])),
    ];
    let builder = Workbench::new().file("a.fake", "x").server("fake", script(&rules));
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(250));
    for (tool, arguments, method) in [
        (DEFINITION, stage.at("a.fake", 0, 0), "textDocument/definition"),
        (WORKSPACE_SYMBOLS, json!({ "query": "s" }), "workspace/symbol"),
    ] {
        // Before the server runs, it is what is late; a question that it answers at once shows that it does.
        stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
        let error = stage.ask(tool, arguments.clone()).unwrap_err();
        assert_eq!(reason(&error), "timeout");
        let payload = stage.payload(tool, arguments);
        assert!(payload["summary"].as_str().unwrap().contains('1'), "{payload}");
        assert_eq!(stage.bench.received("fake", method).len(), 1, "the retry found what was under way");
    }
}

#[test]
fn s4_5_a_server_that_is_not_ready_is_indexing_never_a_partial_list() {
    let mut rules = vec![
        json!({ "on": "textDocument/didOpen", "nth": 1, "do": [
            { "progress": { "token": "load", "kind": "begin" } },
            { "wait_ms": 4000 },
            { "progress": { "token": "load", "kind": "end" } },
        ] }),
        reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])])),
        reply("textDocument/definition", json!([location("$root/a.fake", [0, 0, 0, 1])])),
        reply("textDocument/hover", json!(null)),
        reply("workspace/symbol", json!([symbol("s", 12, "$root/a.fake", [0, 0, 0, 1])])),
    ];
    rules.rotate_left(1);
    let builder = Workbench::new().file("a.fake", "bad").server_with("fake", script(&rules), |entry| {
        entry.ready = Some(Ready::Progress { grace_ms: 60_000 });
    });
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(200));
    for (tool, arguments) in [
        (REFERENCES, stage.at("a.fake", 0, 0)),
        (DEFINITION, stage.at("a.fake", 0, 0)),
        (HOVER, stage.at("a.fake", 0, 0)),
        (DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") })),
    ] {
        let error = stage.ask(tool, arguments).unwrap_err();
        assert_eq!(reason(&error), "indexing", "{tool}");
        assert_eq!(error.data["details"]["servers"], json!(["fake"]), "{tool}");
    }
    let references = stage.payload(REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!(references["items"].as_array().unwrap().len(), 1);
    let diagnostics = stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    assert_eq!(diagnostics["diagnostics"].as_array().unwrap().len(), 1);
}

#[test]
fn s4_5_workspace_diagnostics_say_how_far_they_are() {
    let mut builder = Workbench::new().server_with(
        "fake",
        json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
            { "on": "textDocument/didOpen", "do": [{ "wait_ms": 150 }, { "publish": { "uri": "$uri" } }] },
        ] }),
        |entry| entry.settle_ms = 100,
    );
    for number in 0..40 {
        builder = builder.file(&format!("{number:02}.fake"), "bad");
    }
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(400));
    let error = stage.ask(WORKSPACE_DIAGNOSTICS, json!({})).unwrap_err();
    assert_eq!(reason(&error), "indexing");
    let mut last = 0;
    let payload = loop {
        match stage.ask(WORKSPACE_DIAGNOSTICS, json!({})) {
            Ok(payload) => break payload,
            Err(error) => {
                assert_eq!(reason(&error), "indexing");
                let details = &error.data["details"];
                let (done, total) = (details["done"].as_u64(), details["total"].as_u64());
                if total.is_none() {
                    // The files are not even counted yet.
                    continue;
                }
                assert_eq!(total, Some(40), "{error:?}");
                assert!(done >= Some(last) && done <= total, "{error:?}");
                last = done.unwrap();
            }
        }
    };
    assert!(last > 0, "some of it was done when it was asked again");
    assert_eq!(payload["items"].as_array().unwrap().len(), 40);
    assert_eq!(stage.bench.received("fake", "textDocument/didOpen").len(), 40, "every file was opened once");
}

#[test]
fn identical_calls_in_flight_share_one_computation() {
    let rules = [slow("textDocument/references", 1500, json!([location("$root/a.fake", [0, 0, 0, 1])]))];
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
fn s4_5_what_a_server_asks_to_be_asked_again_is_asked_again() {
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
fn a_document_that_changes_while_the_request_runs_is_asked_about_again() {
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
        stage.bench.write("a.fake", "new\n");
        let later = stage.payload(HOVER, stage.at("a.fake", 0, 1));
        assert_eq!(later["contents"][0]["value"], "new", "who asks after the change sees the change");
        let payload = asking.join().unwrap();
        assert_eq!(payload["contents"][0]["value"], "new");
    });
}
