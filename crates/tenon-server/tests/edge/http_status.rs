//! The status matrix: the response to each invalid request, and the order of the checks.

use serde_json::{Value, json};
use tenon_server::http::{self, BindError, HttpLimits};

use crate::http_client::{Request, Server, bearer};

fn ping() -> Request {
    Request::rpc("ping", json!({}))
}

#[tokio::test]
async fn every_invalid_request_gets_its_status() {
    let server = Server::start(HttpLimits::default()).await;
    let session = server.session("alpha").await;
    let good = ping().in_session(&session);
    let raw = |body: &str| Request::raw(body.as_bytes().to_vec()).in_session(&session);
    let large =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "y".repeat(1 << 20) } });
    let rows: Vec<(&str, Request, u16)> = vec![
        ("a good request", good.clone(), 200),
        ("another path", good.clone().path("/"), 404),
        ("a path below", good.clone().path("/mcp/probe/more"), 404),
        ("a trailing slash", good.clone().path("/mcp/"), 404),
        ("an unknown surface", good.clone().path("/mcp/absent"), 404),
        ("an encoded surface", good.clone().path("/mcp/%70robe"), 200),
        ("GET", good.clone().method("GET"), 405),
        ("PUT", good.clone().method("PUT"), 405),
        ("OPTIONS", good.clone().method("OPTIONS"), 405),
        ("PATCH", good.clone().method("PATCH"), 405),
        ("a foreign Host", good.clone().with("Host", "example.com"), 403),
        ("a Host that only looks local", good.clone().with("Host", "localhost.example.com"), 403),
        ("a Host with user info", good.clone().with("Host", "a@localhost"), 403),
        ("a Host of another machine", good.clone().with("Host", "10.0.0.1"), 403),
        ("no Host", good.clone().without("Host"), 403),
        ("a loopback Host with a port", good.clone().with("Host", "127.0.0.1:80"), 200),
        ("an IPv6 loopback Host", good.clone().with("Host", "[::1]:80"), 200),
        ("a foreign Origin", good.clone().with("Origin", "http://example.com"), 403),
        ("an opaque Origin", good.clone().with("Origin", "null"), 403),
        ("an Origin of another scheme", good.clone().with("Origin", "file://localhost"), 403),
        ("an Origin that only looks local", good.clone().with("Origin", "http://localhost.evil"), 403),
        ("a local Origin", good.clone().with("Origin", "http://localhost:3000"), 200),
        ("no token", good.clone().without("Authorization"), 401),
        ("an empty token", good.clone().with("Authorization", "Bearer "), 401),
        ("a wrong token", good.clone().with("Authorization", "Bearer gamma"), 401),
        ("another scheme", good.clone().with("Authorization", "Basic alpha"), 401),
        ("a token in lower-case scheme", good.clone().with("Authorization", "bearer alpha"), 200),
        ("a token for another surface", good.clone().with("Authorization", &bearer("narrow")), 403),
        ("no content type", good.clone().without("Content-Type"), 415),
        ("text", good.clone().with("Content-Type", "text/plain"), 415),
        ("a type that only starts right", good.clone().with("Content-Type", "application/jsonp"), 415),
        ("another charset", good.clone().with("Content-Type", "application/json; charset=latin1"), 415),
        ("a charset", good.clone().with("Content-Type", "application/json; charset=UTF-8"), 200),
        ("no Accept", good.clone().without("Accept"), 406),
        ("Accept anything", good.clone().with("Accept", "*/*"), 406),
        ("Accept JSON alone", good.clone().with("Accept", "application/json"), 406),
        ("Accept events alone", good.clone().with("Accept", "text/event-stream"), 406),
        (
            "Accept with zero weight",
            good.clone().with("Accept", "application/json, text/event-stream;q=0"),
            406,
        ),
        ("1 MiB and more", Request::post(&large).in_session(&session), 413),
        ("1 MiB and more in chunks", Request::post(&large).in_session(&session).chunked(), 413),
        ("no JSON", raw("{"), 400),
        ("an empty body", raw(""), 400),
        ("not UTF-8", Request::raw(b"{\"jsonrpc\":\"\xff\"}".to_vec()).in_session(&session), 400),
        ("a batch", raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), 400),
        ("an empty batch", raw("[]"), 400),
        ("not an object", raw("7"), 400),
        ("no JSON-RPC version", raw(r#"{"id":1,"method":"ping"}"#), 400),
        ("a null id", raw(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), 400),
        ("no session", ping().with("MCP-Protocol-Version", "2025-11-25"), 400),
        ("an unknown session", ping().in_session("unknown"), 404),
        ("another token's session", good.clone().with("Authorization", &bearer("beta")), 404),
        ("a session of another path", good.clone().path("/mcp"), 404),
        ("no version header", good.clone().without("MCP-Protocol-Version"), 400),
        ("an unknown version header", good.clone().with("MCP-Protocol-Version", "2020-01-01"), 400),
        ("a malformed version header", good.clone().with("MCP-Protocol-Version", "\u{e9}"), 400),
        (
            "a notification",
            Request::post(&json!({ "jsonrpc": "2.0", "method": "notifications/x" })).in_session(&session),
            202,
        ),
        (
            "a response",
            Request::post(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).in_session(&session),
            202,
        ),
        ("an unknown method", Request::rpc("no/such", json!({})).in_session(&session), 200),
        ("DELETE without a session", ping().method("DELETE"), 400),
        ("DELETE of an unknown session", ping().method("DELETE").in_session("unknown"), 404),
        (
            "DELETE by another token",
            good.clone().method("DELETE").with("Authorization", &bearer("beta")),
            404,
        ),
        ("DELETE without a token", good.clone().method("DELETE").without("Authorization"), 401),
    ];
    for (name, request, status) in rows {
        let response = server.send(&request).await;
        assert_eq!(response.status, status, "{name}: {}", response.body);
        match status {
            202 => assert_eq!(response.body, "", "{name}"),
            404 if !request.path.starts_with("/mcp/probe") || request.path.ends_with("more") => {}
            400.. => assert!(response.json()["error"]["message"].is_string(), "{name}"),
            _ => {}
        }
    }
    let refused = server.send(&good.clone().method("GET")).await;
    assert_eq!(refused.header("allow"), Some("POST, DELETE"));
    let refused = server.send(&good.clone().without("Authorization")).await;
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
}

