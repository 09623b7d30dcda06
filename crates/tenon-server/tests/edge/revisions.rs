//! Revisions 2026-07-28 and 2025-11-25 on one endpoint.

use serde_json::{Value, json};
use tenon_server::http::HttpLimits;

use crate::http_client::{Request, Server};

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn alone(method: &str, mut params: Value) -> Request {
    params["_meta"] = meta();
    Request::rpc(method, params).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method)
}

fn echo() -> Request {
    alone("tools/call", json!({ "name": "probe.echo", "arguments": { "text": "hi" } }))
        .with("Mcp-Name", "probe.echo")
}

#[tokio::test]
async fn sessionless_request_is_answered() {
    let server = Server::start(HttpLimits::default()).await;
    let discovered = server.send(&alone("server/discover", json!({}))).await.json();
    let result = &discovered["result"];
    let all = json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(result["supportedVersions"], all);
    let contract = server.send(&alone("server/discover", json!({})).path("/mcp/code")).await.json();
    assert_eq!(contract["result"]["supportedVersions"], json!(["2025-11-25", "2026-07-28"]));
    assert_eq!(result["resultType"], "complete");
    let listed = server.send(&alone("tools/list", json!({}))).await;
    assert_eq!(listed.header("mcp-session-id"), None);
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "probe.echo");
    let answer = server.send(&echo()).await.json();
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["structuredContent"], json!({ "text": "hi" }));
    let encoded = server.send(&echo().with("Mcp-Name", "=?base64?cHJvYmUuZWNobw==?=")).await;
    assert_eq!(encoded.status, 200);
}

#[tokio::test]
async fn headers_and_body_must_agree() {
    let server = Server::start(HttpLimits::default()).await;
    let rows = [
        ("no method header", echo().without("Mcp-Method"), 400, -32020),
        ("another method", echo().with("Mcp-Method", "tools/list"), 400, -32020),
        ("no name header", echo().without("Mcp-Name"), 400, -32020),
        ("another name", echo().with("Mcp-Name", "probe.fail"), 400, -32020),
        ("a broken encoding", echo().with("Mcp-Name", "=?base64?*?="), 400, -32020),
        ("no version header", echo().without("MCP-Protocol-Version"), 400, -32020),
        ("another version header", echo().with("MCP-Protocol-Version", "2025-11-25"), 400, -32020),
        ("an unknown method", alone("no/such", json!({})), 404, -32601),
        ("ping, which was removed", alone("ping", json!({})), 404, -32601),
        (
            "a wrong argument",
            alone("tools/call", json!({ "name": "probe.echo" })).with("Mcp-Name", "probe.echo"),
            200,
            -32602,
        ),
        (
            "no metadata",
            Request::rpc("tools/list", json!({}))
                .with("MCP-Protocol-Version", "2026-07-28")
                .with("Mcp-Method", "tools/list"),
            400,
            -32602,
        ),
    ];
    let rows = rows.into_iter().chain([
        ("initialize, which was removed", alone("initialize", json!({})), 404, -32601),
        ("incomplete metadata", without_capabilities(), 400, -32602),
    ]);
    for (name, request, status, code) in rows {
        let response = server.send(&request).await;
        assert_eq!((response.status, &response.json()["error"]["code"]), (status, &json!(code)), "{name}");
        assert_eq!(response.json()["id"], 1, "{name}");
        if code == -32601 {
            assert_eq!(response.json()["error"]["message"], "method not found", "{name}");
        }
    }
    let unknown = server.send(&echo().with("MCP-Protocol-Version", "2030-01-01")).await;
    assert_eq!((unknown.status, &unknown.json()["id"]), (400, &json!(1)));
}

fn without_capabilities() -> Request {
    let mut meta = meta();
    meta.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let params = json!({ "_meta": meta });
    Request::rpc("tools/list", params)
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/list")
}

#[tokio::test]
async fn notification_is_accepted() {
    let server = Server::start(HttpLimits::default()).await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let noted = server.send(&Request::post(&note).with("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!((noted.status, noted.body.as_str()), (202, ""));
}
