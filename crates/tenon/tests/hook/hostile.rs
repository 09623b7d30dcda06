//! Edits in a hostile repository: real servers from outside check them, and nothing in the repository runs.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::Value;
use tenon_testkit::PATIENCE;

use crate::workspace::Workspace;

const TREE: &str = r#"
//- tenon.toml
[servers.evil]
command = "./bin/evil"
extensions = [".py", ".js"]
[servers.pyright]
command = "./bin/pyright-langserver"
//- package.json
{ "name": "evil" }
//- pyproject.toml
[tool.pyright]
venvPath = "."
venv = ".venv"
//- a.py
x: int = "a"
//- a.js
var x = 1
"#;

/// Every planted program leaves a mark outside the repository when it runs.
fn hostile() -> Workspace {
    let workspace = Workspace::new(TREE);
    // In their sandbox, servers could not leave a mark.
    workspace.sandbox.write_user_config("[sandbox]\nexcept = [\"*\"]\n");
    let mark = workspace.sandbox.folder().join("ran").display().to_string();
    let tree = workspace.sandbox.tree();
    for program in [
        "bin/evil",
        "bin/pyright-langserver",
        "node_modules/.bin/pyright-langserver",
        "node_modules/.bin/vscode-eslint-language-server",
        ".venv/bin/python",
    ] {
        tree.write(program, &format!("#!/bin/sh\necho {program} >> {mark}\n"));
        std::fs::set_permissions(tree.path(program), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = |name: &str| format!("require('fs').appendFileSync({mark:?}, '{name}\\n')\n");
    tree.write("eslint.config.js", &script("eslint.config.js"));
    tree.write(
        "node_modules/eslint/package.json",
        r#"{"name": "eslint", "version": "9.0.0", "main": "index.js"}"#,
    );
    tree.write("node_modules/eslint/index.js", &script("eslint"));
    workspace
}

fn ran(workspace: &Workspace) -> String {
    std::fs::read_to_string(workspace.sandbox.folder().join("ran")).unwrap_or_default()
}

#[test]
fn edits_are_checked_and_no_planted_program_runs_before_trust() {
    let workspace = hostile();
    workspace.write("a.py", "y: int = 'b'\n");
    let checked = workspace.sandbox.tenon().args(["check", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["counts"]["error"], 1, "no server from outside checked the file: {report:#}");
    assert_eq!(ran(&workspace), "");

    // Control: once trusted, the same edit does run a planted program.
    assert!(workspace.sandbox.tenon().arg("trust").status().unwrap().success());
    // The hook does not wait until a server has started.
    let deadline = Instant::now() + PATIENCE;
    while !ran(&workspace).contains("bin/evil") {
        workspace.write("a.py", "y: int = 'c'\n");
        assert!(Instant::now() < deadline, "{}", ran(&workspace));
    }
}

#[test]
fn special_files_in_an_event_neither_hang_nor_are_read() {
    let script = tenon_fake_lsp::scripts::linter();
    let workspace = Workspace::new("//- a.fake\nbad\n").server("fake", script);
    let tree = workspace.sandbox.tree();
    for name in ["pipe.fake", "zero.fake", "socket.fake"] {
        tree.write(name, "text");
        workspace.git(&["add", name]);
        std::fs::remove_file(tree.path(name)).unwrap();
    }
    assert!(workspace.sandbox.command("mkfifo").arg(tree.path("pipe.fake")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", tree.path("zero.fake")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("socket.fake")).unwrap();
    // The daemon and its server run.
    let deadline = Instant::now() + PATIENCE;
    while workspace.write("a.fake", "bad bad\n").is_none() {
        workspace.write("a.fake", "text\n");
        assert!(Instant::now() < deadline, "no report on a regular file");
    }
    for file in ["pipe.fake", "zero.fake", "socket.fake"].map(|name| workspace.path(name)) {
        workspace.run_hook(&workspace.write_event(&file));
    }
    for file in ["/dev/zero", "/dev/stdin", "/proc/self/mem"] {
        assert_eq!(workspace.run_hook(&workspace.write_event(file)), None);
    }
    assert!(workspace.write("a.fake", "bad\nbad\nbad\n").is_some(), "the daemon still answers");
    let opened = tenon_fake_lsp::transcript(&workspace.sandbox.dir("state"), "fake");
    let is_special = |line: &Value| {
        ["pipe.fake", "zero.fake", "socket.fake"]
            .iter()
            .any(|name| line.to_string().contains(&format!("/{name}\",\"languageId")))
    };
    assert!(!opened.iter().any(is_special), "a special file was shown to a server");
}
