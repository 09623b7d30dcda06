//! Tasks and memory for a person at a terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use super::{tenon, text};

/// Runs a command that must succeed; its stdout.
fn run(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = tenon(sandbox, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    text(&output.stdout)
}

#[test]
fn person_adds_starts_notes_and_closes_a_task() {
    let sandbox = Sandbox::new();
    let added = run(&sandbox, &["tasks", "add", "Fix the login", "--step", "Reproduce", "--step", "Fix"]);
    assert_eq!(added, "added TASK-001 Fix the login in PLAN-001 Tasks\n>  1 [ ] Reproduce\n   2 [ ] Fix\n");
    assert!(run(&sandbox, &["tasks", "start", "login"]).contains("TASK-001 Fix the login (active"));
    run(&sandbox, &["tasks", "note", "it", "is", "the", "clock"]);
    let done = run(&sandbox, &["tasks", "done", "1", "1"]);
    assert!(done.contains("step 1 done") && !done.contains("next:"), "{done}");
    let refused = tenon(&sandbox, &["tasks", "done", "9"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let data: Value = serde_json::from_str(&run(&sandbox, &["tasks", "done", "--json"])).unwrap();
    assert_eq!((&data["id"], &data["status"]), (&json!("TASK-001"), &json!("done")));
    let board = run(&sandbox, &["tasks", "board"]);
    assert!(board.starts_with("todo (0)") && board.contains("TASK-001 2/2 Fix the login"), "{board}");
    assert!(run(&sandbox, &["tasks", "show"]).contains("note: "));
}

#[test]
fn markdown_list_is_imported_and_exported() {
    let sandbox = Sandbox::new();
    let list = "# Release\n\n- [ ] Ship it\n  - [x] Build\n  - [ ] Publish\n- [x] Announce\n";
    sandbox.tree().write("todo.md", list);
    let file = sandbox.root().join("todo.md");
    let imported = tenon(&sandbox, &["tasks", "import", file.to_str().unwrap()]);
    assert_eq!(text(&imported.stderr), "added 2 tasks\n");
    assert_eq!(run(&sandbox, &["tasks", "export"]), list);
    let again = tenon(&sandbox, &["tasks", "import", file.to_str().unwrap()]);
    assert_eq!(text(&again.stderr), "added 0 tasks, 2 known already\n");
    sandbox.tree().write("prose.md", "No list here.\n");
    let none = tenon(&sandbox, &["tasks", "import", sandbox.root().join("prose.md").to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
}

#[test]
fn notes_are_added_recalled_shown_and_forgotten() {
    let sandbox = Sandbox::new();
    let added = run(&sandbox, &["memory", "add", "The build needs libatomic on arm"]);
    let id = added.trim().trim_start_matches("remembered ").to_owned();
    assert!(run(&sandbox, &["memory", "recall", "arm build"]).starts_with(&format!("{id} note ")));
    assert!(run(&sandbox, &["memory", "show", &id]).contains("\nThe build needs libatomic on arm\n"));
    assert!(run(&sandbox, &["memory", "forget", &id]).starts_with("forgot "));
    assert_eq!(tenon(&sandbox, &["memory", "recall", "arm"]).status.code(), Some(1));
    assert_eq!(tenon(&sandbox, &["memory", "forget", "#999"]).status.code(), Some(1));
}

#[test]
fn watch_prints_changes_as_they_happen() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["tasks", "add", "Before"]);
    let mut watch = sandbox.tenon();
    watch.args(["tasks", "watch", "--count", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = watch.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(watching.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.starts_with("watching"), "{told}");
    run(&sandbox, &["tasks", "add", "After"]);
    let output = watching.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.contains("TASK-002 task created After"), "{shown}");
}

/// What an agent gets when its session starts, through the hook alone.
#[test]
fn session_start_prints_what_was_being_done() {
    let sandbox = Sandbox::new();
    let event =
        json!({"hook_event_name": "SessionStart", "source": "compact", "cwd": sandbox.root()}).to_string();
    let hook = |name: &str, event: &str| {
        let mut command = sandbox.tenon();
        command.args(["hook", name]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        text(&output.stdout)
    };
    assert_eq!(hook("session-start", &event), "");
    assert!(!sandbox.dir("data").join("tenon").exists(), "a hook creates no store");
    run(
        &sandbox,
        &["tasks", "add", "Move sessions", "--step", "Read the code", "--step", "Write the adapter"],
    );
    run(&sandbox, &["tasks", "start"]);
    run(&sandbox, &["tasks", "done", "1", "1"]);
    run(&sandbox, &["memory", "add", "Decision: one hash per user"]);
    let said: Value = serde_json::from_str(&hook("session-start", &event)).unwrap();
    let context = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "SessionStart");
    for part in [
        "TASK-001 Move sessions",
        "Open step: 2 Write the adapter",
        "Last decision: ",
        "one hash per user",
        "Next action: ",
    ] {
        assert!(context.contains(part), "{part}: {context}");
    }
    assert!(context.len() < 1200);
    let compact = event.replace("SessionStart", "PreCompact");
    let said = hook("pre-compact", &compact);
    assert_eq!(said, format!("Keep this in the summary:\n{context}\n"));
    assert!(said.len() <= 1200);
}
