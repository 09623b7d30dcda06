//! `tenon hook install`: the printed diff, the settings file, and `--undo`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tenon_testkit::Sandbox;

/// A workspace with `tenon` on the PATH.
fn sandbox(tree: &str) -> Sandbox {
    let sandbox = Sandbox::with_tree(&format!("//- tenon.toml\n{tree}"));
    symlink(tenon_testkit::program::tenon(), sandbox.dir("home").join("tenon")).unwrap();
    sandbox
}

fn install(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.tenon();
    command.args(["hook", "install"]).args(args).env("PATH", sandbox.dir("home"));
    command
}

fn output(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = install(sandbox, args).output().unwrap();
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).replace(sandbox.folder().to_str().unwrap(), "[SANDBOX]")
    };
    format!("exit: {}\n{}---\n{}", output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const SETTINGS: &str =
    "{\n  \"permissions\": { \"allow\": [\"Bash(ls)\"] },\n  \"hooks\": {\n    \"Stop\": [ ]\n  }\n}";

#[test]
fn install_creates_the_file_and_undo_removes_it() {
    let sandbox = sandbox("");
    let file = sandbox.root().join(".claude/settings.json");
    insta::assert_snapshot!(output(&sandbox, &["--client", "claude", "--dry-run"]), @r#"
    exit: 0
    --- /dev/null
    +++ [SANDBOX]/w/.claude/settings.json
    @@ -0,0 +1,12 @@
    +{
    +  "hooks": {
    +    "PostToolUse": [
    +      {
    +        "matcher": "Edit|MultiEdit|Write|NotebookEdit",
    +        "hooks": [
    +          { "type": "command", "command": "tenon hook post-edit", "timeout": 30 }
    +        ]
    +      }
    +    ]
    +  }
    +}
    ---
    dry run: nothing was written
    "#);
    assert!(!file.parent().unwrap().exists());
    let first = output(&sandbox, &["--client", "claude"]);
    assert!(first.ends_with("`--undo` removes the hook\n"), "{first}");
    insta::assert_snapshot!(output(&sandbox, &["--client", "claude"]), @r"
    exit: 0
    ---
    already installed: [SANDBOX]/w/.claude/settings.json
    ");
    let undone = output(&sandbox, &["--client", "claude", "--undo"]);
    assert!(undone.contains("+++ /dev/null"), "{undone}");
    assert!(!file.parent().unwrap().exists(), "the empty folder is still there");
    insta::assert_snapshot!(output(&sandbox, &["--client", "claude", "--undo"]), @r"
    exit: 0
    ---
    not installed: [SANDBOX]/w/.claude/settings.json
    ");
}

#[test]
fn undo_restores_the_file_byte_for_byte() {
    for settings in [
        SETTINGS,
        "{}",
        "{}\n",
        "{\"hooks\":{}}",
        "\n",
        "{\r\n\t\"a\": 1\r\n}\r\n",
        "{\"hooks\": {\"PostToolUse\": []}}",
    ] {
        let sandbox = sandbox("");
        let file = sandbox.root().join(".claude/settings.json");
        sandbox.tree().write(".claude/settings.json", settings);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(install(&sandbox, &["--client", "claude"]).status().unwrap().success());
        let installed = std::fs::read_to_string(&file).unwrap();
        assert!(installed.contains("tenon hook post-edit"), "{installed}");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(install(&sandbox, &["--client", "claude", "--undo"]).status().unwrap().success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), settings);
    }
}

#[test]
fn undo_keeps_later_changes() {
    let sandbox = sandbox("");
    sandbox.tree().write(".claude/settings.json", SETTINGS);
    assert!(install(&sandbox, &["--client", "claude"]).status().unwrap().success());
    let added = sandbox.tree().read(".claude/settings.json").replace("Bash(ls)", "Bash(cat)");
    sandbox.tree().write(".claude/settings.json", &added);
    insta::assert_snapshot!(output(&sandbox, &["--client", "claude", "--undo"]), @r#"
    exit: 0
    --- [SANDBOX]/w/.claude/settings.json
    +++ [SANDBOX]/w/.claude/settings.json
    @@ -1,14 +1,6 @@
     {
       "permissions": { "allow": ["Bash(cat)"] },
       "hooks": {
    -    "Stop": [ ],
    -    "PostToolUse": [
    -      {
    -        "matcher": "Edit|MultiEdit|Write|NotebookEdit",
    -        "hooks": [
    -          { "type": "command", "command": "tenon hook post-edit", "timeout": 30 }
    -        ]
    -      }
    -    ]
    +    "Stop": [ ]
       }
     }
    \ No newline at end of file
    ---
    removed: Claude Code no longer runs Tenon's hook from [SANDBOX]/w/.claude/settings.json
    "#);
    assert_eq!(sandbox.tree().read(".claude/settings.json"), SETTINGS.replace("Bash(ls)", "Bash(cat)"));
}

#[test]
fn unsupported_files_are_not_changed() {
    for (settings, code) in
        [("{ // comment\n}", 3), ("[]", 3), ("{\"hooks\": 7}", 3), ("{\"hooks\": {\"PostToolUse\": 7}}", 3)]
    {
        for undo in [&["--client", "claude"][..], &["--client", "claude", "--undo"]] {
            let sandbox = sandbox("");
            sandbox.tree().write(".claude/settings.json", settings);
            let output = install(&sandbox, undo).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{settings}: {output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("error: cannot change"), "{output:?}");
            assert_eq!(sandbox.tree().read(".claude/settings.json"), settings);
        }
    }
}

#[test]
fn every_agent_has_a_project_and_a_user_file() {
    for (agent, file) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ] {
        let sandbox = sandbox("");
        for (scope, base) in [("project", sandbox.root().to_owned()), ("user", sandbox.dir("home"))] {
            assert!(install(&sandbox, &["--client", agent, "--scope", scope]).status().unwrap().success());
            let text = std::fs::read_to_string(base.join(file)).unwrap();
            assert!(text.contains("\"tenon hook post-edit\""), "{text}");
        }
    }
}

#[test]
fn linked_settings_file_stays_a_link() {
    let sandbox = sandbox("//- dotfiles/claude.json\n{}\n");
    std::fs::create_dir(sandbox.root().join(".claude")).unwrap();
    symlink("../dotfiles/claude.json", sandbox.root().join(".claude/settings.json")).unwrap();
    assert!(install(&sandbox, &["--client", "claude"]).status().unwrap().success());
    assert!(sandbox.root().join(".claude/settings.json").is_symlink());
    assert!(sandbox.tree().read("dotfiles/claude.json").contains("tenon hook post-edit"));
}
