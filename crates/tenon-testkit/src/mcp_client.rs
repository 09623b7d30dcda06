//! An MCP client for tests that checks every message.
//!
//! It sends raw JSON and keeps every received message until the test takes it. When it is dropped, it reads the
//! remaining messages and panics if the test has not taken all of them. Every tool result is checked against the
//! output schema that the server publishes.

mod over_http;
mod over_pipes;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use serde_json::{Value, json};

use crate::{PATIENCE, repository_root};
use over_http::OverHttp;
use over_pipes::OverPipes;

/// A revision of the MCP protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: a handshake, then a session.
    Sessions,
    /// 2026-07-28: no handshake; every request carries the client's identity.
    Stateless,
}

impl Revision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// Carries messages to and from the server.
trait Transport {
    /// Sends one message.
    fn send(&mut self, message: &Value);

    /// The next message; `None` when the server has closed.
    fn receive(&mut self, deadline: Instant) -> Option<Value>;

    /// Closes the sending side. Remaining messages can still be received.
    fn finish(&mut self);

    /// The exit status of the server's process, if the client started it.
    fn status(&mut self) -> Option<ExitStatus>;
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub struct McpError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

/// The result of a tool call; `is_error` marks errors of the tool itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    pub structured: Value,
    /// The text items, in order.
    pub text: Vec<String>,
    pub is_error: bool,
}

/// An MCP client; see the module documentation.
pub struct McpClient {
    transport: Box<dyn Transport>,
    revision: Revision,
    /// Sent in `clientInfo`.
    name: String,
    last_id: u64,
    /// Received messages that the test has not taken yet.
    waiting: VecDeque<Value>,
    /// The server's tools and their output validators; filled by the first `tools/list`.
    tools: Option<BTreeMap<String, Option<jsonschema::Validator>>>,
}

impl McpClient {
    /// Starts `command` and connects to its stdin and stdout.
    pub fn over_pipes(command: &mut Command, revision: Revision) -> Self {
        Self::new(Box::new(OverPipes::start(command)), revision)
    }

    /// Starts `command`, connects to its stdin and stdout, and performs the session handshake.
    pub fn connect(command: &mut Command) -> Self {
        let mut client = Self::over_pipes(command, Revision::Sessions);
        client.initialize();
        client
    }

    /// Connects to `http://address/path`.
    pub fn over_http(address: SocketAddr, path: &str, token: Option<&str>, revision: Revision) -> Self {
        Self::new(Box::new(OverHttp::new(address, path, token, revision)), revision)
    }

    fn new(transport: Box<dyn Transport>, revision: Revision) -> Self {
        let name = "tenon-testkit".to_owned();
        Self { transport, revision, name, last_id: 0, waiting: VecDeque::new(), tools: None }
    }

    /// This client under another name.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Performs the session handshake; returns the result of `initialize`.
    pub fn initialize(&mut self) -> Value {
        assert_eq!(self.revision, Revision::Sessions, "2026-07-28 has no handshake");
        let params = json!({
            "protocolVersion": self.revision.name(),
            "capabilities": {},
            "clientInfo": client_info(&self.name),
        });
        let answer = self.request("initialize", params).expect("`initialize` succeeds");
        self.notify("notifications/initialized", json!({}));
        answer
    }

