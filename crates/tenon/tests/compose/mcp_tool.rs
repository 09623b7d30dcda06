//! `workspace_compose` over MCP returns the same outcome that the command line prints, with or without errors.

use serde_json::{Value, json};
use tenon_testkit::{McpClient, Sandbox};

use crate::{compose_stdin, workspace};

#[test]
fn tool_result_equals_command_output() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.tenon();
    command.args(["mcp", "--no-daemon", "--surface", "workspace"]);
    let mut client = McpClient::connect(&mut command);
    assert!(client.list_tools().contains(&"workspace_compose".to_owned()));
    for (input, ok) in [
        (workspace(&["/a"]), true),
        (workspace(&["/a", "/a", "/B"]), false),
        (json!({"compositionSchemaVersion": "0.1", "modules": {}}), false),
        (json!({}), false),
    ] {
        let result = client.call_tool("workspace_compose", json!({"input": input})).unwrap();
        let printed = compose_stdin(&sandbox, &[], input.to_string().as_bytes());
        assert_eq!(result.structured, serde_json::from_slice::<Value>(&printed.stdout).unwrap());
        assert_eq!((result.structured["ok"].as_bool(), result.is_error), (Some(ok), false));
    }
    let policy = json!({"policySchemaVersion": "9"});
    let result = client
        .call_tool("workspace_compose", json!({"input": workspace(&["/a"]), "policy": policy}))
        .unwrap();
    assert_eq!(result.structured["diagnostics"][0]["details"]["field"], "policySchemaVersion");

    for arguments in [json!({}), json!({"input": []}), json!({"input": {}, "extra": 1})] {
        let rejected = client.call_tool("workspace_compose", arguments).unwrap();
        assert!(rejected.is_error && rejected.text.concat().contains("INVALID_INPUT"), "{rejected:?}");
    }
    client.close();
}
