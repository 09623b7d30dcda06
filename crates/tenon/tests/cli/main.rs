//! The command line from the outside: output, exit codes and the daemon's life cycle.
//!
//! Every test runs the real program in its own sandbox. A snapshot holds the exit code, stdout and stderr of a command, with
//! paths that differ between runs replaced.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod check;
mod config;
mod daemon;
mod environment_errors;
mod help;
mod http;
mod replacement;
mod servers;
mod token;
mod trust;

use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;
use tenon_testkit::processes::Process;
use tenon_testkit::{Client, PATIENCE, Revision, Sandbox};

/// Runs a command; its exit code, stdout and stderr as one text.
fn transcript(sandbox: &Sandbox, command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).replace(sandbox.folder().to_str().unwrap(), "[SANDBOX]")
    };
    let mut transcript = format!("exit: {}\n", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            transcript.push_str(&format!("--- {name}\n{}", text(bytes)));
        }
    }
    transcript
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
fn connect(sandbox: &Sandbox, args: &[&str]) -> Client {
    connect_with(sandbox.tenon().arg("mcp").args(args))
}

fn connect_with(command: &mut Command) -> Client {
    let mut client = Client::over_pipes(command, Revision::Sessions);
    client.initialize();
    client
}

/// The processes in the sandbox that run this `tenon` command.
fn running(sandbox: &Sandbox, command: &str) -> Vec<Process> {
    let is = |process: &Process| process.command.get(1).is_some_and(|word| word == command);
    sandbox.processes().into_iter().filter(is).collect()
}

/// The only daemon in the sandbox.
fn the_daemon(sandbox: &Sandbox) -> Process {
    let daemons = running(sandbox, "daemon");
    assert_eq!(daemons.len(), 1, "{daemons:#?}");
    daemons.into_iter().next().unwrap()
}