    /// Sends a request and waits for the response; other messages are kept.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, McpError> {
        let id = self.start(method, params);
        self.answer(id)
    }

    /// Sends a request and returns its id without waiting.
    pub fn start(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.revision == Revision::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision.name().into();
            meta["io.modelcontextprotocol/clientInfo"] = client_info(&self.name);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    /// Waits for the response to a request.
    pub fn answer(&mut self, id: u64) -> Result<Value, McpError> {
        let mut answer = self.take(&format!("the response to request {id}"), |message| message["id"] == id);
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        let (result, error) = (answer["result"].take(), answer["error"].take());
        assert!(result.is_null() != error.is_null(), "a response has either a result or an error: {answer}");
        if error.is_null() {
            return Ok(result);
        }
        let code = error["code"].as_i64().expect("an error has an integer code");
        let message = error["message"].as_str().expect("an error has a message").to_owned();
        Err(McpError { code, message, data: error["data"].clone() })
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for the next notification of this method; returns its parameters.
    pub fn notification(&mut self, method: &str) -> Value {
        self.take(method, |message| message["method"] == method)["params"].take()
    }

    /// Sends any JSON value as a message.
    pub fn send(&mut self, message: &Value) {
        self.transport.send(message);
    }

    /// Waits for the next message that has not been taken yet.
    pub fn message(&mut self) -> Value {
        self.take("a message", |_| true)
    }

    /// The names of the server's tools, in the listed order.
    pub fn list_tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).expect("`tools/list` succeeds");
        let listed = listed["tools"].as_array().expect("`tools/list` lists tools");
        let name = |tool: &Value| tool["name"].as_str().expect("a tool has a name").to_owned();
        let tools = listed.iter().map(|tool| (name(tool), output_validator(tool))).collect();
        self.tools = Some(tools);
        listed.iter().map(name).collect()
    }

    /// Calls a tool and checks the result against the published output schema.
    pub fn call_tool(&mut self, name: &str, arguments: Value) -> Result<ToolResult, McpError> {
        if self.tools.is_none() {
            self.list_tools();
        }
        let result = self.request("tools/call", json!({ "name": name, "arguments": arguments }))?;
        let is_error = result["isError"].as_bool().unwrap_or(false);
        let validator = self.tools.as_ref().and_then(|tools| tools.get(name)).and_then(Option::as_ref);
        if let Some(validator) = validator
            && (!is_error || !result["structuredContent"].is_null())
        {
            check_structure(name, validator, &result["structuredContent"]);
        }
        let items = result["content"].as_array().expect("a tool result has `content`");
        let text = items.iter().filter_map(|item| item["text"].as_str().map(str::to_owned)).collect();
        Ok(ToolResult { structured: result["structuredContent"].clone(), text, is_error })
    }

    /// Closes the connection; all messages must have been taken. Returns the exit status of the server's process, if the
    /// client started it.
    pub fn close(mut self) -> Option<ExitStatus> {
        self.finish();
        self.transport.status()
    }

    /// Closes, reads to the end and panics if any message was not taken.
    fn finish(&mut self) {
        self.transport.finish();
        let deadline = Instant::now() + PATIENCE;
        while let Some(message) = self.transport.receive(deadline) {
            self.waiting.push_back(message);
        }
        let left = std::mem::take(&mut self.waiting);
        assert!(left.is_empty(), "the test has not taken these messages: {left:#?}");
    }

    /// Takes the first message that `wanted` accepts; waits for it if necessary.
    fn take(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(index).expect("the index was just found");
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.transport.receive(deadline) {
                Some(message) if wanted(&message) => return message,
                Some(other) => self.waiting.push_back(other),
                None => panic!("the server closed before {what} arrived; received: {:#?}", self.waiting),
            }
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // A failing test has reported its own reason already.
        if !std::thread::panicking() {
            self.finish();
        }
    }
}

fn client_info(name: &str) -> Value {
    json!({ "name": name, "version": env!("CARGO_PKG_VERSION") })
}

/// The schema that the tool lists, else the one in `schemas/tools`.
fn output_validator(tool: &Value) -> Option<jsonschema::Validator> {
    let unlisted = || {
        let name = tool["name"].as_str()?;
        let text = std::fs::read(repository_root().join(format!("schemas/tools/{name}.output.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    };
    let schema = tool.get("outputSchema").cloned().or_else(unlisted)?;
    Some(jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{}: {error}", tool["name"])))
}

fn check_structure(tool: &str, validator: &jsonschema::Validator, structure: &Value) {
    let faults: Vec<String> =
        validator.iter_errors(structure).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "`{tool}` violates its output schema: {faults:#?}\n{structure:#}");
}
