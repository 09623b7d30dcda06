//! Plans, tasks and memory end to end: surfaces, commands and store.
//!
//! Every test runs the real program in a separate sandbox.

#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

mod commands;
mod daemons;
mod killed_daemon;
mod lean;
mod links;
mod machines;
mod people;
mod store;
mod surfaces;

use std::process::{Command, Output};

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox};

fn connect(sandbox: &Sandbox) -> McpClient {
    connect_by(sandbox.tenon().args(["mcp", "--no-daemon", "--surface", "tasks,memory"]))
}

fn connect_by(command: &mut Command) -> McpClient {
    McpClient::connect(command)
}

/// Calls a tool and checks the answer: the same valid envelope as structured result and as text.
fn call(client: &mut McpClient, tool: &str, arguments: Value) -> Value {
    let result = client.call_tool(tool, arguments).unwrap();
    let envelope = result.structured;
    assert_eq!(result.text.len(), 1);
    assert_eq!(serde_json::from_str::<Value>(&result.text[0]).unwrap(), envelope);
    assert_eq!(envelope["success"], json!(!result.is_error), "{envelope}");
    assert_envelope(&envelope);
    envelope
}

fn assert_envelope(envelope: &Value) {
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/envelope.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(envelope), "{envelope}");
}

/// Runs `tenon` with these arguments.
fn tenon(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.tenon().args(args).output().expect("the program can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Exit code and output of a command, with paths replaced that differ between runs.
fn transcript(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = tenon(sandbox, args);
    tenon_testkit::transcript(sandbox, &output)
}

/// A sandbox with a plan, three tasks and some notes.
fn planned() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut client = connect(&sandbox);
    let step = |title: &str| json!({"title": title, "success_criteria": [format!("{title} worked")]});
    for (tool, arguments) in [
        ("tasks_create", json!({"title": "Ship it"})),
        (
            "tasks_create",
            json!({"title": "Build", "parent": "PLAN-001", "priority": "high", "tags": ["ci"],
                "contract": "It builds on a clean machine",
                "steps": [{"title": "Prepare", "success_criteria": ["all is there"], "steps": [step("Fetch")]}, step("Compile")]}),
        ),
        (
            "tasks_create",
            json!({"title": "Announce \u{1b}[31mit", "parent": "PLAN-001", "depends_on": ["TASK-001"]}),
        ),
        ("tasks_create", json!({"title": "Clean up", "parent": "PLAN-001", "priority": "low"})),
        ("tasks_note", json!({"task": "TASK-001", "path": "s:0.s:0", "note": "half way through the lemons"})),
        (
            "tasks_block",
            json!({"task": "TASK-001", "path": "s:0.s:0", "blocked": true, "reason": "no network"}),
        ),
    ] {
        assert_eq!(call(&mut client, tool, arguments)["success"], true, "{tool}");
    }
    client.close();
    sandbox
}
