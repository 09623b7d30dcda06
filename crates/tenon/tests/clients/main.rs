//! Clients written with the official SDKs, each run by its language's test runner.
//!
//! `tests/clients/README.md` lists the variables that they get.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tenon_testkit::{Sandbox, program, repository_root};

#[test]
fn typescript_clients_pass() {
    let mut node = Command::new(program::tool("node"));
    node.args(["--test", "--test-reporter=tap"]);
    node.args(
        ["workspace.test.ts", "code.test.ts", "agents.test.ts"].map(|file| clients().join("ts").join(file)),
    );
    run(node);
}

#[test]
fn python_clients_pass() {
    let mut python = Command::new(program::python());
    python.arg("-B").arg(clients().join("py/tap.py"));
    run(python);
}

fn clients() -> PathBuf {
    repository_root().join("tests/clients")
}

/// Runs a test runner against one daemon that serves bridges and HTTP.
fn run(runner: Command) {
    let sandbox = Sandbox::with_example("polyglot");
    let server = HttpServer::start(&sandbox);
    let output = sandbox
        .command(runner.get_program())
        .args(runner.get_args())
        .env("TENON", program::tenon())
        .env("TENON_WORKSPACE", sandbox.root())
        .env("TENON_URL", format!("{}/workspace", server.url))
        .env("TENON_TOKEN", &server.token)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.lines().any(|line| line.starts_with("ok 1 - ")), "no client ran: {stdout}\n{stderr}");
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    drop(server);
    sandbox.assert_no_processes();
}

/// `tenon serve --http` on a free port, until dropped.
struct HttpServer {
    process: Child,
    url: String,
    token: String,
}

impl HttpServer {
    fn start(sandbox: &Sandbox) -> Self {
        let token = sandbox.tenon().args(["token", "show"]).output().unwrap();
        let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
        let mut command = sandbox.tenon();
        command.args(["serve", "--http", "--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned(), token }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
