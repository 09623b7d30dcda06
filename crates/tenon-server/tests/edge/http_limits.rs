//! Load and slowness: exact request caps, slow bodies, many clients, cancellation.

use std::time::Duration;

use serde_json::json;
use tenon_server::http::HttpLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http_client::{Request, Response, Server};

#[tokio::test]
async fn request_cap_is_exact() {
    let server = Server::start(HttpLimits { request_bytes: 1000, ..HttpLimits::default() }).await;
    let id = server.session("alpha").await;
    let sized = |bytes: usize| {
        let empty = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "" } }).to_string();
        let params = json!({ "x": "y".repeat(bytes - empty.len()) });
        Request::rpc("ping", params).in_session(&id)
    };
    assert_eq!(server.send(&sized(1000)).await.status, 200);
    assert_eq!(server.send(&sized(1001)).await.status, 413);
    assert_eq!(server.send(&sized(1000).chunked()).await.status, 200);
    assert_eq!(server.send(&sized(1001).chunked()).await.status, 413);
    assert_eq!(
        server.send(&sized(1_500_000).chunked()).await.status,
        413,
        "the rest is read, so that the client sees the response"
    );
}

#[tokio::test]
async fn endless_body_is_cut_off() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(&Request::raw(Vec::new()).chunked().head()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    let mut sent = 0_usize;
    while stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
        assert!(sent < 64 << 20, "the server reads a body without end");
    }
}

#[tokio::test]
async fn slow_client_is_disconnected_and_others_are_not() {
    let server =
        Server::start(HttpLimits { read_timeout: Duration::from_millis(200), ..HttpLimits::default() }).await;
    let mut slow_head = server.connect().await;
    slow_head.write_all(b"POST /mcp/probe HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut slow_body = server.connect().await;
    let request = Request::rpc("ping", json!({}));
    slow_body.write_all(&request.head()).await.unwrap();
    slow_body.write_all(b"{\"json").await.unwrap();
    server.session("alpha").await;
    assert_eq!(Response::read(&mut slow_body).await.status, 408);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(10), slow_head.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection is closed");
}

#[tokio::test]
async fn past_the_in_flight_limit_requests_get_429() {
    let server = Server::start(HttpLimits { in_flight: 1, ..HttpLimits::default() }).await;
    let id = server.session("alpha").await;
    let hang = json!({ "name": "probe.hang", "arguments": {}, "_meta": { "progressToken": 1 } });
    let mut busy = server.connect().await;
    busy.write_all(&Request::rpc("tools/call", hang).in_session(&id).bytes()).await.unwrap();
    // The head of the event stream shows that the call is running.
    let mut head = [0; 12];
    busy.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let refused = server.send(&Request::rpc("ping", json!({})).in_session(&id)).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    // A client that disconnects frees its slot.
    drop(busy);
    let freed = async {
        while server.send(&Request::rpc("ping", json!({})).in_session(&id)).await.status == 429 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), freed).await.expect("the slot is free again");
}

#[tokio::test]
async fn cancelled_call_is_answered_immediately() {
    let server = Server::start(HttpLimits::default()).await;
    let id = server.session("alpha").await;
    let hang = Request::rpc("tools/call", json!({ "name": "probe.hang", "arguments": {} })).in_session(&id);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let cancel = Request::post(&cancel).in_session(&id);
    let hanging = server.send(&hang);
    let cancelling = async {
        // The call may not have arrived yet, so cancel until it is answered.
        loop {
            assert_eq!(server.send(&cancel).await.status, 202);
        }
    };
    let answer = tokio::select! {
        answer = hanging => answer,
        () = cancelling => unreachable!("it never ends"),
    };
    assert_eq!(answer.json()["error"]["code"], -32800);
}

#[tokio::test]
async fn ending_a_session_cancels_its_calls() {
    let server = Server::start(HttpLimits::default()).await;
    let id = server.session("alpha").await;
    let hang = json!({ "name": "probe.hang", "arguments": {}, "_meta": { "progressToken": 1 } });
    let mut busy = server.connect().await;
    busy.write_all(&Request::rpc("tools/call", hang).in_session(&id).bytes()).await.unwrap();
    let mut head = [0; 12];
    busy.read_exact(&mut head).await.unwrap();
    let ended = server.send(&Request::rpc("ping", json!({})).method("DELETE").in_session(&id)).await;
    assert_eq!(ended.status, 204);
    let mut rest = String::new();
    busy.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("-32800"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_concurrent_clients_are_answered() {
    let server = std::sync::Arc::new(Server::start(HttpLimits::default()).await);
    let sessions: Vec<String> = {
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(server.session("alpha").await);
        }
        sessions
    };
    let clients: Vec<_> = (0..200)
        .map(|n: usize| {
            let (server, id) = (std::sync::Arc::clone(&server), sessions[n % sessions.len()].clone());
            tokio::spawn(async move {
                for round in 0..5 {
                    let text = format!("{n}/{round}");
                    let params = json!({ "name": "probe.echo", "arguments": { "text": text } });
                    let message =
                        json!({ "jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params });
                    let answer = server.send(&Request::post(&message).in_session(&id)).await;
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let answer = answer.json();
                    assert_eq!(
                        (&answer["id"], &answer["result"]["structuredContent"]["text"]),
                        (&json!(text), &json!(text))
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("every client is answered");
    }
}
