//! `tenon compose` from the outside: what people read, what scripts get, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod machines;
mod tool;
mod words;

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

/// Runs `tenon compose` with these arguments.
fn compose(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.tenon().arg("compose").args(args).output().expect("the program can be started")
}

/// The same with something on stdin.
fn compose_stdin(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> Output {
    use std::io::Write;
    let mut command: Command = sandbox.tenon();
    command.arg("compose").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// A whole command as text.
fn transcript(output: &Output) -> String {
    let mut transcript = format!("exit: {}\n", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            transcript.push_str(&format!("--- {name}\n{}", String::from_utf8_lossy(bytes)));
        }
    }
    transcript
}

/// A workspace of one module with one route for every path.
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
