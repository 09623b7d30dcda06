//! The text that the model gets after an edit.

use std::time::Instant;

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;
use tenon_testkit::PATIENCE;

use crate::workspace::Workspace;

#[test]
fn edit_is_compared_with_the_index_and_then_with_the_last_report() {
    let workspace = Workspace::new("//- src/a.fake\nold bad\n").server("fake", linter());
    insta::assert_snapshot!(workspace.write("src/a.fake", "old bad\nso bad\n").unwrap(), @"
    edited src/a.fake:2
    1 new, 0 gone, 1 unchanged
    NEW error src/a.fake:2:4: this is bad
    ");
    assert_eq!(workspace.write("src/a.fake", "new line\nold bad\nso bad\n"), None, "nothing new");
    insta::assert_snapshot!(workspace.write("src/a.fake", "new line\nold bad\n").unwrap(), @"
    edited src/a.fake:2
    0 new, 1 gone, 1 unchanged
    ");
    let started = workspace.transcript("fake").iter().filter(|line| line.get("started").is_some()).count();
    assert_eq!(started, 1, "the edits did not share one server");
}

#[test]
fn file_that_git_does_not_know_has_no_baseline() {
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", linter());
    insta::assert_snapshot!(workspace.write("new.fake", "bad\n").unwrap(), @"
    edited new.fake
    no baseline: the diagnostics before are not known for new.fake; all 1 listed
    error new.fake:1:1: this is bad
    ");
    assert_eq!(workspace.write("new.fake", "bad\nx\n"), None, "the last report is the baseline");
}

#[test]
fn file_that_was_binary_before_has_no_baseline() {
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", linter());
    std::fs::write(workspace.path("b.fake"), b"\xff\xfe\0").unwrap();
    workspace.git(&["add", "b.fake"]);
    insta::assert_snapshot!(workspace.write("b.fake", "bad\n").unwrap(), @"
    edited b.fake
    no baseline: the diagnostics before are not known for b.fake; all 1 listed
    error b.fake:1:1: this is bad
    ");
}

#[test]
fn codex_and_gemini_get_their_own_event_names() {
    let workspace = Workspace::new("//- a.fake\ngood\n//- b c.fake\n\n").server("fake", linter());
    workspace.sandbox.tree().write("a.fake", "bad\n");
    let gemini = json!({ "session_id": "s", "cwd": workspace.sandbox.root(), "hook_event_name": "AfterTool",
        "timestamp": "2026-01-01T00:00:00Z", "tool_name": "write_file",
        "tool_input": { "file_path": "a.fake", "content": "bad\n" }, "tool_response": { "llmContent": "ok" } });
    assert!(workspace.run_hook(&gemini).unwrap().contains("\nNEW error a.fake:1:1: "));
    workspace.sandbox.tree().write("b c.fake", "bad\n");
    let patch = "*** Begin Patch\n*** Update File: a.fake\n@@\n-good\n+bad\n*** Add File: b c.fake\n+bad\n*** Delete File: gone.fake\n*** End Patch";
    let codex = json!({ "cwd": workspace.sandbox.root(), "hook_event_name": "PostToolUse", "tool_name": "apply_patch",
        "tool_input": { "command": patch }, "tool_response": "Success" });
    insta::assert_snapshot!(workspace.run_hook(&codex).unwrap(), @"
    unchanged a.fake
    edited b c.fake:1
    1 new, 0 gone, 1 unchanged
    NEW error b c.fake:1:1: this is bad
    ");
}

#[test]
fn server_that_is_still_checking_is_named() {
    let slow: Value = json!({ "capabilities": { "textDocumentSync": 1 }, "initialize": { "hang": true } });
    let workspace = Workspace::new("//- a.fake\ngood\n").server("slow", slow).server("fake", linter());
    insta::assert_snapshot!(workspace.write("a.fake", "bad\n").unwrap(), @"
    edited a.fake:1
    1 new, 0 gone, 0 unchanged
    NEW error a.fake:1:1: this is bad
    pending: slow
    ");
}

#[test]
fn hook_starts_the_workspace_daemon() {
    let workspace = Workspace::new("//- a.fake\ngood\n").server("fake", linter());
    assert!(workspace.write("a.fake", "bad\n").is_some());
    let status = workspace.sandbox.tenon().args(["status", "--json"]).output().unwrap();
    assert_eq!(status.status.code(), Some(0), "{status:?}");
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["running"], true, "{status}");
    assert!(workspace.sandbox.tenon().arg("stop").status().unwrap().success());
    workspace.sandbox.assert_no_processes();
}

#[test]
fn concurrent_hooks_share_one_daemon_and_get_their_own_diagnostics() {
    let names: Vec<String> = (0..8).map(|number| format!("{number}.fake")).collect();
    let tree: String = names.iter().map(|name| format!("//- {name}\ngood\n")).collect();
    let workspace = Workspace::new(&tree).server("fake", linter());
    std::thread::scope(|scope| {
        for name in &names {
            let workspace = &workspace;
            scope.spawn(move || {
                let text = workspace.write(name, "bad\n").unwrap();
                let expected =
                    format!("edited {name}:1\n1 new, 0 gone, 0 unchanged\nNEW error {name}:1:1: this is bad");
                assert_eq!(text, expected);
            });
        }
    });
    let started = workspace.transcript("fake").iter().filter(|line| line.get("started").is_some()).count();
    assert_eq!(started, 1);
}

#[test]
fn large_files_and_unusual_texts_are_checked() {
    let workspace = Workspace::new("//- a.fake\nx\n").server("fake", linter());
    for (written, position) in [
        ("x\n".repeat(99_999) + "bad\n", "100000:1"),
        ("x\r\n\r\n  bad\r\n".to_owned(), "3:3"),
        ("\u{feff}bad\n".to_owned(), "1:1"),
        ("😀 bad".to_owned(), "1:4"),
    ] {
        workspace.write("a.fake", "x\n");
        let text = workspace.write("a.fake", &written).unwrap();
        assert!(text.ends_with(&format!("\nNEW error a.fake:{position}: this is bad")), "{text}");
        assert_eq!(workspace.sandbox.tree().read("a.fake"), written);
    }
    assert_eq!(workspace.write("a.fake", "").unwrap(), "edited a.fake:1\n0 new, 1 gone, 0 unchanged");
}

#[test]
fn first_hook_reports_the_error_of_the_edited_file_beside_old_ones() {
    let tree =
        "//- app.py\ndef run(config: dict) -> int:\n    return len(config)\n//- old.py\nx: int = \"a\"\n";
    let workspace = Workspace::new(tree);
    let broken = "def run(config: dict) -> int:\n    return len(confix)\n";
    // A server that still loads may miss the time limit, or have no baseline: the error is then listed, not NEW.
    let deadline = Instant::now() + PATIENCE;
    let mut text = workspace.write("app.py", broken).unwrap_or_default();
    while !text.contains("reportUndefinedVariable") {
        assert!(Instant::now() < deadline, "{text}");
        text = workspace.write("app.py", broken).unwrap_or_default();
    }
    let line = "error app.py:2:16: \"confix\" is not defined (reportUndefinedVariable)";
    assert!(text.starts_with("edited app.py:2\n") && text.replace(" in run", "").contains(line), "{text}");
    assert!(!text.contains("old.py"), "{text}");
}

#[test]
fn file_that_the_agent_created_has_an_empty_baseline() {
    let workspace = Workspace::new("//- a.fake\ngood\n").server("fake", linter());
    workspace.sandbox.tree().write("new.fake", "bad\n");
    let mut event = workspace.write_event(&workspace.path("new.fake"));
    event["tool_response"] = json!({ "type": "create", "originalFile": null });
    insta::assert_snapshot!(workspace.run_hook(&event).unwrap(), @"
    created new.fake:1
    1 new, 0 gone, 0 unchanged
    NEW error new.fake:1:1: this is bad
    ");
}
