//! The methods: their shapes, their invariants, and what they make of bad input.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::host::{Stage, linter};

#[test]
fn a_check_answers_diagnostics_in_the_contracts_shape() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "line": 1, "message": "a warning", "severity": 2 },
            { "line": 0, "message": "an error\nof two lines", "severity": 1, "code": 7, "source": "me" },
            { "line": 2, "message": "no severity", "code": { "value": "obj" } },
        ]}},
    ]}]});
    let stage = Stage::new("//- sub/a.fake\nx\n").server("fake", script);
    let mut host = stage.start(json!({}));
    assert_eq!(
        host.check(&stage.path("sub/a.fake")),
        json!([
            { "file": "sub/a.fake", "line": 1, "character": 1, "severity": "error", "message": "an error\nof two lines", "code": "7", "source": "me" },
            { "file": "sub/a.fake", "line": 3, "character": 1, "severity": "error", "message": "no severity", "code": "obj" },
        ])
    );
}

#[test]
fn severities_filter_every_answer() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "message": "w", "severity": 2 }, { "message": "e", "severity": 1 }, { "message": "i", "severity": 3 }, { "message": "h", "severity": 4 },
        ]}},
    ]}]});
    let stage = Stage::new("//- a.fake\nx\n").server("fake", script);
    let mut host = stage.start(json!({ "includeSeverities": ["warning", "hint"] }));
    let severities = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["severity"].as_str().unwrap().to_owned()).collect()
    };
    let epoch = host.result("lsp/getDiagnosticEpoch", Value::Null);
    assert_eq!(severities(&host.check(&stage.path("a.fake"))), ["warning", "hint"]);
    assert_eq!(severities(&host.result("lsp/diagnostics", json!({}))["a.fake"]), ["warning", "hint"]);
    let after = host.result("lsp/diagnosticsAfter", json!({ "afterEpoch": epoch }));
    assert_eq!(severities(&after["a.fake"]), ["warning", "hint"]);
}

#[test]
fn a_check_always_answers_a_list() {
    let stage = Stage::new("//- a.fake\nbad\n//- a.txt\nbad\n//- link.fake -> /etc/passwd\n")
        .server("fake", linter());
    let mut host = stage.start(json!({}));
    let outside = stage.sandbox.place("tmp").join("x.fake");
    std::fs::write(&outside, "bad").unwrap();
    std::fs::write(stage.path("binary.fake"), [0xff, 0x00]).unwrap();
    for params in [
        json!({ "filePath": "a.fake" }),
        json!({ "filePath": outside }),
        json!({ "filePath": stage.path("gone.fake") }),
        json!({ "filePath": stage.path("a.txt") }),
        json!({ "filePath": stage.path("binary.fake") }),
        json!({ "filePath": stage.path("link.fake") }),
        json!({ "filePath": stage.path("") }),
        json!({ "filePath": stage.path("../w/../..") }),
        json!({ "filePath": 7 }),
        json!({ "filePath": stage.path("a.fake"), "text": 7 }),
        json!([]),
        Value::Null,
    ] {
        assert_eq!(host.result("lsp/checkFile", params.clone()), json!([]), "{params}");
    }
    assert_eq!(host.check(&stage.path("a.fake")).as_array().unwrap().len(), 1);
}

#[test]
fn a_written_file_shows_what_it_broke_elsewhere() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [
            { "publish": { "uri": "$uri" } }, { "wait_ms": 60 },
            { "publish": { "uri": "z.fake", "version": "none", "diagnostics": [{ "message": "broken by a" }] } },
            { "publish": { "uri": "b.fake", "version": "none", "diagnostics": [{ "message": "broken by a" }] } },
        ]},
    ]});
    let stage = Stage::new("//- a.fake\nbad\n//- b.fake\nx\n//- z.fake\nx\n").server("fake", script);
    let mut host = stage.start(json!({}));
    let before = host.result("lsp/getDiagnosticEpoch", Value::Null).as_u64().unwrap();
    let checked = host.check_text(&stage.path("a.fake"), "bad");
    assert_eq!(checked.as_array().unwrap().len(), 1);
    assert!(host.result("lsp/getDiagnosticEpoch", Value::Null).as_u64().unwrap() > before);
    let after = host.result("lsp/diagnosticsAfter", json!({ "afterEpoch": before, "waitMs": 2000 }));
    assert_eq!(after.as_object().unwrap().keys().collect::<Vec<_>>(), ["a.fake", "b.fake", "z.fake"]);
    assert_eq!(host.result("lsp/diagnostics", json!({})), after);
}

