//! Pieces of scripts: what a server offers and what it answers, in LSP's JSON.
//!
//! `$root/…` in a URI is a file of the workspace; see [`Action`](crate::Action) for the other names.

use serde_json::{Value, json};

/// Everything the seven tools of the gateway contract ask a server for.
pub fn capabilities() -> Value {
    json!({
        "textDocumentSync": 1, "definitionProvider": true, "referencesProvider": true, "hoverProvider": true,
        "documentSymbolProvider": true, "workspaceSymbolProvider": true,
    })
}

/// A server that offers [`capabilities`], follows `rules`, and publishes an error for each `bad` in every text.
pub fn script(rules: &[Value]) -> Value {
    let mut all = vec![
        json!({ "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] }),
        json!({ "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] }),
    ];
    all.extend_from_slice(rules);
    json!({ "capabilities": capabilities(), "rules": all })
}

/// A server with incremental sync that publishes an error for each `bad` in every version of a text.
pub fn linter() -> Value {
    json!({ "capabilities": { "textDocumentSync": 2 }, "rules": [
        { "on": "textDocument/didOpen", "do": [{ "publish": { "uri": "$uri" } }] },
        { "on": "textDocument/didChange", "do": [{ "publish": { "uri": "$uri" } }] },
    ]})
}

/// The same server, but it ignores EOF, SIGTERM and `exit`.
pub fn deaf(mut script: Value) -> Value {
    for key in ["deaf_to_eof", "deaf_to_sigterm", "deaf_to_exit"] {
        script[key] = json!(true);
    }
    script
}

/// A rule that answers a request.
pub fn reply(on: &str, value: Value) -> Value {
    json!({ "on": on, "do": [{ "reply": value }] })
}

/// A rule that answers a request late.
pub fn slow_reply(on: &str, pause_ms: u64, value: Value) -> Value {
    json!({ "on": on, "do": [{ "wait_ms": pause_ms }, { "reply": value }] })
}

/// A range from start line and character, end line and character.
pub fn range(numbers: [u32; 4]) -> Value {
    let [line, character, end_line, end_character] = numbers;
    json!({
        "start": { "line": line, "character": character },
        "end": { "line": end_line, "character": end_character },
    })
}

pub fn location(uri: &str, numbers: [u32; 4]) -> Value {
    json!({ "uri": uri, "range": range(numbers) })
}

/// A symbol with its location, as servers list the symbols of a workspace.
pub fn symbol(name: &str, kind: u32, uri: &str, numbers: [u32; 4]) -> Value {
    json!({ "name": name, "kind": kind, "location": location(uri, numbers) })
}
