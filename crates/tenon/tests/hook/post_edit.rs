//! The text that the model gets after an edit.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;

use crate::workspace::Workspace;

#[test]
fn broken_edit_gets_diagnostics_and_its_fix_gets_none() {
    let workspace = Workspace::new("//- src/a.fake\ngood\n").server("fake", linter());
    insta::assert_snapshot!(workspace.write("src/a.fake", "so bad\n").unwrap(), @r#"
    LSP errors detected in this file, please fix:
    <diagnostics file="src/a.fake">
    ERROR [1:4] this is bad
    </diagnostics>
    "#);
    assert_eq!(workspace.write("src/a.fake", "so good\n"), None);
    insta::assert_snapshot!(workspace.write("src/a.fake", "now\nbad\n").unwrap(), @r#"
    LSP errors detected in this file, please fix:
    <diagnostics file="src/a.fake">
    ERROR [2:1] this is bad
    </diagnostics>
    "#);
    let started = workspace.transcript("fake").iter().filter(|line| line.get("started").is_some()).count();
    assert_eq!(started, 1, "the edits did not share one server");
}

#[test]
fn errors_in_other_files_are_reported() {
    let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "file": "a.fake", "do": [
            { "publish": { "uri": "b.fake", "version": "none", "diagnostics": [{ "line": 2, "message": "broken by a", "code": "E1" }] } },
            { "publish": { "uri": "$uri" } },
        ]},
    ]});
    let workspace = Workspace::new("//- a.fake\nx\n//- b.fake\nx\n").server("fake", script);
    insta::assert_snapshot!(workspace.write("a.fake", "x\n").unwrap(), @r#"
    LSP errors detected in other files:
    <diagnostics file="b.fake">
    ERROR [3:1] broken by a (E1)
    </diagnostics>
    "#);
}

#[test]
fn codex_and_gemini_get_their_own_event_names() {
    let workspace = Workspace::new("//- a.fake\nbad\n//- b c.fake\nbad\n").server("fake", linter());
    let gemini = json!({ "session_id": "s", "cwd": workspace.sandbox.root(), "hook_event_name": "AfterTool",
        "timestamp": "2026-01-01T00:00:00Z", "tool_name": "write_file",
        "tool_input": { "file_path": "a.fake", "content": "bad\n" }, "tool_response": { "llmContent": "ok" } });
    assert!(workspace.run_hook(&gemini).unwrap().contains("<diagnostics file=\"a.fake\">"));
    let patch = "*** Begin Patch\n*** Update File: a.fake\n@@\n-good\n+bad\n*** Add File: b c.fake\n+bad\n*** Delete File: gone.fake\n*** End Patch";
    let codex = json!({ "cwd": workspace.sandbox.root(), "hook_event_name": "PostToolUse", "tool_name": "apply_patch",
        "tool_input": { "command": patch }, "tool_response": "Success" });
    insta::assert_snapshot!(workspace.run_hook(&codex).unwrap(), @r#"
    LSP errors detected in these files, please fix:
    <diagnostics file="a.fake">
    ERROR [1:1] this is bad
    </diagnostics>
    <diagnostics file="b c.fake">
    ERROR [1:1] this is bad
    </diagnostics>
    "#);
}

#[test]
fn server_that_is_still_checking_is_named() {
    let slow: Value = json!({ "capabilities": { "textDocumentSync": 1 }, "initialize": { "hang": true } });
    let workspace = Workspace::new("//- a.fake\nbad\n").server("slow", slow).server("fake", linter());
    insta::assert_snapshot!(workspace.write("a.fake", "bad\n").unwrap(), @r#"
    LSP errors detected in this file, please fix:
    <diagnostics file="a.fake">
    ERROR [1:1] this is bad
    </diagnostics>
    (diagnostics pending: slow)
    "#);
}

#[test]
fn hook_starts_the_workspace_daemon() {
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", linter());
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
                let heading = format!("in this file, please fix:\n<diagnostics file=\"{name}\">\n");
                assert!(text.contains(&heading), "{text}");
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
        ("x\n".repeat(99_999) + "bad\n", "[100000:1]"),
        ("x\r\n\r\n  bad\r\n".to_owned(), "[3:3]"),
        ("\u{feff}bad\n".to_owned(), "[1:1]"),
        ("😀 bad".to_owned(), "[1:4]"),
    ] {
        let text = workspace.write("a.fake", &written).unwrap();
        assert!(text.contains(&format!("ERROR {position} this is bad")), "{text}");
        assert_eq!(workspace.sandbox.tree().read("a.fake"), written);
    }
    assert_eq!(workspace.write("a.fake", ""), None);
}
