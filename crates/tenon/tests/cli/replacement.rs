//! An outdated daemon is replaced as soon as no client is connected.

use std::fs;

use serde_json::json;
use tenon_testkit::{McpClient, Sandbox};

use crate::{connect, json, tenon, the_daemon, wait_for_status};

/// A client that uses another build of the program: a copy with a newer modification time.
fn connect_newer(sandbox: &Sandbox) -> McpClient {
    let newer = sandbox.folder().join("newer-tenon");
    fs::copy(env!("CARGO_BIN_EXE_tenon"), &newer).unwrap();
    McpClient::connect(sandbox.command(newer).arg("mcp"))
}

fn wait_until_idle(sandbox: &Sandbox) {
    wait_for_status(sandbox, "no client is connected", |status| status["clients"] == 0);
}

#[test]
fn newer_build_replaces_an_idle_daemon() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let old = the_daemon(&sandbox);
    wait_until_idle(&sandbox);
    let mut client = connect_newer(&sandbox);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    assert_ne!(the_daemon(&sandbox).id, old.id);
}

#[test]
fn newer_build_shares_a_daemon_in_use() {
    let sandbox = Sandbox::new();
    let mut first = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let mut second = connect_newer(&sandbox);
    assert!(second.call_tool("workspace_status", json!({})).is_ok());
    assert!(first.call_tool("workspace_status", json!({})).is_ok());
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn changed_settings_apply_once_no_client_is_connected() {
    let sandbox = Sandbox::new();
    let mut first = connect(&sandbox, &[]);
    sandbox.tree().write("tenon.toml", "[limits]\nmax_page_size = 10\n");
    let status = json(&sandbox, &["status", "--json"]);
    assert_eq!(status["outdated"], true);
    let settings = |client: &mut McpClient| {
        client.call_tool("workspace_status", json!({})).unwrap().structured["config"]["settings"].clone()
    };
    assert_eq!(settings(&mut connect(&sandbox, &[])), json!([]));
    assert_eq!(settings(&mut first), json!([]));
    drop(first);
    wait_until_idle(&sandbox);
    let explicit = settings(&mut connect(&sandbox, &[]));
    assert_eq!(explicit[0]["key"], "limits.max_page_size");
    assert_eq!(json(&sandbox, &["status", "--json"])["outdated"], false);
}

#[test]
fn invalid_changed_settings_are_reported_to_the_next_client() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    sandbox.tree().write("tenon.toml", "[limit]\n");
    wait_until_idle(&sandbox);
    let rejected = tenon(&sandbox, &["mcp"]);
    assert_eq!(rejected.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&rejected.stderr).contains("unknown key `limit`"));
    sandbox.tree().write("tenon.toml", "");
    drop(connect(&sandbox, &[]));
}
