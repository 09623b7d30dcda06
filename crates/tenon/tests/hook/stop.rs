//! The end of a turn, and shell commands: what changed on disk since the last report, by any program.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;

use crate::workspace::Workspace;

/// A repository with an old error in `old.fake`.
fn repository() -> Workspace {
    let tree = "//- old.fake\nbad\n//- a.fake\ngood\n//- b.fake\ngood\n//- notes.txt\nx\n";
    let workspace = Workspace::new(tree).server("fake", linter());
    git(&workspace, &["commit", "-q", "-m", "first"]);
    git(&workspace, &["branch", "-M", "main"]);
    workspace
}

fn git(workspace: &Workspace, args: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    let done = workspace.sandbox.command("git").args(identity).args(args).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// The hook's output for the end of a turn of Claude Code.
fn stop(workspace: &Workspace) -> Option<String> {
    let event = json!({ "session_id": "s", "transcript_path": "/dev/null", "cwd": workspace.sandbox.root(),
        "hook_event_name": "Stop", "stop_hook_active": false });
    let answer = output(workspace, &event)?;
    assert_eq!(answer["decision"], "block");
    Some(answer["reason"].as_str().unwrap().to_owned())
}

/// The text for the model after a shell command of Claude Code.
fn shell(workspace: &Workspace) -> Option<String> {
    workspace.run_hook(&json!({ "cwd": workspace.sandbox.root(), "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": { "command": "x" } }))
}

fn output(workspace: &Workspace, event: &Value) -> Option<Value> {
    let output = workspace.run("stop", event.to_string().as_bytes());
    (!output.stdout.is_empty()).then(|| serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn new_errors_are_reported_once_and_old_ones_never() {
    let workspace = repository();
    assert_eq!(stop(&workspace), None, "nothing changed since the last commit");
    workspace.sandbox.tree().write("a.fake", "so bad\n");
    workspace.sandbox.tree().write("new.fake", "bad\n");
    workspace.sandbox.tree().write("notes.txt", "bad\n");
    let text = stop(&workspace).unwrap();
    assert!(text.contains("a.fake") && text.contains("new.fake") && !text.contains("old.fake"), "{text}");
    assert_eq!(stop(&workspace), None);
    workspace.daemon().kill();
    assert_eq!(stop(&workspace), None, "the state of the last report is lost");
    workspace.sandbox.tree().write("b.fake", "bad\n");
    workspace.daemon().kill();
    let text = stop(&workspace).unwrap();
    assert!(text.contains("NEW error b.fake:1:1") && !text.contains("a.fake"), "{text}");
}

#[test]
fn errors_of_an_edit_are_not_repeated_at_the_end_of_the_turn() {
    let workspace = repository();
    assert!(workspace.write("a.fake", "so bad\n").is_some());
    assert_eq!(stop(&workspace), None);
    workspace.sandbox.tree().write("a.fake", "so bad\nand bad\n");
    let text = stop(&workspace).unwrap();
    assert!(text.contains("NEW error a.fake:2:5") && !text.contains("NEW error a.fake:1:4"), "{text}");
}

#[test]
fn checkout_and_commit_count_as_changes_since_the_last_report() {
    let workspace = repository();
    git(&workspace, &["checkout", "-q", "-b", "broken"]);
    workspace.sandbox.tree().write("a.fake", "bad\n");
    git(&workspace, &["commit", "-q", "-a", "-m", "broken"]);
    git(&workspace, &["checkout", "-q", "main"]);
    assert_eq!(stop(&workspace), None);
    git(&workspace, &["checkout", "-q", "broken"]);
    assert!(stop(&workspace).unwrap().contains("a.fake"));
    assert_eq!(stop(&workspace), None);
    git(&workspace, &["checkout", "-q", "main"]);
    assert_eq!(stop(&workspace), None, "nothing is new");
    workspace.sandbox.tree().write("b.fake", "bad\n");
    git(&workspace, &["commit", "-q", "-a", "-m", "also broken"]);
    assert!(stop(&workspace).unwrap().contains("b.fake"), "a commit hides the change");
}

#[test]
fn shell_command_is_reported_like_an_edit() {
    let workspace = repository();
    assert_eq!(shell(&workspace), None);
    workspace.sandbox.tree().write("a.fake", "so bad\n");
    assert!(shell(&workspace).unwrap().contains("NEW error a.fake:1:4"));
    assert_eq!(shell(&workspace), None);
    assert_eq!(stop(&workspace), None);
    std::fs::remove_file(workspace.sandbox.root().join("b.fake")).unwrap();
    assert_eq!(stop(&workspace), None);
}

#[test]
fn agent_that_continues_because_of_a_hook_gets_nothing() {
    let workspace = repository();
    workspace.sandbox.tree().write("a.fake", "so bad\n");
    let root = workspace.sandbox.root();
    for event in [
        json!({ "cwd": root, "hook_event_name": "Stop", "stop_hook_active": true }),
        json!({ "cwd": root, "hook_event_name": "AfterAgent", "stop_hook_active": true }),
        json!({ "workspace_roots": [root], "hook_event_name": "stop", "status": "completed", "loop_count": 1 }),
    ] {
        assert_eq!(output(&workspace, &event), None, "{event}");
    }
    let gemini = json!({ "cwd": root, "hook_event_name": "AfterAgent", "stop_hook_active": false });
    assert_eq!(output(&workspace, &gemini).unwrap()["decision"], "deny");
    workspace.sandbox.tree().write("b.fake", "bad\n");
    let cursor = json!({ "workspace_roots": [root], "hook_event_name": "stop", "status": "completed", "loop_count": 0 });
    let text = output(&workspace, &cursor).unwrap()["followup_message"].as_str().unwrap().to_owned();
    assert!(text.contains("b.fake"), "{text}");
}

#[test]
fn without_a_repository_changes_count_from_the_first_report() {
    let workspace =
        Workspace::new("//- tenon.toml\n//- old.fake\nbad\n//- a.fake\ngood\n").server("fake", linter());
    std::fs::remove_dir_all(workspace.sandbox.root().join(".git")).unwrap();
    assert_eq!(stop(&workspace), None);
    workspace.sandbox.tree().write("a.fake", "bad\n");
    let text = stop(&workspace).unwrap();
    assert!(text.contains("a.fake") && !text.contains("old.fake"), "{text}");
    assert_eq!(stop(&workspace), None);
}

#[test]
fn findings_of_a_late_server_are_reported_at_the_next_stop_once() {
    let publish = |diagnostics: Value| json!([{ "publish": { "uri": "$uri", "diagnostics": diagnostics } }]);
    let rules = json!([
        { "on": "textDocument/didOpen", "text": "good", "do": publish(json!([])) },
        { "on": "textDocument/didChange", "text": "good", "do": publish(json!([])) },
        // Not for the first text with an error.
        { "on": "textDocument/didChange", "text": "bad", "from": 2,
            "do": publish(json!([{ "line": 0, "message": "late" }])) },
    ]);
    let late = json!({ "capabilities": { "textDocumentSync": 1 }, "rules": rules });
    let workspace = repository().server("late", late);
    workspace.sandbox.tree().write("a.fake", "so bad\n");
    let text = stop(&workspace).unwrap();
    assert!(text.contains("NEW error a.fake:1:4") && text.ends_with("\npending: late"), "{text}");
    assert_eq!(shell(&workspace), None, "a command that changed nothing repeats the report");
    let text = stop(&workspace).unwrap();
    assert_eq!(text, "edited a.fake:1\n1 new, 0 gone, 1 unchanged\nNEW error a.fake:1:1: late");
    assert_eq!(stop(&workspace), None);
}

#[test]
fn untracked_file_counts_as_new_since_the_last_commit() {
    let workspace = repository();
    workspace.sandbox.tree().write("new.fake", "bad\n");
    let text = stop(&workspace).unwrap();
    assert!(text.starts_with("created new.fake:1") && text.contains("NEW error new.fake:1:1"), "{text}");
    assert_eq!(stop(&workspace), None);
}
