//! §6.3: codes and details of errors, and what errors never carry.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_contract::snapshot::SnapshotLimits;
use tenon_fake_lsp::scripts::{location, reply, script, slow_reply, symbol};
use tenon_fake_lsp::{Builder, ReadinessRule, Workbench};
use tenon_testkit::code_tools::{
    DEFINITION, DOCUMENT_DIAGNOSTICS, HOVER, REFERENCES, WORKSPACE_DIAGNOSTICS, WORKSPACE_SYMBOLS,
};

use crate::stage::{Stage, code};

#[test]
fn s6_3_errors_do_not_repeat_argument_values() {
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&[])));
    let secret = "hunter2-".repeat(200);
    let mut client = stage.client();
    for arguments in [
        json!({ "uri": format!("file:///{secret}"), "position": { "line": 0, "character": 0 } }),
        json!({ "uri": format!("{secret}:///x"), "position": { "line": 0, "character": 0 } }),
        json!({ "uri": stage.uri("a.fake"), "position": { "line": secret, "character": 0 } }),
        json!({ "uri": [secret], "position": { "line": 0, "character": 0 } }),
        json!({ "uri": stage.uri("a.fake"), "position": secret }),
    ] {
        let error = client.call_tool(HOVER, arguments).unwrap_err();
        code(&error);
        assert!(!format!("{error:?}").contains("hunter2-hunter2"), "{error:?}");
    }
    // The error names an unknown field but stays short.
    let mut long = stage.at("a.fake", 0, 0);
    long[&secret] = json!(1);
    let error = client.call_tool(HOVER, long).unwrap_err();
    assert_eq!(code(&error), "INVALID_PARAMS");
    assert!(format!("{error:?}").len() < 1_000, "{error:?}");
}

#[test]
fn s6_3_arguments_that_are_not_an_object_have_a_code() {
    let stage = Stage::open(Workbench::new().file("a.fake", "x").server("fake", script(&[])));
    let mut client = stage.client();
    for arguments in [json!([1]), json!("x"), json!(7)] {
        let error = client.call_tool(HOVER, arguments).unwrap_err();
        assert_eq!(code(&error), "INVALID_PARAMS", "{error:?}");
    }
}

#[test]
fn s6_3_aborted_work_is_internal_without_details() {
    let stage = Stage::open(Workbench::new().file("a.fake", "bad").server("fake", script(&[])));
    let mut client = stage.client();
    stage.block_on(stage.code.close());
    let error = client.call_tool(WORKSPACE_DIAGNOSTICS, json!({})).unwrap_err();
    assert_eq!(code(&error), "INTERNAL", "{error:?}");
    assert!(error.data.get("details").is_none(), "{error:?}");
}

/// One file and one server.
fn workspace(rules: &[Value]) -> Builder {
    Workbench::new().file("a.fake", "x\n").server("fake", script(rules))
}

fn three_symbols() -> Value {
    let symbols: Vec<Value> = (0..3).map(|n| symbol("s", 12, "$root/a.fake", [n, 0, n, 1])).collect();
    reply("workspace/symbol", json!(symbols))
}

/// Code and details of a call that fails.
fn failure(stage: &Stage, tool: &str, arguments: Value) -> (String, Value) {
    let (code, error) = stage.failure(tool, arguments);
    (code, error.data["details"].clone())
}

fn with_details(code: &str, details: Value) -> (String, Value) {
    (code.to_owned(), details)
}

#[test]
fn s6_3_list_over_its_cap_names_the_limit() {
    let stage = Stage::with(workspace(&[three_symbols()]), |settings| settings.limits.workspace_symbols = 2);
    let expected = with_details("CAP_EXCEEDED", json!({ "reason": "items", "limit": 2 }));
    assert_eq!(failure(&stage, WORKSPACE_SYMBOLS, json!({ "query": "s" })), expected);
}

#[test]
fn s6_3_answer_at_a_servers_own_limit_names_the_server() {
    let builder =
        Workbench::new().file("a.fake", "x\n").server_with("fake", script(&[three_symbols()]), |entry| {
            entry.limits.workspace_symbols = Some(3)
        });
    let expected = with_details("CAP_EXCEEDED", json!({ "reason": "server_limit", "server": "fake" }));
    assert_eq!(failure(&Stage::open(builder), WORKSPACE_SYMBOLS, json!({ "query": "s" })), expected);
}

