//! The service's life cycle behind its client, and the navigation pipes.

use serde_json::{Value, json};
use tenon_fake_lsp::scripts::{deaf, linter};
use tenon_lsp::service::client::Navigation;
use tenon_testkit::processes;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Lsp};

async fn started() -> Agent {
    let agent =
        Agent::new("//- a.fake\ngood\n").server("deaf", deaf(linter())).start(Lsp::On(json!({}))).await;
    assert!(agent.edit("a.fake", "good", "bad").await.contains("this is bad"));
    agent
}

#[tokio::test]
async fn shutdown_ends_all_processes() {
    let agent = started().await;
    agent.client.shutdown().await;
    agent.sandbox.assert_no_processes();
    assert_eq!(agent.client.get_unavailable_reason().unwrap(), "the service was shut down");
    assert_eq!(agent.edit("a.fake", "bad", "worse").await, "Edited a.fake.");
    agent.client.shutdown().await;
}

#[tokio::test]
async fn dropped_client_ends_all_processes() {
    let mut agent = started().await;
    drop(std::mem::replace(&mut agent.client, tenon_lsp::service::client::LspServiceClient::off()));
    agent.sandbox.assert_no_processes();
}

#[tokio::test]
async fn killed_service_is_noticed_immediately() {
    let agent = started().await;
    let service =
        agent.sandbox.processes().into_iter().find(|one| one.command.contains(&"lsp-service".to_owned()));
    let service = service.unwrap();
    service.kill();
    assert!(processes::wait_for_exit(service.id, tenon_testkit::PATIENCE));
    assert_eq!(agent.edit("a.fake", "bad", "worse").await, "Edited a.fake.");
    assert!(agent.client.get_unavailable_reason().unwrap().starts_with("the service "));
    agent.sandbox.assert_no_processes();
}

#[tokio::test]
async fn cancelled_check_returns_immediately() {
    let silent = json!({ "capabilities": { "textDocumentSync": 1 } });
    let config = json!({ "firstTouchTimeout": 600_000, "diagnosticTimeout": 600_000 });
    let agent = Agent::new("//- a.fake\nx\n").server("silent", silent).start(Lsp::On(config)).await;
    let (path, cancel) = (agent.root().join("a.fake"), CancellationToken::new());
    let check = agent.client.check_file(&path, None, &cancel);
    let (found, ()) = tokio::join!(check, async {
        // The service answers the next request while the check is still in flight.
        agent.client.get_diagnostic_epoch().await;
        cancel.cancel();
    });
    assert!(found.is_empty());
    assert!(agent.client.is_alive());
}

#[tokio::test]
async fn navigation_pipes_serve_an_mcp_client() {
    let mut script = linter();
    script["capabilities"]["hoverProvider"] = json!(true);
    script["rules"].as_array_mut().unwrap().push(json!({ "on": "textDocument/hover", "do": ["reply_word"] }));
    let agent = Agent::new("//- a.fake\nword\n").server("fake", script).start(Lsp::On(json!({}))).await;
    let Navigation { read, mut write } = agent.client.take_navigation().unwrap();
    assert!(agent.client.take_navigation().is_none(), "the pipes were handed out twice");
    let mut answers = BufReader::new(read).lines();
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let place = json!({ "file": "a.fake", "line": 1, "character": 1 });
    let mut result = Value::Null;
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "lsp_hover", "arguments": place } }),
    ] {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        if message.get("id").is_some() {
            let line = answers.next_line().await.unwrap().unwrap();
            result = serde_json::from_str::<Value>(&line).unwrap()["result"].take();
        }
    }
    assert_eq!(result["structuredContent"], json!({ "content": "word" }), "{result}");
    agent.client.shutdown().await;
}

#[tokio::test]
async fn navigation_can_be_turned_off() {
    let config = Lsp::On(json!({ "navigationTools": false }));
    let agent = Agent::new("//- a.fake\ngood\n").server("fake", linter()).start(config).await;
    assert!(agent.client.is_alive());
    assert!(agent.client.take_navigation().is_none());
    assert!(agent.edit("a.fake", "good", "bad").await.contains("this is bad"));
}
