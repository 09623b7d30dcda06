//! The methods: result shapes, invariants, and invalid input.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;

use crate::host::Workspace;

#[test]
fn check_returns_diagnostics_in_the_contract_shape() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "line": 1, "message": "a warning", "severity": 2 },
            { "line": 0, "message": "an error\nof two lines", "severity": 1, "code": 7, "source": "me" },
            { "line": 2, "message": "no severity", "code": { "value": "obj" } },
        ]}},
    ]}]});
    let workspace = Workspace::new("//- sub/a.fake\nx\n").server("fake", script);
    let mut host = workspace.start(json!({}));
    assert_eq!(
        host.check(&workspace.path("sub/a.fake")),
        json!([
            { "file": "sub/a.fake", "line": 1, "character": 1, "severity": "error", "message": "an error\nof two lines", "code": "7", "source": "me" },
            { "file": "sub/a.fake", "line": 3, "character": 1, "severity": "error", "message": "no severity", "code": "obj" },
        ])
    );
}

#[test]
fn severities_filter_every_result() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "message": "w", "severity": 2 }, { "message": "e", "severity": 1 }, { "message": "i", "severity": 3 }, { "message": "h", "severity": 4 },
        ]}},
    ]}]});
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", script);
    let mut host = workspace.start(json!({ "includeSeverities": ["warning", "hint"] }));
    let severities = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["severity"].as_str().unwrap().to_owned()).collect()
    };
    let epoch = host.result("lsp/getDiagnosticEpoch", Value::Null);
    assert_eq!(severities(&host.check(&workspace.path("a.fake"))), ["warning", "hint"]);
    assert_eq!(severities(&host.result("lsp/diagnostics", json!({}))["a.fake"]), ["warning", "hint"]);
    let after = host.result("lsp/diagnosticsAfter", json!({ "afterEpoch": epoch }));
    assert_eq!(severities(&after["a.fake"]), ["warning", "hint"]);
}

#[test]
fn check_of_an_invalid_file_returns_an_empty_list() {
    let workspace = Workspace::new("//- a.fake\nbad\n//- a.txt\nbad\n//- link.fake -> /etc/passwd\n")
        .server("fake", linter());
    let mut host = workspace.start(json!({}));
    let outside = workspace.sandbox.dir("tmp").join("x.fake");
    std::fs::write(&outside, "bad").unwrap();
    std::fs::write(workspace.path("binary.fake"), [0xff, 0x00]).unwrap();
    for params in [
        json!({ "filePath": "a.fake" }),
        json!({ "filePath": outside }),
        json!({ "filePath": workspace.path("gone.fake") }),
        json!({ "filePath": workspace.path("a.txt") }),
        json!({ "filePath": workspace.path("binary.fake") }),
        json!({ "filePath": workspace.path("link.fake") }),
        json!({ "filePath": workspace.path("") }),
        json!({ "filePath": workspace.path("../w/../..") }),
        json!({ "filePath": 7 }),
        json!({ "filePath": workspace.path("a.fake"), "text": 7 }),
        json!([]),
        Value::Null,
    ] {
        assert_eq!(host.result("lsp/checkFile", params.clone()), json!([]), "{params}");
    }
    assert_eq!(host.check(&workspace.path("a.fake")).as_array().unwrap().len(), 1);
}

#[test]
fn diagnostics_after_a_write_include_other_files() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [
            { "publish": { "uri": "$uri" } }, { "wait_ms": 60 },
            { "publish": { "uri": "z.fake", "version": "none", "diagnostics": [{ "message": "broken by a" }] } },
            { "publish": { "uri": "b.fake", "version": "none", "diagnostics": [{ "message": "broken by a" }] } },
        ]},
    ]});
    let workspace = Workspace::new("//- a.fake\nbad\n//- b.fake\nx\n//- z.fake\nx\n").server("fake", script);
    let mut host = workspace.start(json!({}));
    let before = host.result("lsp/getDiagnosticEpoch", Value::Null).as_u64().unwrap();
    let checked = host.check_text(&workspace.path("a.fake"), "bad");
    assert_eq!(checked.as_array().unwrap().len(), 1);
    assert!(host.result("lsp/getDiagnosticEpoch", Value::Null).as_u64().unwrap() > before);
    let after = host.result("lsp/diagnosticsAfter", json!({ "afterEpoch": before, "waitMs": 2000 }));
    assert_eq!(after.as_object().unwrap().keys().collect::<Vec<_>>(), ["a.fake", "b.fake", "z.fake"]);
    assert_eq!(host.result("lsp/diagnostics", json!({})), after);
}

#[test]
fn status_lists_every_configured_server_by_id() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("aaa-fake", linter());
    let mut host = workspace.start(json!({}));
    let list = host.result("lsp/status", json!({}));
    let ids: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted() && ids.contains(&"pyright") && ids.contains(&"aaa-fake"), "{ids:?}");
    assert_eq!(list[0]["status"], "idle");
    host.check(&workspace.path("a.fake"));
    let list = host.result("lsp/status", json!({}));
    assert_eq!(list[0]["status"], "active");
    assert_eq!(list[0]["serverPid"], workspace.pids("aaa-fake")[0]);
    let known: BTreeSet<&str> = ["idle", "starting", "active", "broken", "disabled", "unavailable"].into();
    for line in list.as_array().unwrap() {
        assert!(known.contains(line["status"].as_str().unwrap()), "{line}");
        let allowed: BTreeSet<&str> =
            ["id", "serverId", "status", "state", "language", "serverPid", "detail"].into();
        assert!(line.as_object().unwrap().keys().all(|key| allowed.contains(key.as_str())), "{line}");
        assert_eq!(line["serverId"], line["id"]);
    }
    assert_eq!(list[0]["state"], "ok");
}