#[test]
fn s6_3_result_that_cannot_be_kept_names_its_size_and_the_limit() {
    let limits = SnapshotLimits { entry_bytes: 100, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(&[three_symbols()]), |settings| settings.snapshots = limits);
    let (code, details) = failure(&stage, WORKSPACE_SYMBOLS, json!({ "query": "s", "pageSize": 1 }));
    assert_eq!(code, "SNAPSHOT_TOO_LARGE");
    assert_eq!(details["limit"], 100);
    assert!(details["bytes"].as_u64() > Some(100), "{details}");
}

#[test]
fn s6_3_invalid_stale_and_expired_cursors_have_codes_without_details() {
    let limits = SnapshotLimits { entries: 1, ..SnapshotLimits::default() };
    let stage = Stage::with(workspace(&[three_symbols()]), |settings| settings.snapshots = limits);
    let with_cursor =
        |query: &str, cursor: &Value| json!({ "query": query, "pageSize": 1, "cursor": cursor });
    let mint = |query: &str| {
        stage.payload(WORKSPACE_SYMBOLS, with_cursor(query, &Value::Null))["nextCursor"].clone()
    };
    let first = mint("first");
    let second = mint("second");
    let fails = |query: &str, cursor: &Value| failure(&stage, WORKSPACE_SYMBOLS, with_cursor(query, cursor));
    assert_eq!(fails("first", &first), with_details("CURSOR_EXPIRED", Value::Null));
    assert_eq!(fails("first", &second), with_details("CURSOR_INVALID", Value::Null));
    stage.bench.write("a.fake", "y\n");
    assert_eq!(fails("second", &second), with_details("CURSOR_STALE", Value::Null));
}

#[test]
fn s6_3_missing_position_and_missing_provider_have_codes_without_details() {
    let stage = Stage::open(workspace(&[]).file("a.txt", "x"));
    assert_eq!(failure(&stage, HOVER, stage.at("a.fake", 9, 0)), with_details("NOT_FOUND", Value::Null));
    assert_eq!(
        failure(&stage, HOVER, stage.at("a.txt", 0, 0)),
        with_details("PROVIDER_UNAVAILABLE", Value::Null)
    );
}

#[test]
fn s6_3_failing_server_is_named_but_not_quoted() {
    let rejecting = json!({ "on": "textDocument/definition", "do": [
        { "refuse": { "code": -32603, "message": "cannot read /etc/shadow: token=abc" } },
    ] });
    let exiting = json!({ "on": "textDocument/hover", "do": [{ "exit": 1 }] });
    let stage = Stage::open(workspace(&[rejecting, exiting]));
    for tool in [DEFINITION, HOVER] {
        let (code, error) = stage.failure(tool, stage.at("a.fake", 0, 0));
        assert_eq!(code, "PROVIDER_UNAVAILABLE", "{tool}");
        assert_eq!(error.data["details"], json!({ "server": "fake" }), "{tool}");
        assert!(!format!("{error:?}").contains("shadow"), "{error:?}");
    }
}

/// The details of a late answer, which must ask for a retry.
fn late(stage: &Stage, tool: &str, arguments: Value) -> Value {
    let error = stage.ask(tool, arguments).unwrap_err();
    assert_eq!(code(&error), "CAP_EXCEEDED", "{error:?}");
    let details = error.data["details"].clone();
    assert!(details["retryAfterMs"].as_u64().is_some_and(|pause| pause > 0), "{error:?}");
    details
}

#[test]
fn s6_3_late_answer_is_a_timeout_that_asks_for_a_retry() {
    let rules = [slow_reply("textDocument/definition", 2_000, json!([]))];
    let stage =
        Stage::with(workspace(&rules), |settings| settings.limits.timeout = Duration::from_millis(250));
    // Wait until the server runs: before, its start would be the reason.
    stage.payload(DOCUMENT_DIAGNOSTICS, json!({ "uri": stage.uri("a.fake") }));
    assert_eq!(late(&stage, DEFINITION, stage.at("a.fake", 0, 0))["reason"], "timeout");
}

#[test]
fn s6_3_server_that_is_not_ready_is_named_and_asks_for_a_retry() {
    let rules = [
        json!({ "on": "textDocument/didOpen", "nth": 1, "do": [{ "progress": { "token": "load", "kind": "begin" } }] }),
        reply("textDocument/references", json!([location("$root/a.fake", [0, 0, 0, 1])])),
    ];
    let builder = Workbench::new().file("a.fake", "x\n").server_with("fake", script(&rules), |entry| {
        entry.ready = Some(ReadinessRule::Progress { grace_ms: 60_000 });
    });
    let stage = Stage::with(builder, |settings| settings.limits.timeout = Duration::from_millis(200));
    let details = late(&stage, REFERENCES, stage.at("a.fake", 0, 0));
    assert_eq!((&details["reason"], &details["servers"]), (&json!("indexing"), &json!(["fake"])));
}
