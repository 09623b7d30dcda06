//! Clients of older revisions, byte for byte: each gets what its schema has, and nothing else.

use serde_json::{Value, json};
use tenon_server::http::HttpLimits;
use tenon_server::mcp::stream::{StreamLimits, serve};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::http_client::{Request, Response, Server};
use crate::probe::handler_of;

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn initialize(revision: &str) -> Value {
    let params = json!({ "protocolVersion": revision, "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn echo(id: u32) -> Value {
    request(id, "tools/call", json!({ "name": "probe.echo", "arguments": { "text": "é" } }))
}

/// The lines that answer `messages` on a stream, without `notifications/initialized`.
async fn answers(surfaces: &[&str], messages: &[Value]) -> Vec<String> {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let input = std::io::Cursor::new(lines.join("\n").into_bytes());
    let handler = handler_of(surfaces);
    serve(input, theirs, handler, StreamLimits::default(), CancellationToken::new()).await.unwrap();
    let mut output = String::new();
    ours.read_to_string(&mut output).await.unwrap();
    output.lines().map(str::to_owned).collect()
}

/// The first listed tool.
fn first_tool(line: &str) -> String {
    let answer: Value = serde_json::from_str(line).unwrap();
    answer["result"]["tools"][0].to_string()
}

const INPUT: &str = r#""inputSchema":{"additionalProperties":false,"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"},"name":"probe.echo""#;

#[tokio::test]
async fn each_revision_gets_exactly_its_own_fields() {
    let tool_in = |revision: &str| {
        let annotations = r#""annotations":{"readOnlyHint":true},"#;
        let output = r#","outputSchema":{"type":"object"}"#;
        match revision {
            "2024-11-05" => format!(r#"{{"description":"For tests.",{INPUT}}}"#),
            "2025-03-26" => format!(r#"{{{annotations}"description":"For tests.",{INPUT}}}"#),
            _ => format!(r#"{{{annotations}"description":"For tests.",{INPUT}{output}}}"#),
        }
    };
    let result_in = |revision: &str| match revision {
        "2024-11-05" | "2025-03-26" => {
            r#"{"content":[{"type":"text","text":"{\"text\":\"é\"}"}],"isError":false}"#
        }
        _ => r#"{"content":[],"structuredContent":{"text":"é"},"isError":false}"#,
    };
    let progress_in = |revision: &str| match revision {
        "2024-11-05" => r#"{"progress":1.0,"progressToken":7,"total":1.0}"#,
        _ => r#"{"message":"working","progress":1.0,"progressToken":7,"total":1.0}"#,
    };
    for revision in REVISIONS {
        let report =
            json!({ "name": "probe.report", "arguments": { "steps": 1 }, "_meta": { "progressToken": 7 } });
        // One connection each: calls of one connection may be answered in any order.
        let ask = async |message: Value| answers(&["probe"], &[initialize(revision), message]).await;
        let listed = ask(request(1, "tools/list", json!({}))).await;
        let server = format!(r#""serverInfo":{{"name":"tenon","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
        let opened = format!(
            r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},{server}}}}}"#
        );
        assert_eq!(listed[0], opened);
        assert_eq!(first_tool(&listed[1]), tool_in(revision), "{revision}");
        let called = ask(echo(2)).await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{}}}"#, result_in(revision));
        assert_eq!(called[1], expected, "{revision}");
        let failed = ask(request(3, "tools/call", json!({ "name": "probe.fail" }))).await;
        let expected =
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#;
        assert_eq!(failed[1], expected, "{revision}");
        let reported = ask(request(4, "tools/call", report)).await;
        let expected = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{}}}"#,
            progress_in(revision)
        );
        assert_eq!(reported[1], expected, "{revision}");
        let pinged = ask(request(5, "ping", json!({}))).await;
        assert_eq!(pinged[1], r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, "{revision}");
        let unknown = ask(request(6, "no/such", json!({}))).await;
        let expected = r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"method not found"}}"#;
        assert_eq!(unknown[1], expected, "{revision}");
    }
}

#[tokio::test]
async fn contract_and_unknown_revisions_are_answered_with_2025_11_25() {
    let negotiated = async |surfaces: &[&str], asked: &str| {
        let opened: Value = serde_json::from_str(&answers(surfaces, &[initialize(asked)]).await[0]).unwrap();
        opened["result"]["protocolVersion"].as_str().unwrap().to_owned()
    };
    for asked in REVISIONS {
        assert_eq!(negotiated(&["code"], asked).await, "2025-11-25");
        assert_eq!(negotiated(&["probe"], asked).await, asked);
        assert_eq!(negotiated(&["code", "other"], asked).await, asked, "`code` is not alone");
    }
    for asked in ["2024-10-07", "2026-07-28", "2099-01-01", ""] {
        assert_eq!(negotiated(&["probe"], asked).await, "2025-11-25");
    }
}

