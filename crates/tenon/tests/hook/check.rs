//! `tenon check` with a running daemon: the same report, from the daemon's servers.

use std::process::{Output, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tenon_fake_lsp::scripts::linter;
use tenon_testkit::PATIENCE;

use crate::workspace::Workspace;

fn check(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.sandbox.tenon().arg("check").args(args).output().unwrap()
}

fn starts(workspace: &Workspace, server: &str) -> usize {
    workspace.transcript(server).iter().filter(|line| line.get("started").is_some()).count()
}

/// Begins a new transcript. A running server still writes to the old one, and none may create a file there.
fn start_transcript(workspace: &Workspace, server: &str) {
    let path = workspace.sandbox.dir("state").join(format!("{server}.jsonl"));
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
}

#[test]
fn daemon_and_own_servers_give_the_same_report_in_every_format() {
    let tree = "//- a.fake\nso bad\nand bad\n//- sub/b.fake\ngood\n//- c.fake\n😀 bad\n//- notes.txt\nx\n";
    let workspace = Workspace::new(tree).server("fake", linter());
    assert!(workspace.write("sub/b.fake", "good\n").is_none(), "the daemon reports a clean file");
    for format in ["text", "json", "sarif", "github"] {
        let with_daemon = check(&workspace, &["--format", format]);
        assert_eq!(starts(&workspace, "fake"), 1, "{format}: the check started a server");
        assert_eq!(with_daemon.status.code(), Some(1), "{with_daemon:?}");
        start_transcript(&workspace, "fake");
        let without_daemon = check(&workspace, &["--format", format, "--no-daemon"]);
        assert_eq!(starts(&workspace, "fake"), 1, "{format}: the check did not start its own server");
        start_transcript(&workspace, "fake");
        assert_eq!(with_daemon, without_daemon);
        // The daemon's server still writes to the deleted transcript; restart it to get a new one.
        assert!(workspace.sandbox.tenon().arg("stop").status().unwrap().success());
        assert!(workspace.write("sub/b.fake", "good\n").is_none());
    }
}

#[test]
fn slow_server_gets_the_time_limit_of_a_check() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "wait_ms": 4000 }, { "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- a.fake\ngood\n//- b.fake\nbad\n").server("slow", script);
    assert!(workspace.write("a.fake", "good\n").is_none(), "the first check reports nothing");
    let output = check(&workspace, &["b.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(starts(&workspace, "slow"), 1);
}

#[test]
fn server_that_is_broken_in_the_daemon_is_started_again_for_the_check() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "crash.fake", "do": [{ "exit": 3 }] },
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- crash.fake\nx\n//- b.fake\nbad\n").server("fake", script);
    assert_eq!(workspace.write("crash.fake", "y\n").unwrap(), "edited crash.fake:1\nnot checked by: fake");
    let output = check(&workspace, &["b.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(starts(&workspace, "fake"), 2);
}

#[test]
fn daemon_with_outdated_settings_is_not_used() {
    let workspace = Workspace::new("//- a.fake\ngood\n").server("fake", linter());
    assert!(workspace.write("a.fake", "bad\n").is_some());
    let workspace = workspace.server("other", linter());
    let output = check(&workspace, &["a.fake"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!((starts(&workspace, "fake"), starts(&workspace, "other")), (2, 1));
}

#[test]
fn interrupted_check_prints_partial_results() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "file": "a.fake", "do": [{ "publish": { "uri": "$uri" } }] },
    ]});
    let workspace = Workspace::new("//- a.fake\ngood\n//- silent.fake\nbad\n").server("fake", script);
    assert!(workspace.write("a.fake", "bad\n").is_some(), "the daemon reports the error");
    let mut command = workspace.sandbox.tenon();
    command.args(["check", "a.fake", "silent.fake"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let opened = |line: &serde_json::Value| {
        line["in"]["method"] == "textDocument/didOpen" && line.to_string().contains("silent.fake")
    };
    while !workspace.transcript("fake").iter().any(opened) {
        assert!(Instant::now() < deadline, "the file was not opened");
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    // `a.fake` may be listed as unchecked, too.
    let unchecked = stderr.lines().find(|line| line.starts_with("not checked: ")).unwrap_or_default();
    assert!(stdout.contains("a.fake:1:1") && unchecked.contains("`silent.fake`"), "{stdout}{stderr}");
    assert_eq!(starts(&workspace, "fake"), 1);
}
