//! Invalid bootstraps: exit code 1, nothing on stdout, and one line on stderr that names the key.

use serde_json::{Value, json};

use crate::host::Workspace;

fn rejected(workspace: &Workspace, bootstrap: Option<&Value>) -> String {
    let mut command = workspace.command(&json!({}));
    match bootstrap {
        Some(value) => command.env("LSP_BOOTSTRAP", value.to_string()),
        None => command.env_remove("LSP_BOOTSTRAP"),
    };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{bootstrap:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn invalid_bootstrap_is_rejected_with_its_key() {
    let workspace = Workspace::new("//- a.fake\nx\n");
    let root = workspace.sandbox.root();
    assert!(rejected(&workspace, None).contains("not set"));
    for (value, path) in [
        (json!({}), "workspaceRoot: missing"),
        (json!({ "workspaceRoot": "" }), "workspaceRoot: empty"),
        (json!({ "workspaceRoot": "relative" }), "workspaceRoot: not an absolute path"),
        (json!({ "workspaceRoot": root.join("gone") }), "workspaceRoot: "),
        (json!({ "workspaceRoot": root.join("a.fake") }), "workspaceRoot: "),
        (json!({ "workspaceRoot": root, "config": null }), "config: null"),
        (json!({ "workspaceRoot": root, "config": { "navigationTools": 1 } }), "config.navigationTools: "),
        (json!({ "workspaceRoot": root, "config": { "servers": { "nope": {} } } }), "config.servers.nope: "),
        (json!({ "workspaceRoot": root, "surprise": true }), "surprise: unknown key"),
    ] {
        let line = rejected(&workspace, Some(&value));
        assert!(line.contains(path), "{value}: {line}");
    }
}
