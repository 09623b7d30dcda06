//! The end of the service, however it comes: nothing is left behind, not even servers that ignore everything.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenon_testkit::{PATIENCE, processes};

use crate::host::{Host, Stage, linter};

/// A server that ignores EOF, SIGTERM and `exit`.
fn deaf() -> Value {
    let mut script = linter();
    for key in ["deaf_to_eof", "deaf_to_sigterm", "deaf_to_exit"] {
        script[key] = json!(true);
    }
    script
}

fn started() -> (Stage, Host) {
    let stage = Stage::new("//- a.fake\nbad\n").server("deaf", deaf()).server("polite", linter());
    let mut host = stage.start(json!({}));
    assert_eq!(host.check(&stage.path("a.fake")).as_array().unwrap().len(), 1);
    (stage, host)
}

fn pid(host: &Host) -> Pid {
    Pid::from_raw(i32::try_from(host.id()).unwrap())
}

#[test]
fn shutdown_answers_null_and_ends_with_all_servers() {
    let (stage, mut host) = started();
    assert_eq!(host.result("lsp/shutdown", json!({})), Value::Null);
    assert_eq!(host.wait().code(), Some(0));
    stage.sandbox.assert_no_processes();
    assert!(stage.transcript("polite").iter().any(|line| line["in"]["method"] == "exit"));
}

#[test]
fn the_end_of_stdin_leaves_no_orphan() {
    let (stage, mut host) = started();
    host.close_stdin();
    assert_eq!(host.wait().code(), Some(0));
    stage.sandbox.assert_no_processes();
}

#[test]
fn signals_end_it_properly() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (stage, mut host) = started();
        kill(pid(&host), signal).unwrap();
        assert_eq!(host.wait().code(), Some(0), "{signal}");
        stage.sandbox.assert_no_processes();
    }
}

#[test]
fn not_even_sigkill_leaves_a_server_behind() {
    let (stage, first) = started();
    drop(first);
    for round in 0..100 {
        let mut host = stage.start(json!({}));
        // In turns before its servers start, while they do or just after, and with a question open.
        match round % 3 {
            0 => {}
            1 => drop(host.begin("lsp/checkFile", json!({ "filePath": stage.path("a.fake") }))),
            _ => assert_eq!(host.check(&stage.path("a.fake")).as_array().unwrap().len(), 1),
        }
        kill(pid(&host), Signal::SIGKILL).unwrap();
        assert!(processes::wait_for(host.id(), PATIENCE));
        stage.sandbox.assert_no_processes();
    }
}

#[test]
fn a_hosts_group_kill_reaches_the_servers() {
    let (stage, mut host) = started();
    killpg(pid(&host), Signal::SIGKILL).unwrap();
    host.wait();
    for server in ["deaf", "polite"] {
        assert!(processes::wait_for(stage.pids(server)[0], PATIENCE));
    }
}

#[test]
fn a_server_that_hangs_in_its_start_does_not_keep_the_service() {
    let mut hung = deaf();
    hung["initialize"] = json!({ "hang": true });
    let stage = Stage::new("//- a.fake\nbad\n").server("hung", hung);
    let mut host = stage.start(json!({ "firstTouchTimeout": 300 }));
    assert_eq!(host.check(&stage.path("a.fake")), json!([]));
    assert_eq!(host.result("lsp/shutdown", json!({})), Value::Null);
    assert_eq!(host.wait().code(), Some(0));
    stage.sandbox.assert_no_processes();
}

#[test]
fn shutdown_ends_a_check_that_is_under_way() {
    let stage = Stage::new("//- a.fake\nbad\n")
        .server("silent", json!({ "capabilities": { "textDocumentSync": 1 } }));
    let mut host = stage.start(json!({ "firstTouchTimeout": 600_000 }));
    let check = host.begin("lsp/checkFile", json!({ "filePath": stage.path("a.fake") }));
    let shutdown = host.begin("lsp/shutdown", Value::Null);
    let first = host.message();
    assert_eq!((&first["id"], &first["result"]), (&json!(check), &json!([])));
    let second = host.message();
    assert_eq!((&second["id"], &second["result"]), (&json!(shutdown), &Value::Null));
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn without_its_pipes_navigation_is_off_and_says_so() {
    let (_stage, mut host) = started();
    host.close_stdin();
    host.wait();
    let text = host.stderr();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("navigation is off"));
}
