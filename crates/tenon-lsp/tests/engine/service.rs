//! The host's client of `tenon lsp-service` against misbehaving services, which are shell scripts.

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};
use tenon_lsp::service::client::{LspServiceClient, Options};
use tenon_testkit::{PATIENCE, Sandbox};
use tokio_util::sync::CancellationToken;

/// A service that runs a shell script; `ready` in it sends the ready notification.
fn service(sandbox: &Sandbox, script: &str) -> Options {
    let body = r#"{"jsonrpc":"2.0","method":"lsp/ready","params":{}}"#;
    let ready = format!("ready() {{ printf 'Content-Length: {}\\r\\n\\r\\n%s' '{body}'; }}\n", body.len());
    let mut command = sandbox.command("sh");
    command.arg("-c").arg(ready + script);
    options(command, sandbox)
}

fn options(command: Command, sandbox: &Sandbox) -> Options {
    let workspace_root = Utf8PathBuf::from_path_buf(sandbox.root().to_owned()).unwrap();
    Options { command, workspace_root, config: Map::new() }
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

/// Every answer is empty.
async fn assert_empty(client: &LspServiceClient) {
    assert!(client.check_file(Utf8Path::new("/w/a.py"), Some(""), &never()).await.is_empty());
    assert_eq!(client.get_diagnostic_epoch().await, 0);
    assert!(client.get_all_diagnostics_after(0, Some(Duration::ZERO), &never()).await.is_empty());
    assert!(client.get_all_diagnostics().await.is_empty());
    assert!(client.status().await.is_empty());
}

/// The client is unavailable for this reason, and every answer is empty.
async fn assert_dead(client: &LspServiceClient, why: &str) {
    assert!(!client.is_alive());
    let reason = client.get_unavailable_reason().unwrap();
    assert!(reason.contains(why), "{reason}");
    assert!(client.take_navigation().is_none());
    assert_empty(client).await;
    client.shutdown().await;
}

#[tokio::test]
async fn client_that_is_off_answers_empty() {
    assert_dead(&LspServiceClient::off(), "disabled").await;
}

#[tokio::test]
async fn missing_program_is_reported() {
    let sandbox = Sandbox::new();
    let client = LspServiceClient::start(options(sandbox.command("/nowhere/tenon"), &sandbox)).await;
    assert_dead(&client, "cannot start the service: No such file").await;
}

#[tokio::test]
async fn service_that_exits_before_ready_is_reported_with_its_stderr() {
    let sandbox = Sandbox::new();
    let script = "echo 'LSP_BOOTSTRAP: config.x: unknown key' >&2; exit 1";
    let client = LspServiceClient::start(service(&sandbox, script)).await;
    assert_dead(&client, "ended before it was ready (exit code 1): LSP_BOOTSTRAP: config.x: unknown key")
        .await;
}

/// Tokio advances the paused clock when all tasks wait, so the ten seconds pass at once.
#[tokio::test(start_paused = true)]
async fn service_that_is_never_ready_is_killed() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; sleep 1000 & wait";
    let client = LspServiceClient::start(service(&sandbox, script)).await;
    assert_dead(&client, "not ready within 10 s").await;
    sandbox.assert_no_processes();
}

#[tokio::test]
async fn service_that_ignores_shutdown_is_killed_with_its_children() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; (trap '' TERM; sleep 1000) & ready; while :; do wait; done";
    let client = LspServiceClient::start(service(&sandbox, script)).await;
    assert!(client.is_alive(), "{:?}", client.get_unavailable_reason());
    assert!(!sandbox.processes().is_empty());
    tokio::time::pause();
    client.shutdown().await;
    sandbox.assert_no_processes();
    assert_dead(&client, "shut down").await;
}

#[tokio::test]
async fn service_that_answers_shutdown_may_finish() {
    let sandbox = Sandbox::new();
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
    let script = format!(
        "ready; head -c 20 >/dev/null; printf 'Content-Length: {}\\r\\n\\r\\n%s' '{answer}'; echo left > left",
        answer.len()
    );
    let client = LspServiceClient::start(service(&sandbox, &script)).await;
    client.shutdown().await;
    assert_eq!(sandbox.tree().read("left"), "left\n");
    sandbox.assert_no_processes();
}

#[tokio::test]
async fn dropped_client_leaves_no_process() {
    let sandbox = Sandbox::new();
    let script = "trap '' TERM; (trap '' TERM; sleep 1000) & ready; while :; do wait; done";
    let client = LspServiceClient::start(service(&sandbox, script)).await;
    assert!(client.is_alive());
    drop(client);
    sandbox.assert_no_processes();
}

#[tokio::test]
async fn cancelled_check_ends_at_once_and_is_cancelled_in_the_service() {
    let sandbox = Sandbox::new();
    let heard = sandbox.dir("tmp").join("heard");
    assert!(sandbox.command("mkfifo").arg(&heard).status().unwrap().success());
    let script = format!("ready; cat > '{}'; exit 0", heard.display());
    let client = LspServiceClient::start(service(&sandbox, &script)).await;
    let reading = tokio::task::spawn_blocking(move || {
        let (mut pipe, mut text) = (std::fs::File::open(heard).unwrap(), Vec::new());
        let mut piece = [0; 1024];
        while !String::from_utf8_lossy(&text).contains("$/cancelRequest") {
            let read = pipe.read(&mut piece).unwrap();
            assert!(read > 0, "the service exited before it was notified");
            text.extend_from_slice(&piece[..read]);
        }
        String::from_utf8(text).unwrap()
    });
    let cancel = never();
    let (found, ()) = tokio::join!(client.check_file(Utf8Path::new("/w/a.py"), None, &cancel), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert!(found.is_empty());
    let said = tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    let bodies: Vec<Value> = said
        .split("Content-Length: ")
        .filter_map(|frame| serde_json::from_str(frame.split_once("\r\n\r\n")?.1).ok())
        .collect();
    assert_eq!(
        bodies,
        [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "lsp/checkFile", "params": { "filePath": "/w/a.py" } }),
            json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 1 } }),
        ]
    );
    assert!(client.is_alive(), "cancelling does not end the service");
}

#[tokio::test]
async fn malformed_answers_are_empty() {
    let sandbox = Sandbox::new();
    let frames: String = [json!({ "not": "a list" }), json!("text"), json!([{ "file": 7 }]), json!(-1)]
        .iter()
        .zip(1..)
        .map(|(result, id)| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
        .map(|body| {
            format!("head -c 60 >/dev/null; printf 'Content-Length: {}\\r\\n\\r\\n%s' '{body}'; ", body.len())
        })
        .collect();
    let client = LspServiceClient::start(service(&sandbox, &format!("ready; {frames} exit 3"))).await;
    assert_empty(&client).await;
    assert_dead(&client, "the service").await;
}

#[tokio::test]
async fn service_that_dies_ends_the_pending_check() {
    let sandbox = Sandbox::new();
    let client = LspServiceClient::start(service(&sandbox, "ready; head -c 20 >/dev/null; kill -9 $$")).await;
    assert!(client.check_file(Utf8Path::new("/w/a.py"), None, &never()).await.is_empty());
    assert_dead(&client, "the service").await;
}
