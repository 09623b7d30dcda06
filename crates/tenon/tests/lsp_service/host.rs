//! A host program: starts the service, exchanges framed JSON-RPC with it, and watches its processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};
use tenon_testkit::{PATIENCE, Sandbox, processes};

/// A workspace with fake servers for `.fake` files.
pub(crate) struct Workspace {
    pub(crate) sandbox: Sandbox,
    servers: serde_json::Map<String, Value>,
}

impl Workspace {
    pub(crate) fn new(tree: &str) -> Self {
        Self { sandbox: Sandbox::with_tree(tree), servers: serde_json::Map::new() }
    }

    pub(crate) fn server(mut self, id: &str, script: Value) -> Self {
        let entry = tenon_fake_lsp::entry(&self.sandbox.dir("state"), id, script);
        self.servers.insert(id.to_owned(), entry);
        self
    }

    pub(crate) fn path(&self, relative: &str) -> String {
        self.sandbox.root().canonicalize().unwrap().join(relative).to_str().unwrap().to_owned()
    }

    /// The value of `LSP_BOOTSTRAP` with these settings and the fake servers.
    pub(crate) fn bootstrap(&self, mut config: Value) -> Value {
        config["servers"] = Value::Object(self.servers.clone());
        json!({ "workspaceRoot": self.sandbox.root(), "config": config })
    }

    pub(crate) fn command(&self, bootstrap: &Value) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tenon"));
        command.arg("lsp-service").env("LSP_BOOTSTRAP", bootstrap.to_string());
        command
    }

    /// Starts the service in its own process group, as hosts do, and waits for `lsp/ready`.
    pub(crate) fn start(&self, config: Value) -> Host {
        let mut host = Host::start(&mut self.command(&self.bootstrap(config)));
        assert_eq!(host.message(), json!({ "jsonrpc": "2.0", "method": "lsp/ready", "params": {} }));
        host
    }

    /// The process ids of a fake server, in start order.
    pub(crate) fn pids(&self, server: &str) -> Vec<u32> {
        let lines = self.transcript(server);
        lines.iter().filter_map(|line| u32::try_from(line.get("started")?.as_u64()?).ok()).collect()
    }

    pub(crate) fn transcript(&self, server: &str) -> Vec<Value> {
        tenon_fake_lsp::transcript(&self.sandbox.dir("state"), server)
    }
}

/// A host with a running service.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: i64,
}

impl Host {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (sender, messages) = sync_channel(10_000);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            while let Some(message) = read_frame(&mut reader) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, messages, last_id: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub(crate) fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message.
    pub(crate) fn message(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("the service sends a message")
    }

    /// Sends a request and returns its response, which must be the next message.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.message();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request that must succeed, and returns its result.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    pub(crate) fn check(&mut self, path: &str) -> Value {
        self.result("lsp/checkFile", json!({ "filePath": path }))
    }

    pub(crate) fn check_text(&mut self, path: &str, text: &str) -> Value {
        self.result("lsp/checkFile", json!({ "filePath": path, "text": text }))
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until the service exits, and asserts that no message is left.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        assert!(processes::wait_for_exit(self.child.id(), PATIENCE), "the service does not exit");
        assert!(self.messages.recv_timeout(PATIENCE).is_err(), "the service sent an unexpected message");
        self.child.wait().unwrap()
    }

    /// Stderr, after the service has exited.
    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_frame(reader: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            header => {
                let (name, value) = header.split_once(": ").expect("only headers between frames");
                assert_eq!(name, "Content-Length");
                length = Some(value.parse().unwrap());
            }
        }
    }
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}
