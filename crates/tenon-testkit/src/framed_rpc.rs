//! A JSON-RPC connection with `Content-Length` framing, to a language server or to `tenon lsp-service`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

/// The error of a request that a change in the server's state has cut short.
const CONTENT_MODIFIED: &str = "-32801";

/// Both directions of a framed JSON-RPC connection.
pub struct FramedRpc {
    to: Box<dyn Write>,
    from: BufReader<Box<dyn Read>>,
    last: u64,
    /// Responses received while waiting for another one.
    responses: BTreeMap<u64, Value>,
    /// Notifications received so far; callers clear it.
    pub notifications: Vec<Value>,
}

impl FramedRpc {
    pub fn new(to: impl Write + 'static, from: impl Read + 'static) -> Self {
        let from = BufReader::new(Box::new(from) as Box<dyn Read>);
        Self { to: Box::new(to), from, last: 0, responses: BTreeMap::new(), notifications: Vec::new() }
    }

    pub fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Sends a request without waiting for the response.
    pub fn send_request(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }))?;
        Ok(self.last)
    }

    /// Waits for the result of a sent request.
    pub fn wait_response(&mut self, id: u64) -> io::Result<Value> {
        loop {
            if let Some(mut answer) = self.responses.remove(&id) {
                return match answer.get("error") {
                    Some(error) => Err(io::Error::other(error.to_string())),
                    None => Ok(answer["result"].take()),
                };
            }
            self.receive_next()?;
        }
    }

    /// Asks again if the server has changed its state meanwhile, as it may while it loads a project.
    pub fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        loop {
            let id = self.send_request(method, params)?;
            match self.wait_response(id) {
                Err(error) if error.to_string().contains(CONTENT_MODIFIED) => {}
                answer => return answer,
            }
        }
    }

    /// Receives one message. Requests from the peer are answered with `null`, which every server accepts.
    pub fn receive_next(&mut self) -> io::Result<()> {
        let message = self.receive()?;
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                let is_settings = method == "workspace/configuration";
                let result = if is_settings { json!(vec![Value::Null; items]) } else { Value::Null };
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
            }
            (Some(_), None) => self.notifications.push(message),
            (None, id) => {
                let id = id.and_then(Value::as_u64).ok_or_else(|| io::Error::other(message.to_string()))?;
                self.responses.insert(id, message);
            }
        }
        Ok(())
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let body = message.to_string();
        self.to.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        self.to.flush()
    }

    fn receive(&mut self) -> io::Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", bytes)) => length = bytes.parse().unwrap_or(0),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body)?;
        serde_json::from_slice(&body).map_err(|error| io::Error::other(format!("frame is not JSON: {error}")))
    }
}
