//! `tenon connect`: what it writes into the configuration of each agent, what it leaves alone, and `--undo`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod agents;
mod config_files;
mod hooks;
mod unwritable;

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use tenon_testkit::Sandbox;

/// A workspace with `tenon` and no agent on the PATH.
fn sandbox(tree: &str) -> Sandbox {
    let sandbox = Sandbox::with_tree(&format!("//- tenon.toml\n{tree}"));
    let bin = sandbox.dir("data").join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(tenon_testkit::program::tenon(), bin.join("tenon")).unwrap();
    sandbox
}

fn connect(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.tenon();
    command.arg("connect").args(args).env("PATH", sandbox.dir("data").join("bin"));
    command
}

/// Runs `tenon connect`; its exit code, stdout and stderr as one text.
fn transcript(sandbox: &Sandbox, args: &[&str]) -> String {
    tenon_testkit::transcript(sandbox, &connect(sandbox, args).output().unwrap())
}

/// Runs `tenon connect`, which must succeed.
fn run(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = connect(sandbox, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The file with the MCP servers of an agent in the workspace, or in the home folder if there is none in a workspace.
fn entry_file(sandbox: &Sandbox, agent: &str) -> PathBuf {
    let root = sandbox.root();
    match agent {
        "claude" => root.join(".mcp.json"),
        "codex" => root.join(".codex/config.toml"),
        "cursor" => root.join(".cursor/mcp.json"),
        "gemini" => root.join(".gemini/settings.json"),
        "opencode" => root.join("opencode.json"),
        "vscode" => root.join(".vscode/mcp.json"),
        "zed" => root.join(".zed/settings.json"),
        "windsurf" => sandbox.dir("home").join(".codeium/windsurf/mcp_config.json"),
        _ => unreachable!("{agent}"),
    }
}

const AGENTS: [&str; 8] = ["claude", "codex", "cursor", "gemini", "opencode", "vscode", "windsurf", "zed"];
