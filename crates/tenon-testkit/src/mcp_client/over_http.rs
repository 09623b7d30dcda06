//! MCP over HTTP: one POST per message; messages in response bodies are queued.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Instant;

use serde_json::Value;

use super::{Revision, Transport};
use crate::http::{HttpConnection, Request};

pub(super) struct OverHttp {
    connection: HttpConnection,
    path: String,
    token: Option<String>,
    revision: Revision,
    session: Option<String>,
    received: VecDeque<Value>,
}

impl OverHttp {
    pub(super) fn new(address: SocketAddr, path: &str, token: Option<&str>, revision: Revision) -> Self {
        Self {
            connection: HttpConnection::open(address)
                .unwrap_or_else(|error| panic!("cannot reach {address}: {error}")),
            path: path.into(),
            token: token.map(str::to_owned),
            revision,
            session: None,
            received: VecDeque::new(),
        }
    }

    /// A request with the headers that depend on the session and the message.
    fn request(&self, message: &Value) -> Request {
        let mut request = Request::mcp(&self.path, self.token.as_deref(), message.to_string());
        if let Some(session) = &self.session {
            request = request.header("MCP-Session-Id", session);
        }
        if self.session.is_some() || self.revision == Revision::Stateless {
            request = request.header("MCP-Protocol-Version", self.revision.name());
        }
        if self.revision == Revision::Stateless {
            request = request.header("Mcp-Method", message["method"].as_str().unwrap_or_default());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("Mcp-Name", name);
            }
        }
        request
    }
}

impl Transport for OverHttp {
    fn send(&mut self, message: &Value) {
        let response = self.connection.send(&self.request(message));
        let response = response.unwrap_or_else(|error| panic!("no response to {message}: {error}"));
        let messages = response.messages();
        assert!(
            response.status < 300 || !messages.is_empty(),
            "status {} without a message in response to {message}",
            response.status
        );
        if let Some(session) = response.header("MCP-Session-Id") {
            self.session = Some(session.to_owned());
        }
        self.received.extend(messages);
    }

    fn receive(&mut self, _deadline: Instant) -> Option<Value> {
        self.received.pop_front()
    }

    fn finish(&mut self) {}

    fn status(&mut self) -> Option<ExitStatus> {
        None
    }
}