#[tokio::test]
async fn client_that_omits_initialized_is_served_unless_the_contract_forbids_it() {
    for revision in REVISIONS {
        let list = request(1, "tools/list", json!({}));
        let served = answers(&["probe"], &[initialize(revision), list.clone()]).await;
        assert!(served[1].contains("probe.echo"), "{}", served[1]);
        let refused = answers(&["code"], &[initialize(revision), list.clone()]).await;
        assert!(refused[1].contains("-32600"), "{}", refused[1]);
        let early = answers(&["probe"], &[list]).await;
        assert!(early[0].contains("-32600"), "the handshake itself is not optional: {}", early[0]);
    }
}

#[tokio::test]
async fn batch_is_answered_in_2025_03_26_only() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let batch = json!([note, echo(1), 7, request(2, "no/such", json!({})), echo(1)]);
    let answered = answers(&["probe"], &[initialize("2025-03-26"), batch.clone()]).await;
    let expected = concat!(
        r#"[{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"text\":\"é\"}"}],"isError":false}},"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"a message is a JSON object"}},"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found"}},"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"a request with this id is in flight"}}]"#,
    );
    assert_eq!(answered[1], expected);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let refused = answers(&["probe"], &[initialize(revision), batch.clone()]).await;
        let expected = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not supported"}}"#;
        assert_eq!(refused[1..], [expected], "{revision}");
    }
    for (batch, answer) in [
        (json!([note, note]), None),
        (json!([]), Some("a batch has at least one message")),
        (Value::from(vec![note; 101]), Some("a batch has at most 100 messages")),
        (json!([initialize("2025-03-26")]), Some("the session is initialized already")),
    ] {
        let answered = answers(&["probe"], &[initialize("2025-03-26"), batch]).await;
        assert_eq!(answered.get(1).is_some(), answer.is_some());
        assert!(answer.is_none_or(|answer| answered[1].contains(answer)), "{answered:?}");
    }
}

/// Opens a session over HTTP; the request for it has the version header that its revision wants.
async fn session(server: &Server, revision: &str) -> impl Fn(&Value) -> Request {
    let opened = server.send(&Request::post(&initialize(revision))).await;
    assert_eq!(opened.json()["result"]["protocolVersion"], revision);
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let header = revision.to_owned();
    move |message| Request::post(message).with("MCP-Session-Id", &id).with("MCP-Protocol-Version", &header)
}

#[tokio::test]
async fn version_header_is_asked_for_from_2025_06_18_on() {
    let server = Server::start(HttpLimits::default()).await;
    for revision in REVISIONS {
        let request = session(&server, revision).await;
        let call = request(&echo(1));
        let answer = |response: &Response| response.json()["result"]["content"].to_string();
        let with_header = server.send(&call).await;
        assert_eq!(with_header.status, 200, "{}", with_header.body);
        let text = r#"[{"text":"{\"text\":\"é\"}","type":"text"}]"#;
        assert_eq!(answer(&with_header), if revision < "2025-06-18" { text } else { "[]" });
        let without = server.send(&call.clone().without("MCP-Protocol-Version")).await;
        assert_eq!(without.status, if revision < "2025-06-18" { 200 } else { 400 }, "{revision}");
        let other = if revision == "2025-06-18" { "2025-03-26" } else { "2025-06-18" };
        let wrong = server.send(&call.clone().with("MCP-Protocol-Version", other)).await;
        assert_eq!(wrong.status, 400, "{revision}");
        let unknown = server.send(&call.with("MCP-Protocol-Version", "2020-01-01")).await;
        assert_eq!(unknown.status, 400, "{revision}");
    }
}

#[tokio::test]
async fn batch_over_http_is_answered_in_2025_03_26_only() {
    let server = Server::start(HttpLimits::default()).await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    for revision in REVISIONS {
        let request = session(&server, revision).await;
        let batch = server.send(&request(&json!([note, echo(1), echo(2)]))).await;
        if revision == "2025-03-26" {
            assert_eq!((batch.status, batch.json().as_array().unwrap().len()), (200, 2));
            assert_eq!(batch.json()[1]["id"], 2);
            let noted = server.send(&request(&json!([note]))).await;
            assert_eq!((noted.status, noted.body.as_str()), (202, ""));
            assert_eq!(server.send(&request(&json!([]))).await.status, 400);
            let foreign = request(&json!([note])).with("Authorization", "Bearer beta");
            assert_eq!(server.send(&foreign).await.status, 400, "the session of another token is unknown");
        } else {
            assert_eq!(batch.status, 400, "{revision}");
        }
    }
}
