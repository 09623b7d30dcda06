//! Document caches end to end: commands, server, errors and killed builds.
//!
//! Every test runs the real program in a separate sandbox.

#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

mod commands;
mod error_codes;
mod hostile_input;
mod killed_builds;
mod questions;
mod server;

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tenon_testkit::{McpClient, Revision, Sandbox};

/// Two documents with known query results.
const SOURCES: &str = "
    //- docs/Guide/Deploy.md
    Ship the release to the staging area
    //- docs/notes.md
    release notes
";

/// A sandbox with `docs` and a cache built from it, `caches/docs`.
fn built() -> Sandbox {
    let sandbox = Sandbox::with_tree(SOURCES);
    let output = context(&sandbox, &["build", "--sources", "docs", "--cache", "caches/docs"]);
    assert!(output.status.success(), "{output:?}");
    sandbox
}

/// Runs `tenon context`.
fn context<S: AsRef<OsStr>>(sandbox: &Sandbox, args: &[S]) -> Output {
    sandbox.tenon().arg("context").args(args).output().expect("the program starts")
}

/// Runs a successful `tenon context` and returns its stdout.
fn answer<S: AsRef<OsStr>>(sandbox: &Sandbox, args: &[S]) -> String {
    let output = context(sandbox, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a failing `tenon context` and returns its exit code. The error is on stderr; stdout is empty.
fn exit<S: AsRef<OsStr>>(sandbox: &Sandbox, args: &[S]) -> i32 {
    let output = context(sandbox, args);
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(output.stderr.starts_with(b"error: ") && output.stderr.ends_with(b"\n"), "{output:?}");
    output.status.code().unwrap()
}

/// A client of `tenon context-server` for the caches of the sandbox.
fn serve(sandbox: &Sandbox, revision: Revision) -> McpClient {
    serve_by(sandbox.tenon().arg("context-server"), sandbox, revision)
}

fn serve_by(command: &mut Command, sandbox: &Sandbox, revision: Revision) -> McpClient {
    command.env("CONTEXT_CACHE_ROOT", sandbox.root().join("caches"));
    let mut client = McpClient::over_pipes(command, revision);
    if revision == Revision::Sessions {
        client.initialize();
    }
    client
}

/// Calls a tool that fails, checks that the answer is exactly the contract's error object, and returns the code.
fn error_code(client: &mut McpClient, tool: &str, arguments: Value) -> String {
    let result = client.call_tool(tool, arguments).expect("a tool error, not a protocol error");
    assert!(result.is_error, "{result:?}");
    assert_eq!(result.text, [format!("{}\n", result.structured)]);
    let schema = include_str!("../../../../schemas/context-error.json");
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(validator.is_valid(&result.structured), "{:#}", result.structured);
    result.structured["error"]["code"].as_str().unwrap().to_owned()
}

/// The names in a folder of the workspace.
fn names(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(sandbox.tree().path(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
