//! Byte streams: one client on a pair of pipes, as on stdio and the unix socket.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_server::mcp::Handler;
use tenon_server::mcp::stream::{StreamLimits, serve};
use tenon_server::surface::SurfaceSet;
use tenon_server::surfaces::Surfaces;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::probe::{Probe, handler, handler_of};

/// A client of one stream. Dropping it checks that every message was read.
struct Client {
    write: WriteHalf<DuplexStream>,
    read: BufReader<ReadHalf<DuplexStream>>,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn new(handler: Handler, limits: StreamLimits) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(serve(read, write, handler, limits, stop.clone()));
        let (read, write) = tokio::io::split(ours);
        Self { write, read: BufReader::new(read), stop, served }
    }

    async fn ready() -> Self {
        let mut client = Self::new(handler(), StreamLimits::default());
        client.initialize().await;
        client
    }

    async fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" } });
        let answer = self.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    async fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes()).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        let reading = self.read.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(10), reading).await.expect("an answer").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params })).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], method);
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Closes the client side, checks that all messages were read and that the server ended without an error.
    async fn finish(mut self) {
        self.write.shutdown().await.unwrap();
        let mut rest = String::new();
        while self.read.read_line(&mut rest).await.unwrap() > 0 {}
        assert_eq!(rest, "", "unread messages");
        self.served.await.unwrap().unwrap();
    }
}

fn set(probe: Probe) -> SurfaceSet {
    Surfaces::default().with(probe).select(&["probe"]).unwrap()
}

#[tokio::test]
async fn session_from_initialize_to_end_of_input() {
    let mut client = Client::ready().await;
    let tools = client.ask("tools/list", json!({})).await;
    let names: Vec<_> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names[0], "probe.echo");
    let answer = client.call("probe.echo", json!({ "text": "é" })).await;
    assert_eq!(
        answer["result"],
        json!({ "content": [], "structuredContent": { "text": "é" }, "isError": false })
    );
    assert_eq!(client.call("probe_echo", json!({ "text": "" })).await["result"]["isError"], false);
    assert_eq!(client.call("probe.fail", json!({})).await["result"]["isError"], true);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.finish().await;
}

#[tokio::test]
async fn before_initialized_the_contract_answers_only_ping() {
    let mut client = Client::new(handler_of(&["code"]), StreamLimits::default());
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(client.ask("tools/list", json!({})).await["error"]["code"], -32600);
    let params = json!({ "protocolVersion": "1999-01-01", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" } });
    let answer = client.ask("initialize", params.clone()).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "anything else negotiates down");
    assert_eq!(client.ask("tools/list", json!({})).await["error"]["code"], -32600);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    assert!(client.ask("tools/list", json!({})).await["result"]["tools"].is_array());
    assert_eq!(client.ask("initialize", params).await["error"]["code"], -32600, "only once");
    client.finish().await;
}

#[tokio::test]
async fn invalid_calls_get_an_error_and_the_stream_continues() {
    let mut client = Client::ready().await;
    for (method, params, code) in [
        ("tools/call", json!({ "name": "absent", "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "probe.echo", "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "probe.echo", "arguments": { "text": 7 } }), -32602),
        ("tools/call", json!({ "name": "probe.echo", "arguments": { "text": "a", "more": 1 } }), -32602),
        ("tools/call", json!({ "name": "probe.echo", "arguments": [] }), -32602),
        ("tools/call", json!({ "name": 7 }), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/list", json!({ "cursor": "x" }), -32602),
        ("tools/list", json!({ "cursor": 7 }), -32602),
        ("tools/call", json!({ "name": "probe.overflow" }), -32603),
        ("tools/call", json!({ "name": "probe.panic" }), -32603),
        ("prompts/list", json!({}), -32601),
        ("prompts/get", json!({ "name": "x" }), -32601),
        ("resources/list", json!({}), -32601),
        ("resources/templates/list", json!({}), -32601),
        ("resources/read", json!({ "uri": "file:///x" }), -32601),
        ("completion/complete", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("no/such", json!({}), -32601),
    ] {
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        if code == -32601 {
            assert_eq!(answer["error"]["message"], "method not found", "{method}");
        }
    }
    client.finish().await;
}

#[tokio::test]
async fn unknown_field_is_rejected_with_its_path_and_without_its_value() {
    let mut client = Client::ready().await;
    let answer = client.call("probe.echo", json!({ "text": "a", "sekret": "hunter2" })).await;
    let message = answer["error"]["data"]["message"].as_str().unwrap();
    assert!(message.contains("sekret"), "{message}");
    let answer = client.call("probe.echo", json!({ "text": { "hunter2": 1 } })).await;
    assert_eq!(answer["error"]["data"]["path"], "/text");
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
    client.finish().await;
}

#[tokio::test]
async fn garbage_gets_an_error_and_the_stream_continues() {
    let mut client = Client::new(handler(), StreamLimits { request_bytes: 500, ..StreamLimits::default() });
    for (bytes, code) in [
        (b"{".to_vec(), -32700),
        (b"\xff\xfe".to_vec(), -32700),
        (b"[]".to_vec(), -32600),
        (vec![b'x'; 501], -32600),
        (vec![b'x'; 200_000], -32600),
    ] {
        client.send_bytes(&bytes).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["code"], code);
        assert_eq!(answer.get("id"), None);
    }
    client.send_bytes(b"").await;
    client.send_bytes(b"  \r").await;
    client.initialize().await;
    let just_fits = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "" } }).to_string();
    let fill = "y".repeat(500 - just_fits.len());
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": fill } })).await;
    assert_eq!(client.receive().await["result"], json!({}));
    client.finish().await;
}

