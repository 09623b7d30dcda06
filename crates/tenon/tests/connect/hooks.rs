//! The hooks that `tenon connect` installs: the printed diff, the settings file, and `--undo`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tenon_testkit::Sandbox;

use crate::{connect, sandbox};

/// `tenon connect` for the hooks alone.
fn install(sandbox: &Sandbox, args: &[&str]) -> Command {
    connect(sandbox, &[args, &["--only", "hooks"]].concat())
}

fn output(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = install(sandbox, args).output().unwrap();
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).replace(sandbox.folder().to_str().unwrap(), "[SANDBOX]")
    };
    format!("exit: {}\n{}---\n{}", output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const SETTINGS: &str =
    "{\n  \"permissions\": { \"allow\": [\"Bash(ls)\"] },\n  \"hooks\": {\n    \"PreToolUse\": [ ]\n  }\n}";

#[test]
fn install_creates_the_file_and_undo_removes_it() {
    let sandbox = sandbox("");
    let file = sandbox.root().join(".claude/settings.json");
    insta::assert_snapshot!(output(&sandbox, &["claude", "--dry-run"]), @r#"
    exit: 0
    --- /dev/null
    +++ [SANDBOX]/w/.claude/settings.json
    @@ -0,0 +1,33 @@
    +{
    +  "hooks": {
    +    "PostToolUse": [
    +      {
    +        "matcher": "Edit|MultiEdit|Write|NotebookEdit|Bash",
    +        "hooks": [
    +          { "type": "command", "command": "tenon hook post-edit", "timeout": 30 }
    +        ]
    +      }
    +    ],
    +    "Stop": [
    +      {
    +        "hooks": [
    +          { "type": "command", "command": "tenon hook stop", "timeout": 30 }
    +        ]
    +      }
    +    ],
    +    "SessionStart": [
    +      {
    +        "hooks": [
    +          { "type": "command", "command": "tenon hook session-start", "timeout": 30 }
    +        ]
    +      }
    +    ],
    +    "PreCompact": [
    +      {
    +        "hooks": [
    +          { "type": "command", "command": "tenon hook pre-compact", "timeout": 30 }
    +        ]
    +      }
    +    ]
    +  }
    +}
    ---
    dry run: nothing was written
    "#);
    assert!(!file.parent().unwrap().exists());
    let first = output(&sandbox, &["claude"]);
    assert!(first.contains("`tenon connect claude --undo` restores the files\n"), "{first}");
    insta::assert_snapshot!(output(&sandbox, &["claude"]), @r"
    exit: 0
    ---
    already connected: Claude Code
    ");
    let undone = output(&sandbox, &["claude", "--undo"]);
    assert!(undone.contains("+++ /dev/null"), "{undone}");
    assert!(!file.parent().unwrap().exists(), "the empty folder is still there");
    insta::assert_snapshot!(output(&sandbox, &["claude", "--undo"]), @r"
    exit: 0
    ---
    not connected: Claude Code
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
        assert!(install(&sandbox, &["claude"]).status().unwrap().success());
        let installed = std::fs::read_to_string(&file).unwrap();
        assert!(installed.contains("tenon hook post-edit"), "{installed}");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(install(&sandbox, &["claude", "--undo"]).status().unwrap().success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), settings);
    }
}

#[test]
fn undo_keeps_later_changes() {
    let sandbox = sandbox("");
    sandbox.tree().write(".claude/settings.json", SETTINGS);
    assert!(install(&sandbox, &["claude"]).status().unwrap().success());
    let added = sandbox.tree().read(".claude/settings.json").replace("Bash(ls)", "Bash(cat)");
    sandbox.tree().write(".claude/settings.json", &added);
    insta::assert_snapshot!(output(&sandbox, &["claude", "--undo"]), @r#"
    exit: 0
    --- [SANDBOX]/w/.claude/settings.json
    +++ [SANDBOX]/w/.claude/settings.json
    @@ -1,35 +1,6 @@
     {
       "permissions": { "allow": ["Bash(cat)"] },
       "hooks": {
    -    "PreToolUse": [ ],
    -    "PostToolUse": [
    -      {
    -        "matcher": "Edit|MultiEdit|Write|NotebookEdit|Bash",
    -        "hooks": [
    -          { "type": "command", "command": "tenon hook post-edit", "timeout": 30 }
    -        ]
    -      }
    -    ],
    -    "Stop": [
    -      {
    -        "hooks": [
    -          { "type": "command", "command": "tenon hook stop", "timeout": 30 }
    -        ]
    -      }
    -    ],
    -    "SessionStart": [
    -      {
    -        "hooks": [
    -          { "type": "command", "command": "tenon hook session-start", "timeout": 30 }
    -        ]
    -      }
    -    ],
    -    "PreCompact": [
    -      {
    -        "hooks": [
    -          { "type": "command", "command": "tenon hook pre-compact", "timeout": 30 }
    -        ]
    -      }
    -    ]
    +    "PreToolUse": [ ]
       }
     }
    \ No newline at end of file
    ---
    removed: Claude Code no longer uses Tenon
    "#);
    assert_eq!(sandbox.tree().read(".claude/settings.json"), SETTINGS.replace("Bash(ls)", "Bash(cat)"));
}

#[test]
fn unsupported_files_are_not_changed() {
    for (settings, code) in
        [("{ // comment\n", 3), ("[]", 3), ("{\"hooks\": 7}", 3), ("{\"hooks\": {\"PostToolUse\": 7}}", 3)]
    {
        for undo in [&["claude"][..], &["claude", "--undo"]] {
            let sandbox = sandbox("");
            sandbox.tree().write(".claude/settings.json", settings);
            let output = install(&sandbox, undo).output().unwrap();
            // Nothing of Tenon is in the file, and it is JSON: an undo has nothing to do.
            let is_json = serde_json::from_str::<serde_json::Value>(settings).is_ok();
            if !(undo.contains(&"--undo") && is_json) {
                assert_eq!(output.status.code(), Some(code), "{settings}: {output:?}");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("error: cannot change"), "{output:?}");
            }
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
        ("cursor", ".cursor/hooks.json"),
    ] {
        let sandbox = sandbox("");
        for (scope, base) in [("project", sandbox.root().to_owned()), ("user", sandbox.dir("home"))] {
            assert!(install(&sandbox, &[agent, "--scope", scope]).status().unwrap().success());
            let text = std::fs::read_to_string(base.join(file)).unwrap();
            assert!(
                text.contains("\"tenon hook post-edit\"") && text.contains("\"tenon hook stop\""),
                "{text}"
            );
        }
    }
}

#[test]
fn linked_settings_file_stays_a_link() {
    let sandbox = sandbox("//- dotfiles/claude.json\n{}\n");
    std::fs::create_dir(sandbox.root().join(".claude")).unwrap();
    symlink("../dotfiles/claude.json", sandbox.root().join(".claude/settings.json")).unwrap();
    assert!(install(&sandbox, &["claude"]).status().unwrap().success());
    assert!(sandbox.root().join(".claude/settings.json").is_symlink());
    assert!(sandbox.tree().read("dotfiles/claude.json").contains("tenon hook post-edit"));
}

#[test]
fn opencode_gets_a_plugin_that_passes_events_on() {
    let sandbox = sandbox("");
    let file = sandbox.root().join(".opencode/plugins/tenon.js");
    assert!(install(&sandbox, &["opencode"]).status().unwrap().success());
    let again = output(&sandbox, &["opencode"]);
    assert!(again.contains("already connected"), "{again}");
    // A `tenon` that answers with what it was given.
    let fake = "#!/bin/sh\nread -r event\ncase \"$2\" in\npost-edit) printf '{\"hookSpecificOutput\":{\"additionalContext\":%s}}' \"$(printf %s \"$event\" | sed 's/\"/\\\\\"/g;s/.*/\"&\"/')\" ;;\nstop) case \"$event\" in *true*) ;; *) printf '{\"decision\":\"block\",\"reason\":\"news\"}' ;; esac ;;\nesac\n";
    let bin = sandbox.dir("home").join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("tenon"), fake).unwrap();
    std::fs::set_permissions(bin.join("tenon"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!(
        r#"
        const {{ Tenon }} = await import("{}");
        const prompts = [];
        const session = {{ get: async ({{ path }}) => ({{ data: path.id === "child" ? {{ parentID: "p" }} : {{}} }}),
            promptAsync: async (it) => prompts.push(it.body.parts[0].text) }};
        const hooks = await Tenon({{ client: {{ session }}, directory: "/w" }});
        for (const [tool, args] of [["edit", {{ filePath: "/w/a" }}], ["bash", {{}}], ["read", {{}}]]) {{
            const output = {{ output: "done" }};
            await hooks["tool.execute.after"]({{ tool, args }}, output);
            console.log(output.output);
        }}
        for (const sessionID of ["s", "s", "child"]) {{
            await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID }} }} }});
            console.log(prompts.join());
        }}
        "#,
        file.display()
    );
    let mut node = sandbox.command(tenon_testkit::program::tool("node"));
    let paths =
        std::env::join_paths([bin.as_path(), std::path::Path::new("/usr/bin"), std::path::Path::new("/bin")]);
    let run = node.args(["--input-type=module", "-e", &script]).env("PATH", paths.unwrap()).output().unwrap();
    insta::assert_snapshot!(String::from_utf8_lossy(&run.stdout), @r#"
    done

    {"hook_event_name":"PostToolUse","cwd":"/w","tool_name":"Edit","tool_input":{"file_path":"/w/a"}}
    done

    {"hook_event_name":"PostToolUse","cwd":"/w","tool_name":"Bash","tool_input":{}}
    done
    news
    news
    news
    "#);
    assert!(install(&sandbox, &["opencode", "--undo"]).status().unwrap().success());
    assert!(!sandbox.root().join(".opencode").exists());
    sandbox.tree().write(".opencode/plugins/tenon.js", "export const Mine = 1\n");
    let refused = output(&sandbox, &["opencode"]);
    assert!(refused.contains("Tenon did not write this file"), "{refused}");
}
