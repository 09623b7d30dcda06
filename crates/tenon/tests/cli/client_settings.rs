//! Settings in a client's environment while a daemon runs: honoured, or the client is rejected.

use std::process::Command;

use serde_json::json;
use tenon_testkit::Sandbox;

use crate::{connect, connect_with, running, tenon, the_daemon, transcript, wait_for_status};

fn mcp(sandbox: &Sandbox, variables: &[(&str, &str)]) -> Command {
    let mut command = sandbox.tenon();
    command.arg("mcp").envs(variables.iter().copied());
    command
}

#[test]
fn settings_about_the_session_apply_to_the_client_that_makes_them() {
    let sandbox = Sandbox::new();
    let mut plain = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let mine = [("TENON_MCP_SURFACES", "code,workspace"), ("TENON_MCP_TOOL_NAMES", "underscore")];
    let mut other = connect_with(&mut mcp(&sandbox, &mine));
    let tools = other.list_tools();
    assert!(tools.contains(&"vscode_lsp_hover".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"find".to_owned()), "{tools:?}");
    assert!(plain.list_tools().contains(&"find".to_owned()));
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
}

#[test]
fn busy_daemon_rejects_other_settings_and_an_idle_one_is_replaced() {
    let sandbox = Sandbox::new();
    let first = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let secret = "postgres://ada:hunter2@localhost/db";
    let mine = [("TENON_WORK_STORE", secret), ("TENON_WORKSPACE_ID", "mine")];
    insta::assert_snapshot!(transcript(&sandbox, &mut mcp(&sandbox, &mine)), @"
    exit: 3
    --- stderr
    root: [SANDBOX]/w
    error: the running daemon has other settings: `workspace.id` ($TENON_WORKSPACE_ID), `work.store` ($TENON_WORK_STORE)
      hint: run `tenon stop` when its other clients are done; the next client starts a daemon with these settings
      hint: or unset them here; `tenon mcp --no-daemon` serves from its own process
    ");
    let mut find = sandbox.tenon();
    find.args(["find", "x"]).env("TENON_WORKSPACE_ID", "mine");
    assert_eq!(find.output().unwrap().status.code(), Some(3));
    let mut list = sandbox.tenon();
    list.args(["servers", "list"]).env("TENON_WORKSPACE_ID", "mine");
    assert!(list.output().unwrap().status.success(), "it is about the daemon as it is");
    assert_eq!(the_daemon(&sandbox).id, daemon.id);

    drop(first);
    wait_for_status(&sandbox, "no client is connected", |status| status["clients"] == 0);
    let root = sandbox.root().to_str().unwrap().to_owned();
    let mine = [("TENON_WORKSPACE_ID", "mine"), ("TENON_EDIT_ALLOW", root.as_str())];
    let mut client = connect_with(&mut mcp(&sandbox, &mine));
    assert!(client.list_tools().contains(&"edit_file".to_owned()));
    let status = client.call_tool("workspace_status", json!({})).unwrap();
    let settings = &status.structured["config"]["settings"];
    assert!(settings.to_string().contains("\"mine\""), "{settings}");
    assert_ne!(the_daemon(&sandbox).id, daemon.id);
    // A client that makes no settings is content with those of the daemon.
    assert!(connect(&sandbox, &[]).call_tool("workspace_status", json!({})).is_ok());
}

#[test]
fn settings_that_change_no_answer_do_not_reject_a_client() {
    let sandbox = Sandbox::new();
    let _first = connect(&sandbox, &[]);
    let daemon = the_daemon(&sandbox);
    let mine = [("TENON_LOG_LEVEL", "debug"), ("TENON_DAEMON_IDLE", "1h")];
    let mut client = connect_with(&mut mcp(&sandbox, &mine));
    assert!(client.list_tools().contains(&"find".to_owned()));
    assert_eq!(the_daemon(&sandbox).id, daemon.id);
    let mut ended = mcp(&sandbox, &mine);
    insta::assert_snapshot!(transcript(&sandbox, ended.stdin(std::process::Stdio::null())), @"
    exit: 0
    --- stderr
    root: [SANDBOX]/w
    warning: the running daemon has other settings: `daemon.idle` ($TENON_DAEMON_IDLE), `log.level` ($TENON_LOG_LEVEL)
      hint: they change no answer; run `tenon restart` when its other clients are done
    ");
}

#[test]
fn invalid_variable_is_an_error_while_a_daemon_runs() {
    let sandbox = Sandbox::new();
    let _first = connect(&sandbox, &[]);
    insta::assert_snapshot!(transcript(&sandbox, &mut mcp(&sandbox, &[("TENON_MCP_CONTENT", "html")])), @"
    exit: 3
    --- stderr
    root: [SANDBOX]/w
    error: `mcp.content` must be `auto`, `structured` or `text`, not `html` (the environment variable `TENON_MCP_CONTENT`)
    ");
}

#[test]
fn edit_permission_for_a_running_daemon_is_rejected() {
    let sandbox = Sandbox::new();
    let _first = connect(&sandbox, &[]);
    let refused = tenon(&sandbox, &["serve", "--http", "--port", "0", "--allow-edit"]);
    assert_eq!(refused.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("other settings: `edit.allow` (--allow-edit)"), "{stderr}");
    assert_eq!(running(&sandbox, "daemon").len(), 1);
}
