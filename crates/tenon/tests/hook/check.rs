//! `tenon check` with a daemon: the same report, from servers that are there already.

use std::process::{Output, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tenon_testkit::PATIENCE;

use crate::workspace::{Workspace, linter};

fn check(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.sandbox.tenon().arg("check").args(args).output().unwrap()
}

fn starts(workspace: &Workspace, server: &str) -> usize {
    workspace.transcript(server).iter().filter(|line| line.get("started").is_some()).count()
}

#[test]
fn a_daemons_servers_say_the_same_in_every_format() {
    let tree = "//- a.fake\nso bad\nand bad\n//- sub/b.fake\ngood\n//- c.fake\n😀 bad\n//- notes.txt\nx\n";
    let workspace = Workspace::new(tree).server("fake", linter());
    assert!(workspace.write("sub/b.fake", "good\n").is_none(), "the daemon runs");
    for format in ["text", "json", "sarif", "github"] {
        let asked = check(&workspace, &["--format", format]);
        assert_eq!(starts(&workspace, "fake"), 1, "{format}: no server is started");
        assert_eq!(asked.status.code(), Some(1), "{asked:?}");
        std::fs::remove_file(workspace.sandbox.place("state").join("fake.jsonl")).unwrap();
        let alone = check(&workspace, &["--format", format, "--no-daemon"]);
        assert_eq!(starts(&workspace, "fake"), 1, "{format}: a server is started for it");
        std::fs::remove_file(workspace.sandbox.place("state").join("fake.jsonl")).unwrap();
        assert_eq!(asked, alone);
        // The daemon's server writes on into the file that is gone; a new one begins with its first line.
        assert!(workspace.sandbox.tenon().arg("stop").status().unwrap().success());
        assert!(workspace.write("sub/b.fake", "good\n").is_none());
    }
}

#[test]
fn a_slow_server_gets_the_patience_of_a_check() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 4000 }, { "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- a.fake\ngood\n//- b.fake\nbad\n").server("slow", script);
    assert!(workspace.write("a.fake", "good\n").is_none(), "the daemon's server has had its first check");
    let output = check(&workspace, &["b.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(starts(&workspace, "slow"), 1);
}

#[test]
fn a_server_that_is_broken_there_is_tried_afresh() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "crash.fake", "do": [{ "exit": 3 }] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- crash.fake\nx\n//- b.fake\nbad\n").server("fake", script);
    assert!(workspace.write("crash.fake", "x\n").is_none());
    let output = check(&workspace, &["b.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(starts(&workspace, "fake"), 2);
}

#[test]
fn changed_settings_are_not_those_of_a_daemon_that_runs() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
    assert!(workspace.write("a.fake", "bad\n").is_some());
    let workspace = workspace.server("other", linter());
    let output = check(&workspace, &["a.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!((starts(&workspace, "fake"), starts(&workspace, "other")), (2, 1));
}

#[test]
fn somebody_who_has_waited_enough_sees_what_there_is() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- a.fake\nbad\n//- silent.fake\nbad\n").server("fake", script);
    assert!(workspace.write("a.fake", "bad\n").is_some(), "the daemon runs");
    let mut command = workspace.sandbox.tenon();
    command.args(["check", "a.fake", "silent.fake"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let asked = |line: &serde_json::Value| {
        line["in"]["method"] == "textDocument/didOpen" && line.to_string().contains("silent.fake")
    };
    while !workspace.transcript("fake").iter().any(asked) {
        assert!(Instant::now() < deadline, "nobody asks about the file");
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (found, talk) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    // The other file may have been about to be done.
    let unchecked = talk.lines().find(|line| line.starts_with("not checked: ")).unwrap_or_default();
    assert!(found.contains("a.fake:1:1") && unchecked.contains("`silent.fake`"), "{found}{talk}");
    assert_eq!(starts(&workspace, "fake"), 1);
}
