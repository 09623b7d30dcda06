//! A workspace in which the user allows edits, and clients of the real program.

use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::{Map, Value, json};
use tenon_contract::id::sha256_hex;
use tenon_testkit::mcp_client::ToolResult;
use tenon_testkit::{McpClient, RealProject, Sandbox};

/// `edit.wait_ms` for real servers: an edit still returns as soon as they are done.
const REAL_SERVER_WAIT_MS: u64 = 30_000;

/// A sandboxed workspace with `edit.allow` set in the user's settings. Builder methods rewrite these settings.
pub struct Workspace {
    pub sandbox: Sandbox,
    servers: Map<String, Value>,
    wait_ms: u64,
}

impl Workspace {
    /// A workspace with these files.
    pub fn new(tree: &str) -> Self {
        Self::in_sandbox(Sandbox::with_tree(tree))
    }

    /// A copy of a real project, with time for real language servers.
    pub fn real(source: RealProject) -> Self {
        Self::in_sandbox(Sandbox::with_project(source)).with_real_servers()
    }

    /// Sets `edit.wait_ms` high enough for real language servers.
    pub fn with_real_servers(mut self) -> Self {
        self.wait_ms = REAL_SERVER_WAIT_MS;
        self.write_settings()
    }

    /// The workspace of an existing sandbox.
    pub fn in_sandbox(sandbox: Sandbox) -> Self {
        Self { sandbox, servers: Map::new(), wait_ms: 2000 }.write_settings()
    }

    /// Adds a scripted server for `.fake` files.
    pub fn server(mut self, id: &str, rules: Value) -> Self {
        let script = json!({ "capabilities": { "textDocumentSync": 2 }, "rules": rules });
        let entry = tenon_fake_lsp::entry(&self.sandbox.dir("tmp"), id, script);
        self.servers.insert(id.to_owned(), entry);
        self.write_settings()
    }

    /// Adds a scripted server for Python files, and turns the real ones off.
    pub fn python_server(self, id: &str, script: &Value) -> Self {
        let mut entry = tenon_fake_lsp::entry(&self.sandbox.dir("tmp"), id, script.clone());
        entry["extensions"] = json!([".py"]);
        let off = || json!({ "enabled": false });
        self.entry("pyright", off()).entry("ty", off()).entry("ruff", off()).entry(id, entry)
    }

    /// Adds a server entry to the user's settings.
    pub fn entry(mut self, id: &str, entry: Value) -> Self {
        self.servers.insert(id.to_owned(), entry);
        self.write_settings()
    }

    /// Writes the user's settings to disk.
    fn write_settings(self) -> Self {
        let root = self.sandbox.root().canonicalize().unwrap();
        self.set_settings(
            &json!({ "edit": { "allow": [root], "wait_ms": self.wait_ms }, "servers": self.servers }),
        );
        self
    }

    /// Replaces the user's settings.
    pub fn set_settings(&self, settings: &Value) {
        self.sandbox.write_user_config(&toml::to_string(settings).unwrap());
    }

    /// A client of the `edit` surface, served by a separate process.
    pub fn client(&self) -> McpClient {
        self.session("edit")
    }

    /// A client of these surfaces, served by a separate process.
    pub fn session(&self, surfaces: &str) -> McpClient {
        self.connect(&["mcp", "--no-daemon", "--surface", surfaces])
    }

    /// A client of the `edit` surface, served by the workspace's daemon.
    pub fn daemon_client(&self) -> McpClient {
        self.connect(&["mcp", "--surface", "edit"])
    }

    fn connect(&self, arguments: &[&str]) -> McpClient {
        let mut command = self.sandbox.tenon();
        command.args(arguments).arg("--root").arg(self.sandbox.root()).stderr(Stdio::null());
        McpClient::connect(&mut command)
    }

    pub fn bytes(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.sandbox.tree().path(file)).unwrap()
    }

    pub fn sha256(&self, file: &str) -> String {
        sha256_hex(self.bytes(file))
    }
}

/// A `tenon serve --http` process, killed at the end of the test.
pub struct ServeProcess {
    process: Child,
    pub address: SocketAddr,
}

impl ServeProcess {
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

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn edit(client: &mut McpClient, file: &str, old: &str, new: &str) -> ToolResult {
    let arguments = json!({ "file": file, "old_text": old, "new_text": new });
    client.call_tool("edit_file", arguments).unwrap()
}

/// Sends an edit request without waiting for the response.
pub fn start_edit(client: &mut McpClient, file: &str, old: &str, new: &str) -> u64 {
    let arguments = json!({ "file": file, "old_text": old, "new_text": new });
    client.start("tools/call", json!({ "name": "edit_file", "arguments": arguments }))
}

/// Waits for the response to an edit request.
pub fn finish_edit(client: &mut McpClient, id: u64) -> ToolResult {
    let mut answer = client.answer(id).unwrap();
    let items = answer["content"].as_array().unwrap().iter();
    let text = items.map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    let is_error = answer["isError"] == true;
    ToolResult { structured: answer["structuredContent"].take(), text, is_error }
}

pub fn write(client: &mut McpClient, file: &str, text: &str, expected: Option<&str>) -> ToolResult {
    let mut arguments = json!({ "file": file, "text": text });
    if let Some(expected) = expected {
        arguments["expected_sha256"] = json!(expected);
    }
    client.call_tool("write_file", arguments).unwrap()
}

/// The text of a successful change.
pub fn text(result: &ToolResult) -> &str {
    assert!(!result.is_error, "{result:?}");
    assert_eq!(result.text.len(), 1, "{result:?}");
    &result.text[0]
}

/// The text of a successful change below the line that names it.
pub fn delta(result: &ToolResult) -> &str {
    text(result).split_once('\n').map_or("", |(_, delta)| delta)
}

/// `file:line:character` of each new diagnostic.
pub fn new_places(result: &ToolResult) -> Vec<String> {
    let new = result.structured["new"].as_array().unwrap().iter();
    new.map(|one| format!("{}:{}:{}", one["file"].as_str().unwrap(), one["line"], one["character"])).collect()
}

/// The error object of a rejected change.
pub fn error(result: &ToolResult) -> Value {
    assert!(result.is_error && result.text.len() == 1, "{result:?}");
    let mut error: Value = serde_json::from_str(&result.text[0]).unwrap();
    error["error"].take()
}

/// The error code of a rejected change.
pub fn code(result: &ToolResult) -> String {
    error(result)["code"].as_str().unwrap().to_owned()
}
