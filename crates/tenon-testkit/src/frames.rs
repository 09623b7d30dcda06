//! A peer that is spoken to in framed JSON-RPC: a bare language server, or the service process.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

/// Both directions of a connection.
pub struct Frames {
    to: Box<dyn Write>,
    from: BufReader<Box<dyn Read>>,
    last: u64,
    /// Answers that came while another was waited for.
    early: BTreeMap<u64, Value>,
    /// Notifications since they were last forgotten.
    pub heard: Vec<Value>,
}

impl Frames {
    pub fn new(to: impl Write + 'static, from: impl Read + 'static) -> Self {
        let from = BufReader::new(Box::new(from) as Box<dyn Read>);
        Self { to: Box::new(to), from, last: 0, early: BTreeMap::new(), heard: Vec::new() }
    }

    pub fn notify(&mut self, method: &str, params: &Value) -> io::Result<()> {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Sends a request without waiting for its answer.
    pub fn begin(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        self.last += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }))?;
        Ok(self.last)
    }

    /// The result of a request that was sent.
    pub fn finish(&mut self, id: u64) -> io::Result<Value> {
        loop {
            if let Some(mut answer) = self.early.remove(&id) {
                return match answer.get("error") {
                    Some(error) => Err(io::Error::other(error.to_string())),
                    None => Ok(answer["result"].take()),
                };
            }
            self.hear()?;
        }
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.begin(method, params)?;
        self.finish(id)
    }

    /// Takes one message in. What the peer asks is answered with nothing, which every server bears.
    pub fn hear(&mut self) -> io::Result<()> {
        let message = self.receive()?;
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                let is_settings = method == "workspace/configuration";
                let result = if is_settings { json!(vec![Value::Null; items]) } else { Value::Null };
                self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
            }
            (Some(_), None) => self.heard.push(message),
            (None, id) => {
                let id = id.and_then(Value::as_u64).ok_or_else(|| io::Error::other(message.to_string()))?;
                self.early.insert(id, message);
            }
        }
        Ok(())
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
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
        serde_json::from_slice(&body)
            .map_err(|error| io::Error::other(format!("no JSON in a frame: {error}")))
    }
}
