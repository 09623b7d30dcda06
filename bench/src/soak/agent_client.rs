//! An MCP client over `tenon mcp` that survives the end of the connection.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use crate::json_lines::{INITIALIZE, INITIALIZED};

/// Every call has its own deadline in the daemon; only a broken product reaches this one.
const PATIENCE: Duration = Duration::from_secs(180);

/// How many unread messages are kept.
const CAPACITY: usize = 1024;

/// What became of a request.
#[derive(Debug)]
pub(super) enum Reply {
    Result(Value),
    Error(Value),
    /// The connection ended first.
    Closed,
    /// No answer within [`PATIENCE`].
    Silent,
}

pub(super) struct AgentClient {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    last_id: u64,
}

impl AgentClient {
    /// Starts a session. `None` if it ended during the handshake.
    pub(super) fn connect(tenon: &Path, sandbox: &Sandbox) -> Option<Self> {
        let mut command = sandbox.command(tenon);
        command.args(["mcp", "--surface", "code,nav,edit,tasks,memory"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take()?;
        let stdout = child.stdout.take()?;
        let (sender, lines) = mpsc::sync_channel(CAPACITY);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self { child, stdin, lines, last_id: 0 };
        client.send(INITIALIZE).then_some(())?;
        match client.answer(0) {
            Reply::Result(_) => client.send(INITIALIZED).then_some(client),
            _ => None,
        }
    }

    /// Calls a tool and waits for its answer.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Reply {
        match self.start(tool, arguments) {
            Some(id) => self.answer(id),
            None => Reply::Closed,
        }
    }

    /// Calls a tool and cancels the call at once. An answer to it is ignored.
    pub(super) fn call_and_cancel(&mut self, tool: &str, arguments: &Value) {
        if let Some(id) = self.start(tool, arguments) {
            let params = json!({ "requestId": id, "reason": "soak" });
            let cancelled =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            self.send(&cancelled.to_string());
        }
    }

    /// Ends the session without notice.
    pub(super) fn kill(mut self) {
        let _ = self.child.kill();
    }

    fn start(&mut self, tool: &str, arguments: &Value) -> Option<u64> {
        self.last_id += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params });
        self.send(&call.to_string()).then_some(self.last_id)
    }

    fn send(&mut self, line: &str) -> bool {
        self.stdin.write_all(format!("{line}\n").as_bytes()).is_ok()
    }

    fn answer(&mut self, id: u64) -> Reply {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Reply::Closed,
                Err(RecvTimeoutError::Timeout) => return Reply::Silent,
            };
            let mut message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] != id {
                continue;
            }
            return match message["error"].take() {
                Value::Null => Reply::Result(message["result"].take()),
                error => Reply::Error(error),
            };
        }
    }
}

impl Drop for AgentClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
