//! The command line from the outside: what people and scripts see, and how the daemon lives.
//!
//! Every test runs the real program in a sandbox of its own. Snapshots hold the exit code, stdout and stderr of a whole
//! command, with what differs from run to run replaced.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod check;
mod config;
mod daemon;
mod help;
mod http;
mod refusals;
mod replacement;
mod servers;
mod token;
mod trust;

use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;
use tenon_testkit::processes::Process;
use tenon_testkit::{Client, PATIENCE, Revision, Sandbox};

/// A whole command as text.
fn transcript(sandbox: &Sandbox, command: &mut Command) -> String {
    let output = command.output().expect("the program can be started");
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
    sandbox.tenon().args(args).output().expect("the program can be started")
}

/// Runs a command that must succeed, and reads the JSON it prints.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let output = tenon(sandbox, args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("stdout is JSON")
}

/// Asks for the daemon's status until it is as it should be. How soon the daemon notices something is not ours to time.
fn wait_for_status(sandbox: &Sandbox, what: &str, good: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = json(sandbox, &["status", "--json"]);
        if good(&status) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {status:#}");
    }
}

/// A client over `tenon mcp`, past its handshake.
fn connect(sandbox: &Sandbox, args: &[&str]) -> Client {
    connect_with(sandbox.tenon().arg("mcp").args(args))
}

fn connect_with(command: &mut Command) -> Client {
    let mut client = Client::over_pipes(command, Revision::Sessions);
    client.initialize();
    client
}

/// The processes in the sandbox that run this command of ours.
fn running(sandbox: &Sandbox, command: &str) -> Vec<Process> {
    let is = |process: &Process| process.command.get(1).is_some_and(|word| word == command);
    sandbox.processes().into_iter().filter(is).collect()
}

/// The one daemon of the sandbox.
fn the_daemon(sandbox: &Sandbox) -> Process {
    let daemons = running(sandbox, "daemon");
    assert_eq!(daemons.len(), 1, "{daemons:#?}");
    daemons.into_iter().next().unwrap()
}
