//! What each agent gets, in both scopes and over HTTP, and the list of agents.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tenon_testkit::McpClient;

use crate::{AGENTS, connect, run, sandbox, transcript};

/// Connects with `--dry-run`; the added lines.
fn added(args: &[&str]) -> String {
    let sandbox = sandbox("");
    let output = connect(&sandbox, &[args, &["--dry-run", "--only", "mcp"]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let diff =
        String::from_utf8(output.stdout).unwrap().replace(sandbox.folder().to_str().unwrap(), "[SANDBOX]");
    let shown = diff.lines().filter(|line| line.starts_with('+')).map(|line| &line[1..]);
    shown.map(|line| line.strip_prefix("++ ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn entry_of_each_agent() {
    insta::assert_snapshot!(AGENTS.map(|agent| added(&[agent])).join("\n"));
}

#[test]
fn entry_of_each_agent_for_all_workspaces() {
    insta::assert_snapshot!(AGENTS.map(|agent| added(&[agent, "--scope", "user"])).join("\n"));
}

#[test]
fn http_entry_of_each_agent_has_no_token() {
    let sandbox = sandbox("");
    let said = transcript(&sandbox, &["claude", "--http"]);
    assert!(said.contains("error: the HTTP port of this workspace is not known yet"), "{said}");
    sandbox.write_user_config("http.port = 7007\n");
    let mut shown = String::new();
    for agent in AGENTS {
        shown += &transcript(&sandbox, &[agent, "--http", "--dry-run", "--only", "mcp"]);
    }
    insta::assert_snapshot!(shown);
    let several = transcript(&sandbox, &["claude", "--http", "--surface", "code,nav"]);
    assert!(several.contains("error: an HTTP address serves one surface"), "{several}");
    assert!(run(&sandbox, &["claude", "--http", "--surface", "code"]).contains("TENON_TOKEN"));
    assert!(sandbox.tree().read(".mcp.json").contains("http://127.0.0.1:7007/mcp/code"));
}

/// The entry works: its command serves the surfaces that were asked for.
#[test]
fn written_command_serves_the_chosen_surfaces() {
    let sandbox = sandbox("");
    run(&sandbox, &["claude", "--surface", "nav"]);
    let first: Value = serde_json::from_str(&sandbox.tree().read(".mcp.json")).unwrap();
    run(&sandbox, &["claude", "--surface", "code"]);
    let file: Value = serde_json::from_str(&sandbox.tree().read(".mcp.json")).unwrap();
    assert_ne!(first, file);
    let args =
        file["mcpServers"]["tenon"]["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let mut command = sandbox.tenon();
    command.args(args).arg("--no-daemon").current_dir("/");
    let mut client = McpClient::connect(&mut command);
    let tools = client.list_tools();
    assert!(!tools.is_empty() && tools.iter().all(|tool| tool.starts_with("vscode")), "{tools:?}");
    drop(client);
    run(&sandbox, &["claude", "--undo"]);
    assert!(!sandbox.root().join(".mcp.json").exists(), "the file before the first change is restored");
    let unknown = transcript(&sandbox, &["claude", "--surface", "nope"]);
    assert!(unknown.contains("error: unknown surface `nope`; available: explore, code"), "{unknown}");
}

#[test]
fn agents_on_the_machine_are_listed_with_their_state() {
    let sandbox = sandbox("//- .zed/settings.json\n{ broken\n//- .cursor/rules/a.md\nx\n");
    let bin = sandbox.dir("data").join("bin");
    symlink("/bin/true", bin.join("gemini")).unwrap();
    symlink("/bin/true", bin.join("codex")).unwrap();
    symlink("/bin/true", bin.join("zed")).unwrap();
    fs::create_dir(sandbox.dir("config").join("opencode")).unwrap();
    fs::write(
        sandbox.root().join(".mcp.json"),
        r#"{"mcpServers": {"tenon": {"command": "/gone/tenon", "args": ["mcp"]}}}"#,
    )
    .unwrap();
    run(&sandbox, &["codex"]);
    insta::assert_snapshot!(transcript(&sandbox, &[]));
    let listed = connect(&sandbox, &["--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[1]["name"], "codex");
    assert_eq!(listed[1]["state"], "connected");
    let windsurf = json!({"name": "windsurf", "title": "Windsurf", "state": "not found", "detail": ""});
    assert!(listed.as_array().unwrap().contains(&windsurf), "{listed}");
    run(&sandbox, &["claude"]);
    assert!(
        transcript(&sandbox, &[])
            .contains("claude    Claude Code  connected  (project: MCP server, project: hooks)")
    );
}

#[test]
fn windsurf_has_no_project_scope() {
    let said = transcript(&sandbox(""), &["windsurf", "--scope", "project"]);
    assert!(
        said.contains("error: Windsurf has no configuration in a workspace\n  hint: pass `--scope user`"),
        "{said}"
    );
}

#[test]
fn folders_of_agents_can_be_moved() {
    let sandbox = sandbox("");
    let moved = sandbox.dir("data").join("moved");
    for (agent, variable, file) in
        [("claude", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml")]
    {
        let mut command = connect(&sandbox, &[agent, "--scope", "user"]);
        assert!(command.env(variable, &moved).status().unwrap().success());
        assert!(fs::read_to_string(moved.join(file)).unwrap().contains("tenon"));
    }
}

#[test]
fn one_part_is_removed_and_the_other_stays() {
    let sandbox = sandbox("//- .gemini/settings.json\n{}\n");
    run(&sandbox, &["gemini"]);
    run(&sandbox, &["gemini", "--undo", "--only", "hooks"]);
    let text = sandbox.tree().read(".gemini/settings.json");
    assert!(text.contains("mcpServers") && !text.contains("hooks"), "{text}");
    run(&sandbox, &["gemini", "--undo"]);
    assert!(!sandbox.tree().read(".gemini/settings.json").contains("tenon"));
    let none = transcript(&sandbox, &["zed", "--only", "hooks"]);
    assert!(none.contains("error: Zed has no hooks"), "{none}");
}
