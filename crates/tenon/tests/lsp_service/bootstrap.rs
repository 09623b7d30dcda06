//! Bad bootstraps: one line that names the place, exit code 1, nothing on stdout.

use serde_json::{Value, json};

use crate::host::Stage;

fn refused(stage: &Stage, bootstrap: Option<&Value>) -> String {
    let mut command = stage.command(&json!({}));
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
fn mistakes_are_named_by_their_path() {
    let stage = Stage::new("//- a.fake\nx\n");
    let root = stage.sandbox.root();
    assert!(refused(&stage, None).contains("not set"));
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
        let line = refused(&stage, Some(&value));
        assert!(line.contains(path), "{value}: {line}");
    }
}
