//! The command line from the outside: output, exit codes and the daemon's life cycle.
//!
//! Every test runs the real program in its own sandbox. A snapshot holds the exit code, stdout and stderr of a command, with
//! paths that differ between runs replaced.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bad_machine;
mod check;
mod client_settings;
mod config;
mod daemon;
mod doctor_bundle;
mod environment_errors;
mod first_minutes;
mod help;
mod http;
mod replacement;
mod server_choices;
mod servers;
mod stdio;
mod surfaces;
mod terminal;
mod token;
mod trust;

use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;
use tenon_testkit::processes::ProcessInfo;
use tenon_testkit::{McpClient, PATIENCE, Sandbox};

/// Runs a command; its exit code, stdout and stderr as one text.
fn transcript(sandbox: &Sandbox, command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    tenon_testkit::transcript(sandbox, &output)
}

/// Runs `tenon` with these arguments.
fn tenon(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.tenon().args(args).output().expect("the program starts")
}

/// Runs a command that must succeed, and parses the JSON on its stdout.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let output = tenon(sandbox, args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("stdout is JSON")
}

/// Polls the daemon's status until it meets the condition.
fn wait_for_status(sandbox: &Sandbox, what: &str, condition: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = json(sandbox, &["status", "--json"]);
        if condition(&status) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {status:#}");
    }
}

/// An initialized client of `tenon mcp`.
fn connect(sandbox: &Sandbox, args: &[&str]) -> McpClient {
    connect_with(sandbox.tenon().arg("mcp").args(args))
}

fn connect_with(command: &mut Command) -> McpClient {
    McpClient::connect(command)
}

/// The processes in the sandbox that run this `tenon` command.
fn running(sandbox: &Sandbox, command: &str) -> Vec<ProcessInfo> {
    let is = |process: &ProcessInfo| process.command.get(1).is_some_and(|word| word == command);
    sandbox.processes().into_iter().filter(is).collect()
}

/// The only daemon in the sandbox.
fn the_daemon(sandbox: &Sandbox) -> ProcessInfo {
    let daemons = running(sandbox, "daemon");
    assert_eq!(daemons.len(), 1, "{daemons:#?}");
    daemons.into_iter().next().unwrap()
}
