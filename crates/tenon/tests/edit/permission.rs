//! Which clients may edit.

use serde_json::json;
use tenon_testkit::{McpClient, Revision};

use crate::workspace::{ServeProcess, Workspace, code, edit};

/// A client over HTTP with a token for these surfaces.
fn over_http(workspace: &Workspace, served: &ServeProcess, path: &str, surfaces: &[&str]) -> McpClient {
    let mut command = workspace.sandbox.tenon();
    command.args(["token", "rotate", "--json"]);
    if !surfaces.is_empty() {
        command.args(["--surface", &surfaces.join(",")]);
    }
    let token: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    McpClient::over_http(served.address, path, token["token"].as_str(), Revision::Stateless)
}

#[test]
fn edit_surface_is_unknown_without_the_users_permission() {
    let workspace = Workspace::new("//- a.txt\none\n");
    workspace.set_settings(&json!({}));
    let mut command = workspace.sandbox.tenon();
    let rejected = command.args(["mcp", "--no-daemon", "--surface", "edit"]).output().unwrap();
    assert!(!rejected.status.success());
    let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(stderr.contains("unknown surface `edit`") && stderr.contains("tenon allow-edit"), "{stderr}");
    // Neither the workspace's own `tenon.toml` nor permission for another folder allows edits.
    workspace
        .sandbox
        .tree()
        .write("tenon.toml", "[edit]\nallow = [\"/\"]\n[mcp]\nsurfaces = [\"edit\", \"nav\"]\n");
    workspace.set_settings(&json!({ "edit": { "allow": [workspace.sandbox.dir("home")] }, "mcp": { "surfaces": ["edit", "nav"] } }));
    let mut command = workspace.sandbox.tenon();
    let mut client = McpClient::connect(command.args(["mcp", "--no-daemon"]));
    assert!(!client.list_tools().iter().any(|tool| tool == "edit_file"));
    let arguments = json!({ "file": "a.txt", "old_text": "one", "new_text": "two" });
    assert!(client.call_tool("edit_file", arguments).is_err());
    assert_eq!(workspace.bytes("a.txt"), b"one\n");
}

#[test]
fn allow_edit_flag_permits_edits() {
    let workspace = Workspace::new("//- a.txt\none\n");
    workspace.set_settings(&json!({}));
    let served = ServeProcess::start(&workspace.sandbox, &["--allow-edit"]);
    let mut client = over_http(&workspace, &served, "/mcp/edit", &["edit"]);
    assert_eq!(client.list_tools(), ["edit_file", "write_file", "rename", "edit_symbol", "fix"]);
    assert!(!edit(&mut client, "a.txt", "one", "two").is_error);
    assert_eq!(workspace.bytes("a.txt"), b"two\n");
    assert_eq!(code(&edit(&mut client, ".git/config", "one", "two")), "PROTECTED");
}

#[test]
fn token_without_the_edit_surface_cannot_edit() {
    let workspace = Workspace::new("//- a.txt\none\n");
    let served = ServeProcess::start(&workspace.sandbox, &[]);
    let arguments = json!({ "file": "a.txt", "old_text": "one", "new_text": "two" });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "edit_file", "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let token = workspace.sandbox.tenon().args(["token", "rotate"]).output().unwrap();
    let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
    for path in ["/mcp/edit", "/mcp"] {
        let request = tenon_testkit::http::Request::mcp(path, Some(&token), body.to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "edit_file");
        let response = tenon_testkit::http::send(served.address, &request).unwrap();
        let changed = response.status == 200 && response.messages().iter().any(|one| one["error"].is_null());
        assert!(!changed, "{path}: {response:?}");
    }
    assert_eq!(workspace.bytes("a.txt"), b"one\n");
    let mut permitted = over_http(&workspace, &served, "/mcp/edit", &["edit"]);
    assert!(!edit(&mut permitted, "a.txt", "one", "two").is_error);
}
