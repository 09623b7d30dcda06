//! Servers that misbehave on the wire: noise, garbage, floods, and requests to the client.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_fake_lsp::Workbench;
use tenon_lsp::model::GapReason;

/// A linter that runs `first` when a document is opened.
fn linter_with(first: Vec<Value>) -> Value {
    let mut actions = first;
    actions.push(json!({ "publish": { "uri": "$uri" } }));
    json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": "textDocument/didOpen", "do": actions }] })
}

async fn check(script: Value) -> (Workbench, tenon_lsp::model::LspAnswer<Vec<tenon_lsp::model::Diagnostic>>) {
    let bench = Workbench::new().file("a.fake", "bad").server("fake", script).patient().open().await;
    let answer = bench.check("a.fake").await;
    (bench, answer)
}

#[tokio::test]
async fn every_request_from_a_server_is_answered() {
    let ask = |method: &str, params: Value| json!({ "request": { "method": method, "params": params } });
    let (bench, answer) = check(linter_with(vec![
        ask(
            "workspace/configuration",
            json!({ "items": [{ "section": "fake.deep" }, { "section": "none" }, {}] }),
        ),
        ask("workspace/workspaceFolders", Value::Null),
        ask("window/workDoneProgress/create", json!({ "token": 1 })),
        ask("client/registerCapability", json!({ "registrations": [] })),
        ask("workspace/applyEdit", json!({ "edit": {} })),
        ask("window/showMessageRequest", json!({ "message": "?" })),
        ask("workspace/diagnostic/refresh", Value::Null),
        ask("something/else", json!([1, 2])),
    ]))
    .await;
    assert!(answer.is_complete());
    let answered = || {
        let lines =
            bench.transcript("fake").into_iter().filter_map(|mut line| line.get_mut("in").map(Value::take));
        lines
            .filter(|message| message["id"].as_str().is_some_and(|id| id.starts_with("fake-")))
            .collect::<Vec<_>>()
    };
    while answered().len() < 8 {
        tokio::task::yield_now().await;
    }
    let answers = answered();
    assert_eq!(answers[0]["result"], json!([null, null, {}]));
    assert_eq!(answers[1]["result"][0]["uri"], json!(format!("file://{}", bench.root().display())));
    assert_eq!(answers[4]["result"]["applied"], json!(false));
    assert_eq!(answers[7]["error"]["code"], json!(-32601));
    assert!(answers.iter().all(|one| one.get("result").is_some() || one.get("error").is_some()));
}

#[tokio::test]
async fn settings_are_answered_by_section() {
    let script = linter_with(vec![
        json!({ "request": { "method": "workspace/configuration", "params": { "items": [{ "section": "a.b" }] } } }),
    ]);
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server_with("fake", script, |entry| entry.settings = json!({ "a": { "b": { "c": 1 } } }))
        .patient()
        .open()
        .await;
    bench.check("a.fake").await;
    let told = &bench.received("fake", "workspace/didChangeConfiguration")[0];
    assert_eq!(told["params"]["settings"], json!({ "a": { "b": { "c": 1 } } }));
    let answered = || bench.transcript("fake").into_iter().find(|line| line["in"]["id"] == "fake-1");
    while answered().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(answered().unwrap()["in"]["result"], json!([{ "c": 1 }]));
}

#[tokio::test]
async fn settings_are_not_pushed_to_servers_that_pull_them_or_have_none() {
    let bench = Workbench::new()
        .file("a.fake", "bad")
        .server_with("asks", linter_with(Vec::new()), |entry| {
            entry.settings = json!({ "a": 1 });
            entry.asks_for_settings = true;
        })
        .server("has-none", linter_with(Vec::new()))
        .patient()
        .open()
        .await;
    bench.check("a.fake").await;
    for server in ["asks", "has-none"] {
        assert_eq!(bench.received_count(server, "workspace/didChangeConfiguration"), 0, "{server}");
    }
}

#[tokio::test]
async fn stderr_flood_does_not_block_and_its_tail_is_kept() {
    let (bench, answer) = check(linter_with(vec![json!({ "flood_stderr": 8_000_000 })])).await;
    assert!(answer.is_complete());
    let id = bench.orchestrator.status()[0].id.clone();
    assert!(!bench.orchestrator.logs(&id).is_empty());
}

#[tokio::test]
async fn noise_and_garbage_between_frames_are_skipped() {
    let (_bench, answer) = check(linter_with(vec![
        json!({ "raw": "Debugger attached.\n" }),
        json!({ "raw_frame": "not JSON" }),
        json!({ "raw_frame": "[1, 2, 3]" }),
        json!({ "raw_frame": "{\"id\": {}, \"result\": 1}" }),
        json!({ "raw_frame": "" }),
        json!({ "reply_wrong_id": [1] }),
        json!({ "raw": "npm warn" }),
    ]))
    .await;
    assert!(answer.is_complete());
    assert_eq!(answer.value.len(), 1);
}

