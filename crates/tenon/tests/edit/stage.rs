//! A workspace whose user allows edits, with clients of the real program.

use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::{Map, Value, json};
use tenon_contract::id::sha256_hex;
use tenon_testkit::client::ToolResult;
use tenon_testkit::{Client, Revision, Sandbox, Source};

/// Tests with real servers wait for them rather than race them; nobody waits longer than they take.
const PATIENT_MS: u64 = 30_000;

pub struct Stage {
    pub sandbox: Sandbox,
    servers: Map<String, Value>,
    wait_ms: u64,
}

impl Stage {
    /// A workspace with these files. Real language servers are left out: tests that want them say so.
    pub fn new(tree: &str) -> Self {
        Self::of(Sandbox::with_tree(tree))
    }

    pub fn real(source: Source) -> Self {
        Self::of(Sandbox::with_source(source)).patient()
    }

    /// With the time that real servers need on any machine.
    pub fn patient(mut self) -> Self {
        self.wait_ms = PATIENT_MS;
        self.written()
    }

    pub fn of(sandbox: Sandbox) -> Self {
        Self { sandbox, servers: Map::new(), wait_ms: 2000 }.written()
    }

    /// With a scripted server for `.fake` files.
    pub fn server(mut self, id: &str, rules: Value) -> Self {
        let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules });
        let entry = tenon_fake_lsp::entry(&self.sandbox.place("tmp"), id, script);
        self.servers.insert(id.to_owned(), entry);
        self.written()
    }

    /// With an entry of the user's own.
    pub fn entry(mut self, id: &str, entry: Value) -> Self {
        self.servers.insert(id.to_owned(), entry);
        self.written()
    }

    /// Puts the user's settings on disk.
    fn written(self) -> Self {
        let root = self.sandbox.root().canonicalize().unwrap();
        self.settle(
            &json!({ "edit": { "allow": [root], "wait_ms": self.wait_ms }, "servers": self.servers }),
        );
        self
    }

    /// Replaces the user's settings.
    pub fn settle(&self, settings: &Value) {
        let folder = self.sandbox.place("config").join("tenon");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), toml::to_string(settings).unwrap()).unwrap();
    }

    /// A session with a process of its own.
    pub fn client(&self) -> Client {
        self.session("edit")
    }

    /// The same with these surfaces.
    pub fn session(&self, surfaces: &str) -> Client {
        self.connect(&["mcp", "--no-daemon", "--surface", surfaces])
    }

    /// A session through the workspace's daemon.
    pub fn bridged(&self) -> Client {
        self.connect(&["mcp", "--surface", "edit"])
    }

    fn connect(&self, arguments: &[&str]) -> Client {
        let mut command = self.sandbox.tenon();
        command.args(arguments).arg("--root").arg(self.sandbox.root()).stderr(Stdio::null());
        let mut client = Client::over_pipes(&mut command, Revision::Sessions);
        client.initialize();
        client
    }

    pub fn bytes(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.sandbox.tree().path(file)).unwrap()
    }

    pub fn sha256(&self, file: &str) -> String {
        sha256_hex(self.bytes(file))
    }
}

/// `tenon serve --http`, ended with the test.
pub struct Served {
    process: Child,
    pub address: SocketAddr,
}

impl Served {
    pub fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        use std::io::{BufRead, BufReader};
        let mut command = sandbox.tenon();
        command.args(["serve", "--http"]).args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        Self { address: address.parse().unwrap(), process }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn edit(client: &mut Client, file: &str, old: &str, new: &str) -> ToolResult {
    let arguments = json!({ "file": file, "old_text": old, "new_text": new });
    client.call_tool("edit_file", arguments).unwrap()
}

/// Asks for an edit without waiting for its answer.
pub fn begin(client: &mut Client, file: &str, old: &str, new: &str) -> u64 {
    let arguments = json!({ "file": file, "old_text": old, "new_text": new });
    client.start("tools/call", json!({ "name": "edit_file", "arguments": arguments }))
}

/// The answer to an edit that was asked for.
pub fn finish(client: &mut Client, id: u64) -> ToolResult {
    let mut answer = client.answer(id).unwrap();
    let items = answer["content"].as_array().unwrap().iter();
    let text = items.map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    let is_error = answer["isError"] == true;
    ToolResult { structured: answer["structuredContent"].take(), text, is_error }
}

pub fn write(client: &mut Client, file: &str, text: &str, expected: Option<&str>) -> ToolResult {
    let mut arguments = json!({ "file": file, "text": text });
    if let Some(expected) = expected {
        arguments["expected_sha256"] = json!(expected);
    }
    client.call_tool("write_file", arguments).unwrap()
}

/// The one text of a change that was made.
pub fn text(result: &ToolResult) -> &str {
    assert!(!result.is_error, "{result:?}");
    assert_eq!(result.text.len(), 1, "{result:?}");
    &result.text[0]
}

/// What comes after the words of success.
pub fn block(result: &ToolResult) -> &str {
    text(result).split_once("\n\n").map_or("", |(_, block)| block)
}

/// The error of a change that was not made.
pub fn error(result: &ToolResult) -> Value {
    assert!(result.is_error && result.text.len() == 1, "{result:?}");
    let mut error: Value = serde_json::from_str(&result.text[0]).unwrap();
    error["error"].take()
}

pub fn code(result: &ToolResult) -> String {
    error(result)["code"].as_str().unwrap().to_owned()
}
