//! `tenon serve`: the foreground daemon, and HTTP served by it or by a running daemon.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::json;
use tenon_testkit::http::{Request, send};
use tenon_testkit::{McpClient, Revision, Sandbox};

use crate::{connect, json, running, tenon, the_daemon, wait_for_status};

struct ServeProcess {
    process: Child,
    address: SocketAddr,
}

fn serve(sandbox: &Sandbox) -> ServeProcess {
    let mut command = sandbox.tenon();
    command.args(["serve", "--http"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap();
    ServeProcess { process, address }
}

impl ServeProcess {
    fn client(&self, sandbox: &Sandbox) -> McpClient {
        let token = json(sandbox, &["token", "show", "--json"]);
        let mut client = McpClient::over_http(
            self.address,
            "/mcp",
            Some(token["token"].as_str().unwrap()),
            Revision::Sessions,
        );
        client.initialize();
        client
    }

    /// The HTTP status of `initialize` with this token.
    fn status(&self, token: &str) -> u16 {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        } });
        send(self.address, &Request::mcp("/mcp", Some(token), body.to_string())).unwrap().status
    }

    fn interrupt(mut self, sandbox: &Sandbox) {
        let id = self.process.id().to_string();
        assert!(sandbox.command("kill").args(["-INT", &id]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn foreground_daemon_serves_http_and_bridges() {
    let sandbox = Sandbox::new();
    let served = serve(&sandbox);
    assert!(served.client(&sandbox).call_tool("workspace_status", json!({})).is_ok());
    assert!(connect(&sandbox, &[]).call_tool("workspace_status", json!({})).is_ok());
    assert!(running(&sandbox, "daemon").is_empty(), "the bridge started a second daemon");
    let status = json(&sandbox, &["status", "--json"]);
    assert_eq!(status["http"], format!("http://{}", served.address));
    assert_eq!(tenon(&sandbox, &["serve"]).status.code(), Some(5), "a second foreground daemon started");
    served.interrupt(&sandbox);
    sandbox.assert_no_processes();
}

#[test]
fn running_daemon_serves_http_until_the_serve_command_ends() {
    let sandbox = Sandbox::new();
    let mut bridge = connect(&sandbox, &[]);
    let served = serve(&sandbox);
    the_daemon(&sandbox);
    assert!(served.client(&sandbox).call_tool("workspace_status", json!({})).is_ok());
    served.interrupt(&sandbox);
    wait_for_status(&sandbox, "HTTP has ended", |status| status["http"].is_null());
    assert!(bridge.call_tool("workspace_status", json!({})).is_ok());
}

#[test]
fn token_changes_apply_while_serving() {
    let sandbox = Sandbox::new();
    let served = serve(&sandbox);
    let old = json(&sandbox, &["token", "show", "--json"]);
    let secret = |token: &serde_json::Value| token["token"].as_str().unwrap().to_owned();
    assert_eq!(served.status(&secret(&old)), 200);
    let new = json(&sandbox, &["token", "rotate", "--json"]);
    assert_eq!((served.status(&secret(&old)), served.status(&secret(&new))), (200, 200));

    assert!(tenon(&sandbox, &["token", "revoke", old["id"].as_str().unwrap()]).status.success());
    assert_eq!((served.status(&secret(&old)), served.status(&secret(&new))), (401, 200));
    served.interrupt(&sandbox);
}

#[test]
fn port_in_use_is_an_error() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let rejected = tenon(&sandbox, &["serve", "--http", "--port", &port]);
    assert_eq!(rejected.status.code(), Some(5));
    let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(stderr.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{stderr}");
    sandbox.assert_no_processes();
}
