//! A host in Node, whose pipes are sockets, with `vscode-jsonrpc` and the official MCP client.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::linter;
use tenon_testkit::program;

use crate::host::Workspace;

#[test]
fn node_host_is_served_over_sockets() {
    let mut script = linter();
    script["capabilities"]["hoverProvider"] = json!(true);
    script["rules"].as_array_mut().unwrap().push(json!({ "on": "textDocument/hover", "do": ["reply_word"] }));
    let workspace = Workspace::new("//- a.fake\nword\n").server("fake", script);
    let output = workspace
        .sandbox
        .command(program::tool("node"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lsp_service/host.cjs"))
        .arg(program::node_modules())
        .arg(env!("CARGO_BIN_EXE_tenon"))
        .arg(workspace.path("a.fake"))
        .env("LSP_BOOTSTRAP", workspace.bootstrap(json!({})).to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = json!({ "file": "a.fake", "line": 1, "character": 4, "severity": "error", "message": "this is bad", "source": "fake" });
    assert_eq!(
        seen,
        json!({
            "ready": {}, "checked": [found], "advanced": true, "after": { "a.fake": [found] }, "cancelled": true,
            "tools": ["lsp_goto_definition", "lsp_find_references", "lsp_hover", "lsp_document_symbols", "lsp_workspace_symbols", "lsp_diagnostics"],
            "hover": { "content": "word" }, "rejected": true, "shutdown": null, "exit": { "code": 0, "signal": null },
        })
    );
    workspace.sandbox.assert_no_processes();
}