#[tokio::test]
async fn checks_run_in_order() {
    let server = Server::start(HttpLimits::default()).await;
    // Every check fails; each fix reveals the next one.
    let mut request = Request::raw(b"[".to_vec())
        .path("/mcp/absent")
        .method("GET")
        .with("Host", "example.com")
        .with("Origin", "http://example.com")
        .without("Authorization")
        .with("Content-Type", "text/plain")
        .without("Accept");
    type Fix = fn(Request) -> Request;
    let fixes: [(u16, Fix); 9] = [
        (404, |r| r.path("/mcp/probe")),
        (405, |r| r.method("POST")),
        (403, |r| r.with("Host", "localhost")),
        (403, |r| r.without("Origin")),
        (401, |r| r.with("Authorization", "Bearer alpha")),
        (415, |r| r.with("Content-Type", "application/json")),
        (406, |r| r.with("Accept", "application/json, text/event-stream")),
        (400, |_| ping()),
        (400, |r| r.in_session("unknown")),
    ];
    for (status, fix) in fixes {
        assert_eq!(server.send(&request).await.status, status);
        request = fix(request);
    }
    assert_eq!(server.send(&request).await.status, 404);
}

#[tokio::test]
async fn session_lives_from_initialize_to_delete() {
    let server = Server::start(HttpLimits::default()).await;
    let id = server.session("beta").await;
    assert!(id.len() >= 32, "at least 128 random bits");
    let ours = |request: Request| request.with("Authorization", "Bearer beta").in_session(&id);
    let listed = server.send(&ours(Request::rpc("tools/list", json!({})))).await.json();
    assert_eq!(listed["result"]["tools"][0]["name"], "probe.echo");
    let call = json!({ "name": "probe.echo", "arguments": { "text": "hi" } });
    let answer = server.send(&ours(Request::rpc("tools/call", call))).await.json();
    assert_eq!(answer["result"]["structuredContent"], json!({ "text": "hi" }));
    let again = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" } });
    let reopened = server.send(&ours(Request::rpc("initialize", again))).await;
    assert_ne!(reopened.header("mcp-session-id"), Some(id.as_str()), "initialize opens another session");
    assert_eq!(server.send(&ours(ping()).method("DELETE")).await.status, 204);
    assert_eq!(server.send(&ours(ping())).await.status, 404);
    assert_eq!(server.send(&ours(ping()).method("DELETE")).await.status, 404);
}