#[tokio::test]
async fn frames_may_arrive_in_small_pieces() {
    let mut script = linter_with(Vec::new());
    script["partial"] = json!({ "bytes": 7, "pause_ms": 1 });
    let (_bench, answer) = check(script).await;
    assert!(answer.is_complete());
}

#[tokio::test]
async fn only_invalid_diagnostics_are_dropped_from_a_list() {
    let range = |line: Value| json!({ "start": { "line": line, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [{ "on": "textDocument/didOpen", "do": [
        { "publish": { "uri": "$uri", "diagnostics": [
            { "message": "good", "code": { "value": "no-undef", "target": "https://example.com" } },
            { "message": "float", "range": range(json!(1.5)) },
            { "message": "negative", "range": range(json!(-1)) },
            { "message": "no range", "range": "x" },
            { "message": "also good", "code": 7, "severity": 9 },
        ]}},
    ]}]});
    let (_bench, answer) = check(script).await;
    let shown: Vec<_> =
        answer.value.iter().map(|one| (one.message.as_str(), one.code.as_deref().unwrap())).collect();
    assert_eq!(shown, [("good", "no-undef"), ("also good", "7")]);
}

#[tokio::test]
async fn server_that_floods_requests_without_reading_is_cut_off() {
    let (bench, answer) = check(json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": ["stop_reading", { "flood_requests": 60_000 }] },
    ]}))
    .await;
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    let detail = bench.orchestrator.status()[0].detail.clone().unwrap();
    assert!(detail.contains("sends requests without reading"), "{detail}");
}

#[tokio::test]
async fn server_that_publishes_for_ever_new_files_is_cut_off() {
    let (bench, answer) = check(linter_with(vec![json!({ "flood_files": 100_001 })])).await;
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    let detail = bench.orchestrator.status()[0].detail.clone().unwrap();
    assert!(detail.contains("more diagnostics than Tenon keeps"), "{detail}");
}

#[tokio::test]
async fn server_that_closes_its_output_is_broken() {
    let (_bench, answer) =
        check(json!({ "capabilities": { "textDocumentSync": 2 }, "deaf_to_sigterm": true, "rules": [
            { "on": "textDocument/didOpen", "do": ["close_stdout"] },
        ]}))
        .await;
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
}

#[tokio::test]
async fn oversized_frame_ends_the_connection() {
    let (bench, answer) =
        check(linter_with(vec![json!({ "raw": "Content-Length: 99999999999\r\n\r\n" })])).await;
    assert_eq!(answer.gaps[0].why, GapReason::Broken);
    assert!(bench.orchestrator.status()[0].detail.clone().unwrap().contains("invalid frame"));
}

#[tokio::test]
async fn server_that_stops_reading_does_not_block_checks() {
    let script = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": [
        { "on": "textDocument/didOpen", "do": ["stop_reading"] },
    ]});
    let bench = Workbench::new()
        .file("a.fake", "")
        .server("fake", script)
        .option(|options| {
            options.timeouts.check = Duration::from_millis(100);
            options.timeouts.first_check = Duration::from_millis(600);
        })
        .open()
        .await;
    let text = "x".repeat(200_000);
    for round in 0..10 {
        let answer = bench.check_text("a.fake", Some(&format!("{text}{round}"))).await;
        assert_eq!(answer.pending().count(), 1, "round {round}");
    }
}

#[tokio::test]
async fn requests_carry_no_progress_token_and_no_command_is_sent() {
    let script = json!({ "capabilities": { "textDocumentSync": 2, "hoverProvider": true, "referencesProvider": true,
            "definitionProvider": true, "documentSymbolProvider": true, "workspaceSymbolProvider": true,
            "executeCommandProvider": { "commands": ["x"] } },
        "rules": [] });
    let bench = Workbench::new().file("a.fake", "word").server("fake", script).open().await;
    let path = bench.path("a.fake");
    let call = Workbench::call();
    let at = Workbench::at(0, 0);
    let _ = bench.orchestrator.hover(&path, at, &call).await;
    let _ = bench.orchestrator.references(&path, at, true, &call).await;
    let _ = bench.orchestrator.definition(&path, at, &call).await;
    let _ = bench.orchestrator.document_symbols(&path, &call).await;
    let _ = bench.orchestrator.workspace_symbols("x", &call).await;
    for line in bench.transcript("fake") {
        let text = line.to_string();
        assert!(!text.contains("workDoneToken") && !text.contains("partialResultToken"), "{text}");
        assert_ne!(line["in"]["method"], "workspace/executeCommand");
    }
}
