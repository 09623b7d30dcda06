//! `tenon serve`: the foreground daemon, and HTTP served by it or by a running daemon.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;
use tenon_testkit::http::{Request, send};
use tenon_testkit::{McpClient, PATIENCE, Revision, Sandbox, processes};

use crate::{connect, json, running, tenon, the_daemon, wait_for_status};

struct ServeProcess {
    process: Child,
    address: SocketAddr,
}

fn serve(sandbox: &Sandbox) -> ServeProcess {
    serve_by(sandbox.tenon().args(["serve", "--http"]))
}

/// Serves with this limit of open files.
fn serve_with_descriptors(sandbox: &Sandbox, limit: usize) -> ServeProcess {
    let tenon = sandbox.tenon().get_program().to_owned();
    let script = format!("ulimit -n {limit}; exec \"$0\" serve --http");
    serve_by(sandbox.command("sh").args(["-c", &script]).arg(tenon))
}

fn serve_by(command: &mut Command) -> ServeProcess {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
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

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
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

/// The text of all log files.
fn log(sandbox: &Sandbox) -> String {
    let folder = sandbox.dir("state").join("tenon/logs");
    let files = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_log = |path: &std::path::PathBuf| path.to_string_lossy().contains(".jsonl");
    files.filter(is_log).filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

#[test]
fn idle_connections_without_a_token_keep_no_client_out_and_leave_descriptors() {
    const DESCRIPTORS: usize = 128;
    let sandbox = Sandbox::new();
    let served = serve_with_descriptors(&sandbox, DESCRIPTORS);
    let idle: Vec<TcpStream> =
        (0..2 * DESCRIPTORS).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let (answered, served_ref) = (AtomicBool::new(false), &served);
    let most = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let counts =
                std::iter::from_fn(|| (!answered.load(Ordering::Relaxed)).then(|| served_ref.descriptors()));
            counts.max().unwrap_or_default()
        });
        for _ in 0..3 {
            assert!(served.client(&sandbox).call_tool("workspace_status", json!({})).is_ok());
        }
        answered.store(true, Ordering::Relaxed);
        counting.join().unwrap()
    });
    assert!(most < DESCRIPTORS * 3 / 4, "{most} of {DESCRIPTORS} descriptors were in use");
    assert!(connect(&sandbox, &[]).call_tool("workspace_status", json!({})).is_ok());
    drop(idle);
    served.interrupt(&sandbox);
}

#[test]
fn flood_of_bad_requests_writes_a_small_log() {
    let sandbox = Sandbox::new();
    let served = serve(&sandbox);
    for number in 0..1500 {
        let token = format!("wrong-{number}");
        assert_eq!(served.status(&token), 401);
    }
    assert!(log(&sandbox).len() < 64 * 1024, "{} bytes", log(&sandbox).len());
    served.interrupt(&sandbox);
}

#[test]
fn accept_pauses_without_descriptors_and_continues_with_them() {
    let sandbox = Sandbox::new();
    let served = serve(&sandbox);
    let token = json(&sandbox, &["token", "show", "--json"]);
    // The thread that accepts connections opens descriptors when it starts.
    assert_eq!(served.status(token["token"].as_str().unwrap()), 200);
    processes::limit_open_files(served.process.id(), 3);
    let waiting = TcpStream::connect(served.address).unwrap();
    let failures = || log(&sandbox).matches("cannot accept a connection").count();
    let deadline = Instant::now() + PATIENCE;
    while failures() < 3 {
        assert!(Instant::now() < deadline, "accept has not failed: {}", log(&sandbox));
    }
    let before = failures();
    processes::limit_open_files(served.process.id(), 1024);
    assert_eq!(served.status(token["token"].as_str().unwrap()), 200);
    assert!(before < 20 && failures() < 20, "{before}, then {}", failures());
    drop(waiting);
    served.interrupt(&sandbox);
}
