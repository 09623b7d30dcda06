//! Who may edit at all.

use serde_json::json;
use tenon_testkit::{Client, Revision};

use crate::stage::{Served, Stage, code, edit};

/// A client over HTTP with a token for these surfaces.
fn over_http(stage: &Stage, served: &Served, path: &str, surfaces: &[&str]) -> Client {
    let mut command = stage.sandbox.tenon();
    command.args(["token", "rotate", "--json"]);
    if !surfaces.is_empty() {
        command.args(["--surface", &surfaces.join(",")]);
    }
    let token: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    Client::over_http(served.address, path, token["token"].as_str(), Revision::Stateless)
}

#[test]
fn without_the_users_word_there_is_no_surface() {
    let stage = Stage::new("//- a.txt\none\n");
    stage.settle(&json!({}));
    let mut command = stage.sandbox.tenon();
    let refused = command.args(["mcp", "--no-daemon", "--surface", "edit"]).output().unwrap();
    assert!(!refused.status.success());
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("unknown surface `edit`") && words.contains("`edit.allow`"), "{words}");
    // A workspace cannot allow itself, nor does another folder's permission count.
    stage
        .sandbox
        .tree()
        .write("tenon.toml", "[edit]\nallow = [\"/\"]\n[mcp]\nsurfaces = [\"edit\", \"nav\"]\n");
    stage.settle(&json!({ "edit": { "allow": [stage.sandbox.place("home")] }, "mcp": { "surfaces": ["edit", "nav"] } }));
    let mut command = stage.sandbox.tenon();
    let mut client = Client::over_pipes(command.args(["mcp", "--no-daemon"]), Revision::Sessions);
    client.initialize();
    assert!(!client.list_tools().iter().any(|tool| tool == "edit_file"));
    let arguments = json!({ "file": "a.txt", "old_text": "one", "new_text": "two" });
    assert!(client.call_tool("edit_file", arguments).is_err());
    assert_eq!(stage.bytes("a.txt"), b"one\n");
}

#[test]
fn a_daemons_flag_is_the_users_word() {
    let stage = Stage::new("//- a.txt\none\n");
    stage.settle(&json!({}));
    let served = Served::start(&stage.sandbox, &["--allow-edit"]);
    let mut client = over_http(&stage, &served, "/mcp/edit", &["edit"]);
    assert_eq!(client.list_tools(), ["edit_file", "write_file"]);
    assert!(!edit(&mut client, "a.txt", "one", "two").is_error);
    assert_eq!(stage.bytes("a.txt"), b"two\n");
    assert_eq!(code(&edit(&mut client, ".git/config", "one", "two")), "PROTECTED");
}

#[test]
fn a_token_edits_only_when_it_says_so() {
    let stage = Stage::new("//- a.txt\none\n");
    let served = Served::start(&stage.sandbox, &[]);
    let arguments = json!({ "file": "a.txt", "old_text": "one", "new_text": "two" });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "edit_file", "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let token = stage.sandbox.tenon().args(["token", "rotate"]).output().unwrap();
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
    assert_eq!(stage.bytes("a.txt"), b"one\n");
    let mut allowed = over_http(&stage, &served, "/mcp/edit", &["edit"]);
    assert!(!edit(&mut allowed, "a.txt", "one", "two").is_error);
}
