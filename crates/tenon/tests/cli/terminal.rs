//! What people read never controls their terminal: names, source lines and messages of servers are shown with visible
//! control characters, on every command.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

/// Clears the screen, sets a title, reorders text, starts a line, and hides text with a colour that Tenon does not use.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\u{2066}\u{61c}\r\u{85}\u{1b}[8m\u{7f}y";

/// The colours that `tenon`, `clap` and `annotate-snippets` use.
fn without_own_colours(text: &str) -> String {
    let codes = ["0", "1", "4", "1;31", "1;36", "31", "32", "33", "34", "36", "91", "92", "93", "94", "96"];
    codes.iter().fold(text.to_owned(), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""))
}

fn assert_visible(output: &Output, what: &str) -> String {
    let mut all = String::new();
    for stream in [&output.stdout, &output.stderr] {
        let text =
            String::from_utf8(stream.clone()).unwrap_or_else(|_| panic!("{what}: not UTF-8: {stream:?}"));
        let hidden = |one: char| {
            (one.is_control() && one != '\n' && one != '\t')
                || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let plain = without_own_colours(&text);
        assert!(!plain.contains(hidden), "{what}: {plain:?}");
        all += &plain;
    }
    all
}

/// A workspace whose folder, files, source lines, settings and servers are hostile.
struct HostileWorkspace {
    sandbox: Sandbox,
    root: PathBuf,
}

impl HostileWorkspace {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let root = sandbox.root().join(format!("w{HOSTILE}"));
        std::fs::create_dir_all(root.join(format!("d{HOSTILE}"))).unwrap();
        let write = |name: String, text: &str| std::fs::write(root.join(name), text).unwrap();
        write("tenon.toml".into(), "");
        write(format!("a{HOSTILE}.fake"), &format!("bad {HOSTILE} bad\n"));
        write(format!("d{HOSTILE}/b{HOSTILE}.fake"), &format!("{HOSTILE}\nbad\n"));
        write(format!("n{HOSTILE}.none"), "no server\n");
        let found = json!({ "line": 0, "message": format!("m{HOSTILE}"), "source": format!("s{HOSTILE}"),
            "code": format!("c{HOSTILE}"), "severity": 1 });
        let publish = json!([{ "publish": { "uri": "$uri", "diagnostics": [found] } }]);
        let rules = json!([{ "on": "textDocument/didOpen", "do": publish },
            { "on": "textDocument/didChange", "do": publish }]);
        let message = json!([{ "notify": { "method": "window/showMessage",
            "params": { "type": 1, "message": format!("shown{HOSTILE}") } } }]);
        let good = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules,
            "initialize": { "before": message } });
        let bad = json!({ "capabilities": {}, "initialize": { "refuse": format!("refused{HOSTILE}") } });
        let folder = sandbox.dir("state");
        let servers = json!({
            "good": tenon_fake_lsp::entry(&folder, "good", good),
            "bad": tenon_fake_lsp::entry(&folder, "bad", bad),
            "broken": { "command": "/bin/sh", "args": ["-c", format!("printf 'log{HOSTILE}\\n' >&2; exit 3")],
                "extensions": [".fake"] },
        });
        sandbox.write_user_config(&toml::to_string(&json!({ "servers": servers })).unwrap());
        Self { sandbox, root }
    }

    fn tenon<S: Into<OsString>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.sandbox.tenon();
        // Colours are on, as on a terminal.
        command.current_dir(&self.root).env("CLICOLOR_FORCE", "1").args(args.into_iter().map(Into::into));
        command
    }

    /// Runs a command and asserts that everything it prints is visible; the text without colours.
    fn visible<S: Into<OsString>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let mut command = self.tenon(args);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_visible(&output, &format!("{command:?}"))
    }
}

const SHOWN: &str = "x␛[2J␛]0;t␇<U+009B>2J<U+202E><U+2066><U+061C>␍<U+0085>␛[8m␡y";

