//! `tenon compose` end to end: text and JSON formats, exit codes, and the MCP tool.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod json_format;
mod mcp_tool;
mod text_format;

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

/// Runs `tenon compose` with these arguments.
fn compose(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.tenon().arg("compose").args(args).output().expect("the program can be started")
}

/// Runs `tenon compose` with these arguments and this stdin.
fn compose_stdin(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> Output {
    use std::io::Write;
    let mut command: Command = sandbox.tenon();
    command.arg("compose").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// A workspace of one module with one route for each path.
fn workspace(paths: &[&str]) -> Value {
    let routes: Vec<Value> = paths
        .iter()
        .enumerate()
        .map(|(n, path)| {
            let handle = json!({"renderHandleVersion": "0.1", "kind": "route", "id": format!("lab.{n}")});
            json!({"id": format!("r{n}"), "path": path, "renderHandle": handle})
        })
        .collect();
    json!({
        "compositionSchemaVersion": "0.1",
        "modules": [{
            "packageId": "@acme/lab",
            "moduleApiVersion": "0.1",
            "instanceId": "lab",
            "runtime": {"status": "ready"},
            "contributions": {"routes": routes},
        }],
    })
}