#[test]
fn every_configured_server_is_listed_by_id() {
    let stage = Stage::new("//- a.fake\nbad\n").server("aaa-fake", linter());
    let mut host = stage.start(json!({}));
    let list = host.result("lsp/status", json!({}));
    let ids: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted() && ids.contains(&"pyright") && ids.contains(&"aaa-fake"), "{ids:?}");
    assert_eq!(list[0]["status"], "idle");
    host.check(&stage.path("a.fake"));
    let list = host.result("lsp/status", json!({}));
    assert_eq!(list[0]["status"], "active");
    assert_eq!(list[0]["serverPid"], stage.pids("aaa-fake")[0]);
    let known: BTreeSet<&str> = ["idle", "starting", "active", "broken", "disabled", "unavailable"].into();
    for line in list.as_array().unwrap() {
        assert!(known.contains(line["status"].as_str().unwrap()), "{line}");
        let allowed: BTreeSet<&str> = ["id", "status", "language", "serverPid", "detail"].into();
        assert!(line.as_object().unwrap().keys().all(|key| allowed.contains(key.as_str())), "{line}");
    }
}

#[test]
fn after_a_crash_the_next_check_is_empty_and_nothing_fails() {
    let crashing = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": ["die"] }] });
    let stage = Stage::new("//- a.fake\nbad\n").server("fake", crashing);
    let mut host = stage.start(json!({}));
    assert_eq!(host.check(&stage.path("a.fake")), json!([]));
    assert_eq!(host.check(&stage.path("a.fake")), json!([]));
    assert_eq!(stage.pids("fake").len(), 1, "a broken server is not started again");
    let list = host.result("lsp/status", json!({}));
    let line = list.as_array().unwrap().iter().find(|one| one["id"] == "fake").unwrap();
    assert_eq!(line["status"], "broken");
}

#[test]
fn a_cancelled_check_answers_what_is_known() {
    let silent = json!({ "capabilities": { "textDocumentSync": 1 } });
    let stage = Stage::new("//- a.fake\nbad\n").server("fine", linter()).server("silent", silent);
    let mut host = stage.start(json!({ "diagnosticTimeout": 600_000, "firstTouchTimeout": 600_000 }));
    let id = host.begin("lsp/checkFile", json!({ "filePath": stage.path("a.fake") }));
    // Once the other server's share is there, the check waits for the silent one alone.
    while host.result("lsp/diagnostics", json!({})) == json!({}) {}
    host.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": id } }));
    let answer = host.message();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"].as_array().unwrap().len(), 1);
}

#[test]
fn fifty_checks_at_once_are_all_answered() {
    let stage = Stage::new("//- a.fake\nbad\n").server("fake", linter());
    for number in 0..50 {
        std::fs::write(stage.path(&format!("f{number}.fake")), "bad").unwrap();
    }
    let mut host = stage.start(json!({ "firstTouchTimeout": 60_000, "diagnosticTimeout": 60_000 }));
    let asked: BTreeSet<i64> = (0..50)
        .map(|number| {
            host.begin("lsp/checkFile", json!({ "filePath": stage.path(&format!("f{number}.fake")) }))
        })
        .collect();
    let mut answered = BTreeSet::new();
    for _ in 0..50 {
        let answer = host.message();
        assert_eq!(answer["result"].as_array().unwrap().len(), 1, "{answer}");
        assert!(answered.insert(answer["id"].as_i64().unwrap()));
    }
    assert_eq!(answered, asked);
}

#[test]
fn what_is_no_request_is_a_typed_error() {
    let stage = Stage::new("//- a.fake\nbad\n").server("fake", linter());
    let mut host = stage.start(json!({}));
    assert_eq!(host.request("lsp/unknown", Value::Null)["error"]["code"], -32601);
    assert_eq!(host.request("lsp/diagnosticsAfter", json!({}))["error"]["code"], -32602);
    assert_eq!(host.request("lsp/diagnosticsAfter", json!({ "afterEpoch": -1 }))["error"]["code"], -32602);
    host.write(b"garbage before a header\r\nContent-Length: 7\r\n\r\nno json");
    assert_eq!(host.message()["error"]["code"], -32700);
    host.send(&json!([1, 2]));
    assert_eq!(host.message()["error"]["code"], -32600);
    host.send(&json!({ "jsonrpc": "2.0", "method": "lsp/unknownNotification" }));
    host.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": null }));
    host.send(&json!({ "jsonrpc": "2.0", "id": "text", "method": "lsp/getDiagnosticEpoch" }));
    assert_eq!(host.message()["id"], "text");
}
