//! An MCP client that takes nothing for granted.
//!
//! It speaks raw JSON and keeps every message it gets until the test takes it: when it is dropped,
//! it reads what is left and panics if the server said anything that no test looked at. Every tool result
//! is checked against the output schema that the server itself published.

mod over_http;
mod over_pipes;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use serde_json::{Value, json};

use crate::PATIENCE;
use over_http::OverHttp;
use over_pipes::OverPipes;

/// A revision of the protocol, by what differs for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: a handshake, then a session.
    Sessions,
    /// 2026-07-28: every request says for itself who asks.
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

/// How messages travel.
trait Wire {
    /// Sends one message.
    fn send(&mut self, message: &Value);

    /// The next message; `None` when the server has closed.
    fn receive(&mut self, deadline: Instant) -> Option<Value>;

    /// Tells the server that no more will come. What it still says can be received.
    fn finish(&mut self);

    /// How the server's process ended, where it is ours.
    fn status(&mut self) -> Option<ExitStatus>;
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

/// The result of a tool call that was answered, be it with an error of the tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    pub structured: Value,
    /// The text items, in order.
    pub text: Vec<String>,
    pub is_error: bool,
}

/// See the module.
pub struct Client {
    wire: Box<dyn Wire>,
    revision: Revision,
    last_id: u64,
    /// Received, but not taken yet.
    waiting: VecDeque<Value>,
    /// The tools of the server and how to check their results; filled by the first list.
    tools: Option<BTreeMap<String, Option<jsonschema::Validator>>>,
}

impl Client {
    /// Starts `command` and speaks over its stdin and stdout.
    pub fn over_pipes(command: &mut Command, revision: Revision) -> Self {
        Self::new(Box::new(OverPipes::start(command)), revision)
    }

    /// Speaks to `http://address/path`.
    pub fn over_http(address: SocketAddr, path: &str, token: Option<&str>, revision: Revision) -> Self {
        Self::new(Box::new(OverHttp::new(address, path, token, revision)), revision)
    }

    fn new(wire: Box<dyn Wire>, revision: Revision) -> Self {
        Self { wire, revision, last_id: 0, waiting: VecDeque::new(), tools: None }
    }

    /// The handshake of a session, as every client does it; the server's answer to `initialize`.
    pub fn initialize(&mut self) -> Value {
        assert_eq!(self.revision, Revision::Sessions, "2026-07-28 has no handshake");
        let params = json!({
            "protocolVersion": self.revision.name(),
            "capabilities": {},
            "clientInfo": client_info(),
        });
        let answer = self.request("initialize", params).expect("`initialize` succeeds");
        self.notify("notifications/initialized", json!({}));
        answer
    }

    /// Sends a request and waits for its answer; everything else that comes waits to be taken.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.start(method, params);
        self.answer(id)
    }

    /// Sends a request and returns its id without waiting.
    pub fn start(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.revision == Revision::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision.name().into();
            meta["io.modelcontextprotocol/clientInfo"] = client_info();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: u64) -> Result<Value, RpcError> {
        let mut answer = self.take(&format!("the answer to request {id}"), |message| message["id"] == id);
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        let (result, error) = (answer["result"].take(), answer["error"].take());
        assert!(result.is_null() != error.is_null(), "an answer has either a result or an error: {answer}");
        if error.is_null() {
            return Ok(result);
        }
        let code = error["code"].as_i64().expect("an error has a whole code");
        let message = error["message"].as_str().expect("an error has a message").to_owned();
        Err(RpcError { code, message, data: error["data"].clone() })
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for the next notification of this method; its parameters.
    pub fn notification(&mut self, method: &str) -> Value {
        self.take(method, |message| message["method"] == method)["params"].take()
    }

    /// Sends any JSON value as a message.
    pub fn send(&mut self, message: &Value) {
        self.wire.send(message);
    }

    /// Waits for the next message that nobody has taken yet.
    pub fn message(&mut self) -> Value {
        self.take("a message", |_| true)
    }

    /// The names of the server's tools, in its order.
    pub fn list_tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).expect("`tools/list` succeeds");
        let listed = listed["tools"].as_array().expect("`tools/list` lists tools");
        let name = |tool: &Value| tool["name"].as_str().expect("a tool has a name").to_owned();
        let tools = listed.iter().map(|tool| (name(tool), output_validator(tool))).collect();
        self.tools = Some(tools);
        listed.iter().map(name).collect()
    }

    /// Calls a tool and checks its result against the schema that the server published for it.
    pub fn call_tool(&mut self, name: &str, arguments: Value) -> Result<ToolResult, RpcError> {
        if self.tools.is_none() {
            self.list_tools();
        }
        let result = self.request("tools/call", json!({ "name": name, "arguments": arguments }))?;
        let is_error = result["isError"].as_bool().unwrap_or(false);
        let validator = self.tools.as_ref().and_then(|tools| tools.get(name)).and_then(Option::as_ref);
        if let Some(validator) = validator
            && !is_error
        {
            check_structure(name, validator, &result["structuredContent"]);
        }
        let items = result["content"].as_array().expect("a tool result has `content`");
        let text = items.iter().filter_map(|item| item["text"].as_str().map(str::to_owned)).collect();
        Ok(ToolResult { structured: result["structuredContent"].clone(), text, is_error })
    }

    /// Ends the conversation: nothing more is sent, everything must have been taken. How the server's
    /// process ended, where it is ours.
    pub fn close(mut self) -> Option<ExitStatus> {
        self.settle();
        self.wire.status()
    }

    /// Reads to the end and panics over what nobody took.
    fn settle(&mut self) {
        self.wire.finish();
        let deadline = Instant::now() + PATIENCE;
        while let Some(message) = self.wire.receive(deadline) {
            self.waiting.push_back(message);
        }
        let left = std::mem::take(&mut self.waiting);
        assert!(left.is_empty(), "the server said what no test looked at: {left:#?}");
    }

    /// Takes the first message that `wanted` accepts, waiting for it if need be.
    fn take(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(index).expect("the index was just found");
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.wire.receive(deadline) {
                Some(message) if wanted(&message) => return message,
                Some(other) => self.waiting.push_back(other),
                None => panic!("the server closed before {what} came; it said: {:#?}", self.waiting),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that fails already has said why.
        if !std::thread::panicking() {
            self.settle();
        }
    }
}

fn client_info() -> Value {
    json!({ "name": "tenon-testkit", "version": env!("CARGO_PKG_VERSION") })
}

fn output_validator(tool: &Value) -> Option<jsonschema::Validator> {
    let schema = tool.get("outputSchema")?;
    Some(jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{}: {error}", tool["name"])))
}

fn check_structure(tool: &str, validator: &jsonschema::Validator, structure: &Value) {
    let faults: Vec<String> =
        validator.iter_errors(structure).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "`{tool}` broke its own output schema: {faults:#?}\n{structure:#}");
}
