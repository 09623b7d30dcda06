//! The `tasks` and `memory` surfaces: envelopes, error codes, persistence.

use serde_json::json;
use tenon_testkit::{McpClient, Sandbox};

use crate::{call, connect};

#[test]
fn plan_survives_a_restart() {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox);
    let plan = call(&mut client, "tasks_create", json!({ "title": "Ship it" }));
    assert_eq!(plan["result"]["id"], "PLAN-001");
    let task = call(
        &mut client,
        "tasks_create",
        json!({ "title": "Build", "parent": "PLAN-001",
            "steps": [{ "title": "Compile", "success_criteria": ["it links"] }] }),
    );
    assert_eq!(task["result"]["id"], "TASK-001");
    call(&mut client, "tasks_note", json!({ "task": "TASK-001", "note": "half way" }));
    client.close();

    let mut client = connect(&sandbox);
    let radar = call(&mut client, "tasks_radar", json!({ "task": "TASK-001" }));
    assert_eq!(radar["result"]["steps"]["total"], 1);
    let found = call(&mut client, "memory_search", json!({ "query": "half" }));
    assert!(!found["result"]["hits"].as_array().unwrap().is_empty());
    client.close();
}

#[test]
fn tool_errors_are_envelopes_and_unknown_tools_protocol_errors() {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox);
    for (tool, arguments, code) in [
        ("tasks_create", json!({}), "INVALID_INPUT"),
        ("tasks_create", json!({ "title": 7 }), "INVALID_INPUT"),
        ("tasks_create", json!({ "title": "x", "more": 1 }), "INVALID_INPUT"),
        ("tasks_note", json!({ "task": "PLAN-404", "note": "x" }), "UNKNOWN_ID"),
        ("tasks_radar", json!({ "task": "STEP-00000001" }), "INVALID_INPUT"),
        ("memory_status", json!({ "workspace": "no spaces" }), "INVALID_NAME"),
    ] {
        let envelope = call(&mut client, tool, arguments.clone());
        assert_eq!(envelope["error"]["code"], code, "{tool} {arguments}: {envelope}");
    }
    let created = call(&mut client, "tasks_create", json!({ "title": "null is absent", "parent": null }));
    assert_eq!(created["success"], true);
    let unknown = client.call_tool("tasks_fly", json!({})).unwrap_err();
    assert_eq!(unknown.code, -32602);
    client.close();
}

#[test]
fn tool_list_is_under_16_kib() {
    let sandbox = Sandbox::new();
    for surface in ["tasks", "memory"] {
        let mut command = sandbox.tenon();
        command.args(["mcp", "--no-daemon", "--surface", surface]);
        let mut client = McpClient::connect(&mut command);
        let listed = client.request("tools/list", json!({})).unwrap();
        assert!(listed.to_string().len() < 16 * 1024, "{surface}: {}", listed.to_string().len());
        client.close();
    }
}