#[test]
fn check_after_a_crash_returns_an_empty_list() {
    let crashing = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [{ "on": "textDocument/didOpen", "do": ["die"] }] });
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", crashing);
    let mut host = workspace.start(json!({}));
    assert_eq!(host.check(&workspace.path("a.fake")), json!([]));
    assert_eq!(host.check(&workspace.path("a.fake")), json!([]));
    assert_eq!(workspace.pids("fake").len(), 1, "a broken server is not started again");
    let list = host.result("lsp/status", json!({}));
    let line = list.as_array().unwrap().iter().find(|one| one["id"] == "fake").unwrap();
    assert_eq!(line["status"], "broken");
}

#[test]
fn cancelled_check_returns_partial_diagnostics() {
    let silent = json!({ "capabilities": { "textDocumentSync": 1 } });
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fine", linter()).server("silent", silent);
    let mut host = workspace.start(json!({ "diagnosticTimeout": 600_000, "firstTouchTimeout": 600_000 }));
    let id = host.begin("lsp/checkFile", json!({ "filePath": workspace.path("a.fake") }));
    // Once the other server's diagnostics are there, the check waits only for the silent one.
    while host.result("lsp/diagnostics", json!({})) == json!({}) {}
    host.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": id } }));
    let answer = host.message();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"].as_array().unwrap().len(), 1);
}

#[test]
fn fifty_concurrent_checks_are_all_answered() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
    for number in 0..50 {
        std::fs::write(workspace.path(&format!("f{number}.fake")), "bad").unwrap();
    }
    let mut host = workspace.start(json!({ "firstTouchTimeout": 60_000, "diagnosticTimeout": 60_000 }));
    let requests: BTreeSet<i64> = (0..50)
        .map(|number| {
            host.begin("lsp/checkFile", json!({ "filePath": workspace.path(&format!("f{number}.fake")) }))
        })
        .collect();
    let mut answered = BTreeSet::new();
    for _ in 0..50 {
        let answer = host.message();
        assert_eq!(answer["result"].as_array().unwrap().len(), 1, "{answer}");
        assert!(answered.insert(answer["id"].as_i64().unwrap()));
    }
    assert_eq!(answered, requests);
}

#[test]
fn invalid_requests_get_json_rpc_errors() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
    let mut host = workspace.start(json!({}));
    let unknown = &host.request("lsp/unknown", Value::Null)["error"];
    assert_eq!((&unknown["code"], &unknown["message"]), (&json!(-32601), &json!("method not found")));
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

/// Ten checks of one file at once, thirty times: the last text stays, and only its answer has its error.
fn pipelined_texts_stay_in_order(workspace: &Workspace, file: &str, wrong: &str) {
    let mut host = workspace.start(json!({ "diagnosticTimeout": 60_000, "firstTouchTimeout": 120_000 }));
    let path = workspace.path(file);
    host.check_text(&path, "");
    for round in 0..30 {
        let ids: Vec<i64> = (0..10)
            .map(|number| {
                // New lines, so that every text is new.
                let text = if number == 9 { wrong.to_owned() } else { "\n".repeat(round * 10 + number) };
                host.begin("lsp/checkFile", json!({ "filePath": path, "text": text }))
            })
            .collect();
        let mut last = Value::Null;
        for _ in &ids {
            let answer = host.message();
            if answer["id"] == ids[9] {
                last = answer["result"].clone();
            }
        }
        assert_ne!(last, json!([]), "round {round}");
        assert_ne!(host.result("lsp/diagnostics", json!({}))[file], Value::Null, "round {round}");
    }
}

#[test]
fn pipelined_texts_are_applied_in_the_order_of_arrival() {
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", linter());
    pipelined_texts_stay_in_order(&workspace, "a.fake", "bad");
}

#[test]
fn pyright_gets_pipelined_texts_in_the_order_of_arrival() {
    let workspace = Workspace::new("//- a.py\nx = 1\n//- pyproject.toml\n");
    pipelined_texts_stay_in_order(&workspace, "a.py", "def f(:\n");
}

#[test]
fn status_names_files_whose_diagnostics_are_pending() {
    let silent = json!({ "capabilities": { "textDocumentSync": 1 } });
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", silent);
    let mut host = workspace.start(json!({ "firstTouchTimeout": 300 }));
    assert_eq!(host.check(&workspace.path("a.fake")), json!([]), "the contract has no room for more");
    let list = host.result("lsp/status", json!({}));
    let line = list.as_array().unwrap().iter().find(|one| one["id"] == "fake").unwrap();
    assert_eq!(line["detail"], "diagnostics pending (1): a.fake");
}
