//! A workspace with fake servers, and the hook as an agent runs it.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Map, Value, json};
use tenon_testkit::Sandbox;
use tenon_testkit::processes::ProcessInfo;

pub(crate) struct Workspace {
    pub(crate) sandbox: Sandbox,
    servers: Map<String, Value>,
}

impl Workspace {
    /// A workspace under version control, with all files in the index.
    pub(crate) fn new(tree: &str) -> Self {
        let workspace = Self { sandbox: Sandbox::with_tree(tree), servers: Map::new() };
        workspace.git(&["init", "-q"]);
        workspace.git(&["add", "."]);
        workspace
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let done = self.sandbox.command("git").args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// A fake server for `.fake` files, in the user's own settings.
    pub(crate) fn server(mut self, id: &str, script: Value) -> Self {
        let entry = tenon_fake_lsp::entry(&self.sandbox.dir("state"), id, script);
        self.servers.insert(id.to_owned(), entry);
        self.sandbox.write_user_config(&toml::to_string(&json!({ "servers": self.servers })).unwrap());
        self
    }

    pub(crate) fn path(&self, relative: &str) -> String {
        self.sandbox.root().join(relative).to_str().unwrap().to_owned()
    }

    /// The event that Claude Code sends after its `Write` tool has run.
    pub(crate) fn write_event(&self, file: &str) -> Value {
        json!({
            "session_id": "s", "transcript_path": "/dev/null", "cwd": self.sandbox.root(), "permission_mode": "default",
            "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_use_id": "toolu_1",
            "tool_input": { "file_path": file, "content": "" }, "tool_response": { "success": true },
        })
    }

    /// Writes a file and runs the hook; the text for the model, if there is any.
    pub(crate) fn write(&self, file: &str, text: &str) -> Option<String> {
        self.sandbox.tree().write(file, text);
        self.run_hook(&self.write_event(&self.path(file)))
    }

    /// Runs the hook with an event; the text for the model, if there is any.
    pub(crate) fn run_hook(&self, event: &Value) -> Option<String> {
        let output = self.hook(event.to_string().as_bytes());
        if output.stdout.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
        let event = &event["hook_event_name"];
        assert_eq!(
            answer,
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
        );
        Some(text)
    }

    /// Runs the hook with any input and asserts that it exits with 0.
    pub(crate) fn hook(&self, input: &[u8]) -> Output {
        self.hook_in(self.sandbox.root(), input)
    }

    pub(crate) fn hook_in(&self, folder: &Path, input: &[u8]) -> Output {
        self.run_in(folder, "post-edit", input)
    }

    /// Runs one of the hooks with any input and asserts that it exits with 0.
    pub(crate) fn run(&self, hook: &str, input: &[u8]) -> Output {
        self.run_in(self.sandbox.root(), hook, input)
    }

    fn run_in(&self, folder: &Path, hook: &str, input: &[u8]) -> Output {
        let mut command = self.sandbox.tenon();
        command.args(["hook", hook]).current_dir(folder);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The hook may close its stdin before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(stderr.lines().count() <= 1, "{stderr}");
        output
    }

    /// The daemon that serves the workspace.
    pub(crate) fn daemon(&self) -> ProcessInfo {
        let is_daemon = |one: &ProcessInfo| one.command.get(1).is_some_and(|word| word == "daemon");
        self.sandbox.processes().into_iter().find(is_daemon).expect("a daemon runs")
    }

    pub(crate) fn transcript(&self, server: &str) -> Vec<Value> {
        tenon_fake_lsp::transcript(&self.sandbox.dir("state"), server)
    }
}
