//! For any invalid input and any daemon failure, the hook exits with 0 and prints nothing on stdout.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenon_fake_lsp::scripts::{deaf, linter};
use tenon_testkit::PATIENCE;

use crate::workspace::Workspace;

fn assert_silent(workspace: &Workspace, event: &Value) {
    let output = workspace.hook(event.to_string().as_bytes());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{event}");
}

#[test]
fn invalid_events_are_ignored() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
    let whole = workspace.write_event(&workspace.path("a.fake")).to_string();
    let long = "[".repeat(100_000);
    for input in ["", " ", "{", "null", "[]", "7", "\"x\"", "{}", &whole[..whole.len() / 2], &long, "\u{0}"] {
        assert!(workspace.hook(input.as_bytes()).stdout.is_empty(), "{input}");
    }
    assert!(workspace.hook(b"\xff\xfe{}").stdout.is_empty());
    workspace.sandbox.assert_no_processes();
}

#[test]
fn a_hundred_randomly_corrupted_events_are_ignored() {
    let workspace = Workspace::new("//- a.fake\nbad\n");
    let good = workspace.write_event(&workspace.path("gone.fake")).to_string().into_bytes();
    let mut state = 7_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for _ in 0..100 {
        let mut bytes = good.clone();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(3) {
                0 => bytes[at] = u8::try_from(below(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        assert!(workspace.hook(&bytes).stdout.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn files_that_cannot_be_checked_are_ignored() {
    let workspace = Workspace::new("//- a.fake\nbad\n//- a.txt\nx\n//- sub/x\n").server("fake", linter());
    let outside = workspace.sandbox.dir("tmp").join("x.fake");
    std::fs::write(&outside, "bad").unwrap();
    symlink(&outside, workspace.sandbox.root().join("out.fake")).unwrap();
    for file in [
        outside.to_str().unwrap(),
        "/etc/passwd",
        "/",
        "",
        "../../../etc/passwd",
        &workspace.path("out.fake"),
        &workspace.path("gone.fake"),
        &workspace.path("sub"),
        &workspace.path("a.txt"),
        "\u{0}",
        &"x/".repeat(5000),
    ] {
        assert_silent(&workspace, &workspace.write_event(file));
    }
    std::fs::write(workspace.sandbox.root().join("binary.fake"), [0, 159, 146, 150]).unwrap();
    let binary = workspace.run_hook(&workspace.write_event(&workspace.path("binary.fake"))).unwrap();
    assert_eq!(binary, "edited binary.fake\nnot checked: binary.fake (not UTF-8 text, or too large)");
    assert!(workspace.write("a.fake", "worse bad\nbad\n").is_some(), "the daemon no longer answers");
}

#[test]
fn file_outside_every_workspace_starts_no_daemon() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
    let folder = workspace.sandbox.dir("tmp");
    std::fs::write(folder.join("x.fake"), "bad").unwrap();
    let mut event = workspace.write_event(folder.join("x.fake").to_str().unwrap());
    event["cwd"] = json!(folder);
    let output = workspace.hook_in(&folder, event.to_string().as_bytes());
    assert!(output.stdout.is_empty());
    workspace.sandbox.assert_no_processes();
}

#[test]
fn file_in_another_workspace_is_checked_there() {
    let workspace = Workspace::new("//- a.fake\nbad\n//- other/b.fake\nbad\n").server("fake", linter());
    let other = workspace.sandbox.dir("home").join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    std::fs::write(other.join("b.fake"), "bad").unwrap();
    let text = workspace.run_hook(&workspace.write_event(other.join("b.fake").to_str().unwrap())).unwrap();
    assert!(text.ends_with("\nerror b.fake:1:1: this is bad"), "{text}");
}

#[test]
fn daemon_that_cannot_start_fails_no_edit() {
    let workspace = Workspace::new("//- tenon.toml\nnot = [toml\n//- a.fake\nbad\n").server("fake", linter());
    assert_silent(&workspace, &workspace.write_event(&workspace.path("a.fake")));
    let open = workspace.sandbox.dir("run").join("tenon");
    let _ = std::fs::create_dir(&open);
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_silent(&workspace, &workspace.write_event(&workspace.path("a.fake")));
    workspace.sandbox.assert_no_processes();
}

#[test]
fn hung_daemon_fails_no_edit() {
    let workspace = Workspace::new("//- a.fake\ngood\n").server("fake", linter());
    assert!(workspace.write("a.fake", "bad\n").is_some());
    let daemon = Pid::from_raw(i32::try_from(workspace.daemon().id).unwrap());
    kill(daemon, Signal::SIGSTOP).unwrap();
    assert_silent(&workspace, &workspace.write_event(&workspace.path("a.fake")));
    kill(daemon, Signal::SIGCONT).unwrap();
    assert!(workspace.write("a.fake", "bad bad\n").is_some());
}

#[test]
fn next_edit_is_answered_after_each_of_a_hundred_daemon_kills() {
    let workspace = Workspace::new("//- a.fake\ngood\n").server("fake", deaf(linter()));
    for round in 0..100 {
        // One more than in the last report, which outlives the daemon.
        let written = "bad\n".repeat(round + 1);
        // On a busy machine a server may miss the time limit, and then there is no text.
        let deadline = Instant::now() + PATIENCE;
        let text = loop {
            match workspace.write("a.fake", &written) {
                Some(text) if text.contains("NEW") => break text,
                text => assert!(Instant::now() < deadline, "round {round}: {text:?}"),
            }
        };
        assert!(text.ends_with(&format!("\nNEW error a.fake:{}:1: this is bad", round + 1)), "{text}");
        workspace.daemon().kill();
        workspace.sandbox.assert_no_processes();
    }
}

#[test]
fn agent_that_sends_no_event_is_not_waited_for() {
    let workspace = Workspace::new("//- a.fake\nbad\n");
    let mut command = workspace.sandbox.tenon();
    command.args(["hook", "post-edit"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
}