#[tokio::test]
async fn call_above_the_size_limit_is_rejected_with_its_id() {
    let mut client = Client::ready().await;
    let call = json!({ "name": "probe.echo", "arguments": { "text": "y".repeat(10 << 20) } });
    client.send(&json!({ "jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": call })).await;
    let answer = client.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("long"), &json!(-32600)));
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.finish().await;
}

#[tokio::test]
async fn unparsable_call_is_rejected_with_its_id() {
    let mut client = Client::ready().await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    // A client that truncates text at any byte sends half an emoji.
    for value in [r#""a\ud800b""#, "1e999", &deep] {
        let line =
            format!(r#"{{"method":"tools/call","params":{{"text":{value}}},"jsonrpc":"2.0","id":"odd"}}"#);
        client.send_bytes(line.as_bytes()).await;
        let answer = client.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("odd"), &json!(-32700)), "{value}");
    }
    client.finish().await;
}

#[tokio::test]
async fn end_of_input_ends_waits_for_news() {
    let mut client = Client::ready().await;
    let call = json!({ "name": "probe.news", "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })).await;
    client.write.shutdown().await.unwrap();
    assert_eq!(client.receive().await["result"]["isError"], false);
    client.finish().await;
}

#[tokio::test]
async fn cancelled_call_ends_immediately() {
    let mut client = Client::ready().await;
    let call = json!({ "name": "probe.hang", "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call })).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })).await;
    assert_eq!(client.receive().await["error"]["code"], -32600, "the id is in flight");
    let params = json!({ "requestId": 7, "reason": "changed my mind" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    assert_eq!(client.receive().await["error"]["code"], -32800);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.finish().await;
}

#[tokio::test(start_paused = true)]
async fn call_ends_at_its_deadline() {
    let handler = Handler::new(set(Probe::ending_after(Duration::from_secs(2))));
    let mut client = Client::new(handler, StreamLimits::default());
    client.initialize().await;
    let answer = client.call("probe.hang", json!({})).await;
    assert_eq!(answer["error"]["message"], "timeout");
    client.finish().await;
}

#[tokio::test]
async fn calls_above_the_in_flight_limit_are_rejected_and_cancellation_works() {
    let mut client = Client::new(handler(), StreamLimits { in_flight: 2, ..StreamLimits::default() });
    client.initialize().await;
    let call = json!({ "name": "probe.hang", "arguments": {} });
    for id in 1..=3 {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call })).await;
    }
    let refused = client.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32000)));
    for id in 1..=2 {
        let params = json!({ "requestId": id });
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
            .await;
        assert_eq!(client.receive().await["id"], id);
    }
    client.finish().await;
}

#[tokio::test]
async fn progress_precedes_the_answer_and_is_opt_in() {
    let mut client = Client::ready().await;
    let call = json!({ "name": "probe.report", "arguments": { "steps": 3 } });
    let mut asking = call.clone();
    asking["_meta"] = json!({ "progressToken": "t" });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asking })).await;
    for step in 1..=3 {
        let note = client.receive().await;
        assert_eq!(note["method"], "notifications/progress");
        let expected =
            json!({ "progressToken": "t", "progress": f64::from(step), "total": 3.0, "message": "working" });
        assert_eq!(note["params"], expected);
    }
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.ask("tools/call", call).await["result"]["structuredContent"]["steps"], 3);
    client.finish().await;
}

#[tokio::test]
async fn messages_sent_at_once_are_handled_in_order() {
    let mut client = Client::new(handler_of(&["code"]), StreamLimits::default());
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }),
    ];
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    client.send_bytes(lines.join("\n").as_bytes()).await;
    assert_eq!(client.receive().await["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(client.receive().await["error"]["code"], -32600);
    assert!(client.receive().await["result"]["tools"].is_array());
    client.finish().await;
}

#[tokio::test]
async fn calls_in_flight_at_end_of_input_are_answered() {
    let mut client = Client::ready().await;
    for id in 0..50 {
        let params = json!({ "name": "probe.echo", "arguments": { "text": "x".repeat(id * 10) } });
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
    client.write.shutdown().await.unwrap();
    let mut answered: Vec<u64> = Vec::new();
    for _ in 0..50 {
        answered.push(client.receive().await["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..50).collect::<Vec<_>>());
    client.finish().await;
}

#[tokio::test]
async fn stopping_ends_the_stream_with_calls_in_flight() {
    let mut client = Client::ready().await;
    let call = json!({ "name": "probe.hang", "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })).await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.stop.cancel();
    let served = tokio::time::timeout(Duration::from_secs(10), client.served).await;
    served.expect("it ends").unwrap().unwrap();
}
