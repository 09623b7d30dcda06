//! However the service ends, no process is left behind, not even servers that ignore every signal to exit.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenon_fake_lsp::scripts::{deaf, linter};
use tenon_testkit::{PATIENCE, processes};

use crate::host::{Host, Workspace};

fn started() -> (Workspace, Host) {
    let workspace =
        Workspace::new("//- a.fake\nbad\n").server("deaf", deaf(linter())).server("polite", linter());
    let mut host = workspace.start(json!({}));
    assert_eq!(host.check(&workspace.path("a.fake")).as_array().unwrap().len(), 1);
    (workspace, host)
}

fn pid(host: &Host) -> Pid {
    Pid::from_raw(i32::try_from(host.id()).unwrap())
}

#[test]
fn shutdown_answers_null_and_ends_with_all_servers() {
    let (workspace, mut host) = started();
    assert_eq!(host.result("lsp/shutdown", json!({})), Value::Null);
    assert_eq!(host.wait().code(), Some(0));
    workspace.sandbox.assert_no_processes();
    assert!(workspace.transcript("polite").iter().any(|line| line["in"]["method"] == "exit"));
}

#[test]
fn end_of_stdin_ends_all_processes() {
    let (workspace, mut host) = started();
    host.close_stdin();
    assert_eq!(host.wait().code(), Some(0));
    workspace.sandbox.assert_no_processes();
}

#[test]
fn sigterm_and_sigint_end_all_processes() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (workspace, mut host) = started();
        kill(pid(&host), signal).unwrap();
        assert_eq!(host.wait().code(), Some(0), "{signal}");
        workspace.sandbox.assert_no_processes();
    }
}

#[test]
fn sigkill_leaves_no_server_behind() {
    let (workspace, first) = started();
    drop(first);
    for round in 0..100 {
        let mut host = workspace.start(json!({}));
        // In turn: before its servers start, while they start, and after a check.
        match round % 3 {
            0 => {}
            1 => drop(host.begin("lsp/checkFile", json!({ "filePath": workspace.path("a.fake") }))),
            _ => assert_eq!(host.check(&workspace.path("a.fake")).as_array().unwrap().len(), 1),
        }
        kill(pid(&host), Signal::SIGKILL).unwrap();
        assert!(processes::wait_for_exit(host.id(), PATIENCE));
        workspace.sandbox.assert_no_processes();
    }
}

#[test]
fn group_kill_by_the_host_ends_the_servers() {
    let (workspace, mut host) = started();
    killpg(pid(&host), Signal::SIGKILL).unwrap();
    host.wait();
    for server in ["deaf", "polite"] {
        assert!(processes::wait_for_exit(workspace.pids(server)[0], PATIENCE));
    }
}

#[test]
fn server_that_hangs_at_startup_does_not_delay_shutdown() {
    let mut hung = deaf(linter());
    hung["initialize"] = json!({ "hang": true });
    let workspace = Workspace::new("//- a.fake\nbad\n").server("hung", hung);
    let mut host = workspace.start(json!({ "firstTouchTimeout": 300 }));
    assert_eq!(host.check(&workspace.path("a.fake")), json!([]));
    assert_eq!(host.result("lsp/shutdown", json!({})), Value::Null);
    assert_eq!(host.wait().code(), Some(0));
    workspace.sandbox.assert_no_processes();
}

#[test]
fn shutdown_ends_a_check_in_flight() {
    let workspace = Workspace::new("//- a.fake\nbad\n")
        .server("silent", json!({ "capabilities": { "textDocumentSync": 1 } }));
    let mut host = workspace.start(json!({ "firstTouchTimeout": 600_000 }));
    let check = host.begin("lsp/checkFile", json!({ "filePath": workspace.path("a.fake") }));
    let shutdown = host.begin("lsp/shutdown", Value::Null);
    let first = host.message();
    assert_eq!((&first["id"], &first["result"]), (&json!(check), &json!([])));
    let second = host.message();
    assert_eq!((&second["id"], &second["result"]), (&json!(shutdown), &Value::Null));
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn missing_pipes_turn_navigation_off_with_a_message() {
    let (_stage, mut host) = started();
    host.close_stdin();
    host.wait();
    let text = host.stderr();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("navigation is off"));
}
