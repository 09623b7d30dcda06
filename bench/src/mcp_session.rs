//! An MCP server of any make over pipes. An error is an answer, and every wait has an end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::json_lines::{INITIALIZE, INITIALIZED};

/// How long one answer may take. Serena reads every file before its first answer by name.
const PATIENCE: Duration = Duration::from_secs(300);

/// The answer of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// What the model reads: all text items, or the message of an error.
    pub(crate) text: String,
    pub(crate) structured: Value,
    pub(crate) is_error: bool,
}

/// A running server. Ends with it.
pub(crate) struct McpSession {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The last line on stderr.
    said: Arc<Mutex<String>>,
    last_id: u64,
}

impl McpSession {
    /// Starts a server and performs the handshake.
    pub(crate) fn start(command: &mut Command) -> Result<Self, BenchError> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        let (sender, lines) = sync_channel(64);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = BufReader::new(child.stderr.take().expect("stderr was piped above"));
        let said = Arc::new(Mutex::new(String::new()));
        let last_line = Arc::clone(&said);
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
                *last_line.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
        let mut session = Self { child, stdin, lines, said, last_id: 0 };
        session.send(INITIALIZE)?;
        session.response(0)?;
        session.send(INITIALIZED)?;
        Ok(session)
    }

    fn send(&mut self, line: &str) -> Result<(), BenchError> {
        let stdin = self.stdin.as_mut().ok_or_else(|| BenchError::new("session has ended"))?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Waits for a response; answers the server's own requests and skips everything else.
    fn response(&mut self, id: u64) -> Result<Value, BenchError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.map_err(|error| {
                let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
                BenchError::new(format!("no answer: {error}; last line on stderr: {said}"))
            })?;
            // A server may print other text on stdout.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            match (message["method"].as_str(), message.get("id")) {
                (Some(_), Some(theirs)) => {
                    let empty = json!({ "jsonrpc": "2.0", "id": theirs, "result": {} });
                    self.send(&empty.to_string())?;
                }
                (None, Some(ours)) if *ours == json!(id) => return Ok(message),
                _ => {}
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<Value, BenchError> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message.to_string())?;
        self.response(id)
    }

    /// The tools as the server lists them.
    pub(crate) fn list_tools(&mut self) -> Result<Value, BenchError> {
        Ok(self.request("tools/list", &json!({}))?["result"].take())
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, BenchError> {
        let mut message = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        if let Some(error) = message.get("error") {
            let text = error["message"].as_str().unwrap_or_default().to_owned();
            return Ok(Answer { text, structured: error.clone(), is_error: true });
        }
        let result = &mut message["result"];
        let items = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = items.filter_map(|item| item["text"].as_str()).collect();
        let text = texts.join("\n");
        let is_error = result["isError"] == true;
        Ok(Answer { text, structured: result["structuredContent"].take(), is_error })
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        // The sandbox kills what a server leaves behind.
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