#[test]
fn hostile_names_lines_and_messages_are_visible_in_every_command() {
    let workspace = HostileWorkspace::new();
    let checked = workspace.visible(["check", "--no-daemon"]);
    assert!(checked.contains(&format!("a{SHOWN}.fake")), "{checked}");
    assert!(checked.contains("mx␛[2J␛]0;t␇<U+009B>2J"), "{checked}");
    assert!(checked.contains("bad x␛[2J␛]0;t␇<U+009B>2J"), "{checked}");
    let github = workspace.visible(["check", "--no-daemon", "--format", "github"]);
    assert!(github.contains("::error file=a"), "{github}");
    workspace.visible(["check", "--no-daemon", &format!("n{HOSTILE}.none")]);
    workspace.visible(["check", "--no-daemon", &format!("missing{HOSTILE}")]);

    let up = workspace.visible(["up", "--no-install"]);
    assert!(up.contains(SHOWN), "{up}");
    for args in [
        &["status"][..],
        &["doctor"],
        &["trust", "--show"],
        &["trust"],
        &["servers", "list"],
        &["servers", "logs", "broken"],
        &["servers", "logs", "bad"],
        &["servers", "logs", "good"],
        &["config", "show"],
        &["tasks", "list"],
        &["memory", "search", HOSTILE],
        &["store", "check"],
        &["hook", "install"],
        &["hook", "install", "--client", "claude-code", "--dry-run"],
        &["context", "build", HOSTILE, "--cache", HOSTILE],
        &["context", "verify", HOSTILE],
        &["compose", HOSTILE],
        &["servers", "restart", HOSTILE],
        &["servers", "install", HOSTILE],
        &["trust", HOSTILE],
        &["check", "--new", HOSTILE],
        &["--root", HOSTILE, "status"],
        &["check", &format!("--{HOSTILE}")],
        &[HOSTILE],
        &["stop"],
    ] {
        workspace.visible(args.iter().copied());
    }
}

#[test]
fn json_is_printed_unchanged() {
    let workspace = HostileWorkspace::new();
    let output = workspace.tenon(["check", "--no-daemon", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["file"], format!("a{HOSTILE}.fake"));
}

#[test]
fn invalid_settings_and_composition_input_are_shown_visibly() {
    let workspace = HostileWorkspace::new();
    std::fs::write(workspace.root.join("tenon.toml"), format!("[log]\nlevel = \"{}\"\n", "\u{9b}2J\u{202e}"))
        .unwrap();
    let shown = workspace.visible(["config", "show"]);
    assert!(shown.contains("<U+009B>2J") && shown.contains(&format!("w{SHOWN}")), "{shown}");
    let input = format!("{{\"{}\": [\u{9b}", "k\u{9d}\u{202e}");
    std::fs::write(workspace.root.join(HOSTILE), input).unwrap();
    let shown = workspace.visible(["compose", "--format", "text", HOSTILE]);
    assert!(shown.contains(SHOWN), "{shown}");
    let input = "{\"modules\": [{\"id\": \"m\u{9b}2J\u{202e}\", \"k\u{9d}\": 1}]}";
    std::fs::write(workspace.root.join(HOSTILE), input).unwrap();
    let shown = workspace.visible(["compose", "--format", "text", HOSTILE]);
    assert!(shown.contains("<U+009B>2J"), "{shown}");
}

#[test]
fn text_of_hooks_is_visible() {
    let workspace = HostileWorkspace::new();
    let file = workspace.root.join(format!("a{HOSTILE}.fake"));
    let event = json!({ "session_id": "s", "transcript_path": "/dev/null", "cwd": workspace.root,
        "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_use_id": "t",
        "tool_input": { "file_path": file, "content": "" }, "tool_response": { "success": true } });
    let mut hook = workspace.tenon(["hook", "post-edit"]);
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let output = hook.wait_with_output().unwrap();
    assert_visible(&output, "hook");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("<U+202E>") && !text.contains('\u{1b}'), "{text:?}");
}
