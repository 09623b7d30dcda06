//! A workspace of the store belongs to the folder that used it first, until the user links another one.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox};

use crate::{call, connect_by, text};

const REMOTE: &str = "[remote \"origin\"]\n\turl = https://h.org/o/r.git\n";

/// A folder of the sandbox that claims this remote.
fn clone(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.tree().write(format!("{name}/.git/config"), REMOTE);
    sandbox.root().join(name)
}

fn connect(sandbox: &Sandbox, root: &Path) -> McpClient {
    let args = ["mcp", "--no-daemon", "--surface", "tasks,memory", "--root"];
    connect_by(sandbox.tenon().args(args).arg(root))
}

fn tenon(sandbox: &Sandbox, root: &Path, args: &[&str]) -> Output {
    sandbox.tenon().args(args).current_dir(root).output().unwrap()
}

fn plans(client: &mut McpClient, arguments: Value) -> Value {
    call(client, "tasks_context", arguments)
}

/// A sandbox in which the folder `mine` has a plan.
fn with_plan() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let mine = clone(&sandbox, "mine");
    let created = call(&mut connect(&sandbox, &mine), "tasks_create", json!({"title": "Secret plan"}));
    assert_eq!(created["success"], true, "{created}");
    (sandbox, mine)
}

#[test]
fn repository_with_the_same_remote_reads_nothing_until_it_is_linked() {
    let (sandbox, mine) = with_plan();
    let other = clone(&sandbox, "other");
    let mut client = connect(&sandbox, &other);
    for (tool, arguments) in [
        ("tasks_context", json!({})),
        ("tasks_context", json!({"workspace": "h.org/o/r"})),
        ("tasks_create", json!({"title": "x"})),
        ("memory_status", json!({})),
    ] {
        let refused = call(&mut client, tool, arguments);
        assert_eq!(refused["error"]["code"], "UNKNOWN_WORKSPACE", "{refused}");
        assert!(refused["error"]["recovery"].as_str().unwrap().contains("tenon tasks link h.org/o/r"));
        assert!(!refused.to_string().contains("Secret plan"), "{refused}");
    }
    let listed = tenon(&sandbox, &other, &["tasks", "list"]);
    assert_eq!((listed.status.code(), text(&listed.stdout).as_str()), (Some(1), ""));

    assert!(tenon(&sandbox, &other, &["tasks", "link"]).status.success());
    assert_eq!(plans(&mut client, json!({}))["result"]["plans"][0]["title"], "Secret plan");
    assert!(text(&tenon(&sandbox, &other, &["tasks", "list"]).stdout).contains("Secret plan"));
    assert!(text(&tenon(&sandbox, &mine, &["tasks", "list"]).stdout).contains("Secret plan"));

    assert!(tenon(&sandbox, &other, &["tasks", "link", "--remove"]).status.success());
    assert_eq!(tenon(&sandbox, &other, &["tasks", "link", "--remove"]).status.code(), Some(1));
    let refused = plans(&mut connect(&sandbox, &other), json!({}));
    assert_eq!(refused["error"]["code"], "UNKNOWN_WORKSPACE", "{refused}");
}

#[test]
fn client_reaches_no_workspace_of_another_folder_by_its_name() {
    let (sandbox, _) = with_plan();
    let other = sandbox.root().join("plain");
    std::fs::create_dir(&other).unwrap();
    let mut client = connect(&sandbox, &other);
    let refused = plans(&mut client, json!({"workspace": "h.org/o/r"}));
    assert_eq!(refused["error"]["code"], "UNKNOWN_WORKSPACE", "{refused}");
    // A question about an unused name does not take it; a write does.
    for (folder, expected) in [("plain", json!(true)), ("later", json!(false))] {
        let root = sandbox.root().join(folder);
        std::fs::create_dir_all(&root).unwrap();
        let mut client = connect(&sandbox, &root);
        if folder == "plain" {
            assert_eq!(plans(&mut client, json!({"workspace": "new"}))["success"], true);
        }
        let created = call(&mut client, "tasks_create", json!({"workspace": "new", "title": "t"}));
        assert_eq!(created["success"], expected, "{created}");
    }
    // The user may name any workspace.
    let listed = tenon(&sandbox, &other, &["tasks", "list", "--workspace", "h.org/o/r"]);
    assert!(text(&listed.stdout).contains("Secret plan"), "{listed:?}");
}

#[test]
fn worktree_shares_the_workspace_of_the_repository() {
    let (sandbox, mine) = with_plan();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done = sandbox.command("git").args(identity).args(args).current_dir(&mine).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["worktree", "add", "-q", "../two"]);
    let worktree = sandbox.root().join("two");
    let shared = plans(&mut connect(&sandbox, &worktree), json!({}));
    assert_eq!(shared["result"]["plans"][0]["title"], "Secret plan", "{shared}");

    // A folder that only claims to be that worktree.
    let liar = sandbox.root().join("liar");
    std::fs::create_dir(&liar).unwrap();
    std::fs::copy(worktree.join(".git"), liar.join(".git")).unwrap();
    let refused = plans(&mut connect(&sandbox, &liar), json!({}));
    assert_eq!(refused["error"]["code"], "UNKNOWN_WORKSPACE", "{refused}");
}
