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

/// One process per SDK, all at once.
#[test]
fn last_sdk_of_each_older_revision_negotiates_it_and_calls_find() {
    let sandbox = Sandbox::with_example("polyglot");
    let server = HttpServer::start(&sandbox);
    let mut running = Vec::new();
    for (revision, typescript) in [
        ("2024-11-05", "mcp-2024-11-05"),
        ("2025-03-26", "mcp-2025-03-26"),
        ("2025-06-18", "mcp-2025-06-18"),
        ("2025-11-25", "@modelcontextprotocol/sdk"),
    ] {
        let mut python = sandbox.command(program::python());
        python.env("PYTHONPATH", program::python_sdk(revision));
        python.arg("-B").arg(clients().join("py/revision.py")).arg(revision);
        let mut node = sandbox.command(program::tool("node"));
        node.arg(clients().join("ts/revision.ts")).args([typescript, revision]);
        for (language, mut client) in [("Python", python), ("TypeScript", node)] {
            server.describe(&sandbox, &mut client);
            client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            running.push((format!("{language} {revision}"), revision, client.spawn().unwrap()));
        }
    }
    for (name, revision, client) in running {
        let output = client.wait_with_output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {stdout}\n{stderr}");
        assert_eq!(stdout, format!("stdio: {revision}\nhttp: {revision}\n"), "{name}");
    }
    assert!(sandbox.tenon().arg("stop").status().unwrap().success());
    drop(server);
    sandbox.assert_no_processes();
}

fn clients() -> PathBuf {
    repository_root().join("tests/clients")
}

/// Runs a test runner against one daemon that serves bridges and HTTP.
fn run(runner: Command) {
    let sandbox = Sandbox::with_example("polyglot");
    let server = HttpServer::start(&sandbox);
    let mut client = sandbox.command(runner.get_program());
    client.args(runner.get_args());
    server.describe(&sandbox, &mut client);
    let output = client.output().unwrap();
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

    /// Sets the variables that `tests/clients/README.md` lists.
    fn describe(&self, sandbox: &Sandbox, client: &mut Command) {
        client
            .env("TENON", program::tenon())
            .env("TENON_WORKSPACE", sandbox.root())
            .env("TENON_URL", format!("{}/workspace", self.url))
            .env("TENON_TOKEN", &self.token);
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
