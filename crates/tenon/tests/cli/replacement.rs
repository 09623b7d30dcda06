//! A daemon that is out of date makes room for a new one as soon as nobody is connected.

use std::fs;

use serde_json::json;
use tenon_testkit::{Client, Revision, Sandbox};

use crate::{connect, json, tenon, the_daemon, wait_for_status};

/// A client through another build of the program: the same bytes in a newer file.
fn connect_newer(sandbox: &Sandbox) -> Client {
    let newer = sandbox.folder().join("newer-tenon");
    fs::copy(env!("CARGO_BIN_EXE_tenon"), &newer).unwrap();
    let mut client = Client::over_pipes(sandbox.command(newer).arg("mcp"), Revision::Sessions);
    client.initialize();
    client
}

fn wait_until_idle(sandbox: &Sandbox) {
    wait_for_status(sandbox, "nobody is connected", |status| status["clients"] == 0);
}

#[test]
fn another_build_replaces_an_idle_daemon() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    let old = the_daemon(&sandbox);
    wait_until_idle(&sandbox);
    let mut client = connect_newer(&sandbox);
    assert!(client.call_tool("workspace_status", json!({})).is_ok());
    assert_ne!(the_daemon(&sandbox).id, old.id);
}

#[test]
fn another_build_shares_a_daemon_that_is_in_use() {
    let sandbox = Sandbox::new();
    let mut first = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let mut second = connect_newer(&sandbox);
    assert!(second.call_tool("workspace_status", json!({})).is_ok());
    assert!(first.call_tool("workspace_status", json!({})).is_ok());
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn changed_settings_take_effect_when_nobody_is_connected() {
    let sandbox = Sandbox::new();
    let mut first = connect(&sandbox, &[]);
    sandbox.tree().write("tenon.toml", "[limits]\nmax_page_size = 10\n");
    let status = json(&sandbox, &["status", "--json"]);
    assert_eq!(status["outdated"], true);
    let settings = |client: &mut Client| {
        client.call_tool("workspace_status", json!({})).unwrap().structured["config"]["settings"].clone()
    };
    assert_eq!(settings(&mut connect(&sandbox, &[])), json!([]));
    assert_eq!(settings(&mut first), json!([]));
    drop(first);
    wait_until_idle(&sandbox);
    let made = settings(&mut connect(&sandbox, &[]));
    assert_eq!(made[0]["key"], "limits.max_page_size");
    assert_eq!(json(&sandbox, &["status", "--json"])["outdated"], false);
}

#[test]
fn a_mistake_in_changed_settings_is_told_to_the_next_client() {
    let sandbox = Sandbox::new();
    drop(connect(&sandbox, &[]));
    sandbox.tree().write("tenon.toml", "[limit]\n");
    wait_until_idle(&sandbox);
    let refused = tenon(&sandbox, &["mcp"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("unknown key `limit`"));
    sandbox.tree().write("tenon.toml", "");
    drop(connect(&sandbox, &[]));
}
