//! Real coding agents, configured by `tenon connect`, with a scripted model on loopback.
//!
//! Each agent must list Tenon's tools to the model, call `find` and `edit_file` when the model asks for it, and send the answers to
//! the model. `tests/clients/agents/model.mjs` is the model. The agents are pinned in `tests/tools/agents`; their telemetry and update
//! checks are off, and proxies are not set, so that they reach nothing but loopback.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tenon_contract::id::sha256_hex;
use tenon_testkit::{Sandbox, program, repository_root};

const SOURCE: &str = "class Greeter:\n    def hello(self):\n        return \"hi\"\n";

/// The scripted model, until dropped.
struct Model {
    process: Child,
    url: String,
    log: PathBuf,
}

impl Model {
    fn start(sandbox: &Sandbox) -> Self {
        let log = sandbox.dir("tmp").join("requests.jsonl");
        let calls = json!([
            {"tool": "find", "arguments": {"name": "Greeter"}},
            {"tool": "edit_file", "arguments": {"file": "app.py", "old_text": "\"hi\"", "new_text": "\"hello\""}},
        ]);
        let mut process = sandbox
            .command(program::tool("node"))
            .arg(repository_root().join("tests/clients/agents/model.mjs"))
            .env("MODEL_LOG", &log)
            .env("MODEL_CALLS", calls.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        Self { process, url: format!("http://127.0.0.1:{}", port.trim()), log }
    }

    /// What the model was asked, in order.
    fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of an agent's npm package. `{arch}` is npm's name of this machine's architecture.
fn agent_program(path: &str) -> PathBuf {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let packages = repository_root().join("target/tools/agents/node_modules");
    let program = packages.join(path.replace("{arch}", arch));
    assert!(program.exists(), "{} is missing; run `cargo xtask setup`", program.display());
    program
}

/// A workspace with one Python file, in which edits are allowed, and `tenon` on the PATH.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::with_tree("//- tenon.toml\n");
    sandbox.tree().write("app.py", SOURCE);
    let bin = sandbox.dir("home").join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(program::tenon(), bin.join("tenon")).unwrap();
    assert!(sandbox.tenon().arg("allow-edit").output().unwrap().status.success());
    sandbox
}

/// Connects the agent, runs it, and checks what reached the model.
fn check(
    agent: &str,
    prepare: impl FnOnce(&Sandbox, &Model),
    command: impl FnOnce(&Sandbox, &Model) -> Command,
) {
    let sandbox = workspace();
    let path = {
        let own = std::env::split_paths(&program::search_path()).collect::<Vec<_>>();
        std::env::join_paths(std::iter::once(sandbox.dir("home").join("bin")).chain(own)).unwrap()
    };
    let connected =
        sandbox.tenon().args(["connect", agent, "--only", "mcp"]).env("PATH", &path).output().unwrap();
    assert!(connected.status.success(), "{connected:?}");
    let model = Model::start(&sandbox);
    prepare(&sandbox, &model);
    let output = command(&sandbox, &model).env("PATH", &path).stdin(Stdio::null()).output().unwrap();
    let requests = model.requests();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let shown =
        requests.iter().map(|one| format!("{} {}", one["path"], one["tools"])).collect::<Vec<_>>().join("\n");
    assert!(output.status.success(), "{said}\n{shown}");
    let has_tool = |one: &Value, tool: &str| {
        let mut names = one["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        names.any(|name| name == tool || name.ends_with(&format!("_{tool}")))
    };
    assert!(
        requests.iter().any(|one| has_tool(one, "find") && has_tool(one, "edit_file")),
        "the model was not offered the tools: {said}\n{shown}"
    );
    let contains = |text: &str| requests.iter().any(|one| one["body"].to_string().contains(text));
    assert!(
        contains("class Greeter app.py"),
        "the answer of `find` did not reach the model: {said}\n{shown}"
    );
    // Claude Code and Codex show their model the structured part, with the hash of the new text; the others the text.
    let edited = contains("edited app.py") || contains(&sha256_hex(SOURCE.replace("hi", "hello")));
    assert!(edited, "the answer of `edit_file` did not reach the model: {said}\n{shown}");
    assert_eq!(sandbox.tree().read("app.py"), SOURCE.replace("hi", "hello"));
    drop(model);
    // An agent may leave the daemon to its idle time.
    let _ = sandbox.tenon().arg("stop").output().unwrap();
    sandbox.assert_no_processes();
}

#[test]
fn claude_code_uses_the_tools() {
    let command = |sandbox: &Sandbox, model: &Model| {
        let mut command = sandbox.command(agent_program("@anthropic-ai/claude-code-linux-{arch}/claude"));
        command.args([
            "-p",
            "go",
            "--model",
            "scripted",
            "--allowedTools",
            "mcp__tenon",
            "--mcp-config",
            ".mcp.json",
        ]);
        command.env("ANTHROPIC_BASE_URL", &model.url).env("ANTHROPIC_API_KEY", "none");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        // All tools are in the first request, instead of behind a search.
        command.env("ENABLE_TOOL_SEARCH", "false").env("MCP_TIMEOUT", "60000");
        command
    };
    check("claude", |_, _| {}, command);
}

#[test]
fn codex_uses_the_tools() {
    let prepare = |sandbox: &Sandbox, model: &Model| {
        let folder = sandbox.dir("home").join(".codex");
        fs::create_dir_all(&folder).unwrap();
        let settings = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
             check_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.scripted]\nname = \"scripted\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            model.url,
            sandbox.root().display()
        );
        fs::write(folder.join("config.toml"), settings).unwrap();
    };
    let command = |sandbox: &Sandbox, _: &Model| {
        let mut command = sandbox.command(program::tool("node"));
        command.arg(agent_program("@openai/codex/bin/codex.js"));
        command.args(["exec", "--skip-git-repo-check", "go"]).env("OPENAI_API_KEY", "none");
        command
    };
    check("codex", prepare, command);
}

#[test]
fn gemini_cli_uses_the_tools() {
    let prepare = |sandbox: &Sandbox, _: &Model| {
        let folder = sandbox.dir("home").join(".gemini");
        fs::create_dir_all(&folder).unwrap();
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
            "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        });
        fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    };
    let command = |sandbox: &Sandbox, model: &Model| {
        let mut command = sandbox.command(program::tool("node"));
        command.arg(agent_program("@google/gemini-cli/bundle/gemini.js"));
        command.args(["-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"]);
        command.env("GOOGLE_GEMINI_BASE_URL", &model.url).env("GEMINI_API_KEY", "none");
        command.env("GEMINI_CLI_TRUST_WORKSPACE", "true").env("GEMINI_TELEMETRY_ENABLED", "false");
        command
    };
    check("gemini", prepare, command);
}

#[test]
fn opencode_uses_the_tools() {
    let prepare = |sandbox: &Sandbox, model: &Model| {
        let folder = sandbox.dir("config").join("opencode");
        fs::create_dir_all(&folder).unwrap();
        let settings = json!({
            "share": "disabled",
            "autoupdate": false,
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": format!("{}/v1", model.url), "apiKey": "none"},
                "models": {"scripted": {"name": "scripted", "tool_call": true}},
            }},
        });
        fs::write(folder.join("opencode.json"), settings.to_string()).unwrap();
    };
    let command = |sandbox: &Sandbox, _: &Model| {
        let mut command = sandbox.command(agent_program("opencode-linux-{arch}/bin/opencode"));
        command.args(["run", "-m", "scripted/scripted", "go"]);
        command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
        command.env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
        command
    };
    check("opencode", prepare, command);
}