#[tokio::test]
async fn before_initialized_the_contract_answers_only_ping() {
    let server = Server::start(HttpLimits::default()).await;
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" } });
    let code = |request: Request| request.path("/mcp/code");
    let opened = server.send(&code(Request::rpc("initialize", params))).await;
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
    let id = opened.header("mcp-session-id").unwrap();
    assert_eq!(server.send(&code(ping()).in_session(id)).await.json()["result"], json!({}));
    let early = server.send(&code(Request::rpc("tools/list", json!({}))).in_session(id)).await;
    assert_eq!((early.status, &early.json()["error"]["code"]), (200, &json!(-32600)));
    let older = server.send(&code(ping()).in_session(id).with("MCP-Protocol-Version", "2025-06-18")).await;
    assert_eq!(older.status, 400);
    let malformed = server.send(&Request::rpc("initialize", json!({ "protocolVersion": 7 }))).await;
    assert_eq!(malformed.header("mcp-session-id"), None);
}

#[tokio::test]
async fn bare_path_serves_the_configured_set() {
    let server = Server::start(HttpLimits::default()).await;
    let list = |token: &'static str| {
        let server = &server;
        async move {
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" } });
            let ask = |request: Request| request.path("/mcp").with("Authorization", &bearer(token));
            let opened = server.send(&ask(Request::rpc("initialize", params))).await;
            let id = opened.header("mcp-session-id").unwrap().to_owned();
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            server.send(&ask(Request::post(&ready)).in_session(&id)).await;
            let listed = server.send(&ask(Request::rpc("tools/list", json!({}))).in_session(&id)).await;
            listed.json()["result"]["tools"].as_array().map_or(0, Vec::len)
        }
    };
    assert_eq!(list("alpha").await, 7, "the surfaces open to every token");
    assert_eq!(list("narrow").await, 7, "the surfaces of this token");
}

#[tokio::test]
async fn the_oldest_of_65_sessions_leaves() {
    let server = Server::start(HttpLimits::default()).await;
    let oldest = server.session("alpha").await;
    let second = server.session("alpha").await;
    for _ in 0..63 {
        server.session("alpha").await;
    }
    assert_eq!(server.send(&ping().in_session(&oldest)).await.status, 404);
    assert_eq!(server.send(&ping().in_session(&second)).await.status, 200);
}

#[tokio::test]
async fn sessions_of_one_token_do_not_end_those_of_another() {
    let server = Server::start(HttpLimits::default()).await;
    let own = server.session("beta").await;
    let others = server.session("alpha").await;
    for _ in 0..64 {
        server.session("alpha").await;
    }
    let beta = Request::rpc("ping", json!({})).with("Authorization", &bearer("beta"));
    assert_eq!(server.send(&beta.in_session(&own)).await.status, 200);
    assert_eq!(server.send(&ping().in_session(&others)).await.status, 404);
}

#[tokio::test]
async fn progress_makes_the_response_an_event_stream() {
    let server = Server::start(HttpLimits::default()).await;
    let id = server.session("alpha").await;
    let call =
        json!({ "name": "probe.report", "arguments": { "steps": 3 }, "_meta": { "progressToken": 5 } });
    let events = server.send(&Request::rpc("tools/call", call).in_session(&id)).await.events();
    let steps: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(steps, [&json!(1.0), &json!(2.0), &json!(3.0), &Value::Null]);
    assert_eq!(events[3]["result"]["structuredContent"], json!({ "steps": 3 }));
}

#[tokio::test]
async fn only_loopback_addresses_are_bound() {
    for addr in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = http::bind(addr.parse().unwrap()).await;
        assert!(matches!(refused, Err(BindError::NotLoopback(_))), "{addr}");
    }
}
