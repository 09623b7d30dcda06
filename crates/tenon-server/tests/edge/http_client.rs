//! A raw HTTP/1.1 client: the test controls every byte of a request.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_contract::clock::Entropy;
use tenon_server::http::{self, Authority, Endpoint, HttpLimits, Principal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::probe::surfaces;

/// Two tokens, as during a rotation, and one that allows another surface only.
struct Keys;

impl Authority for Keys {
    fn principal(&self, bearer: Option<&str>) -> Option<Principal> {
        let surfaces = match bearer? {
            "alpha" | "beta" => None,
            "narrow" => Some(vec!["other".to_owned()]),
            _ => return None,
        };
        Some(Principal { id: bearer?.to_owned(), surfaces })
    }
}

pub struct Server {
    pub addr: SocketAddr,
    stop: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    pub async fn start(limits: HttpLimits) -> Self {
        let listener = http::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let endpoint = Endpoint {
            surfaces: surfaces(),
            default_surfaces: vec!["probe".into(), "other".into()],
            open_surfaces: vec!["probe".into(), "code".into()],
            authority: Box::new(Keys),
            entropy: Entropy::system(),
            limits,
        };
        tokio::spawn(http::serve(listener, endpoint, stop.clone()));
        Self { addr, stop }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    pub async fn send(&self, request: &Request) -> Response {
        let mut stream = self.connect().await;
        stream.write_all(&request.bytes()).await.unwrap();
        Response::read(&mut stream).await
    }

    /// Opens a session and returns its id, ready for requests.
    pub async fn session(&self, token: &str) -> String {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" } });
        let opened =
            self.send(&Request::rpc("initialize", params).with("Authorization", &bearer(token))).await;
        assert_eq!(opened.status, 200, "{}", opened.body);
        let id = opened.header("mcp-session-id").expect("a session id").to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let noticed =
            self.send(&Request::post(&ready).with("Authorization", &bearer(token)).in_session(&id)).await;
        assert_eq!((noticed.status, noticed.body.as_str()), (202, ""));
        id
    }
}

pub fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[derive(Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
}

impl Request {
    /// A request that passes every check before the lifecycle.
    pub fn post(message: &Value) -> Self {
        Self::raw(message.to_string().into_bytes())
    }

    pub fn raw(body: Vec<u8>) -> Self {
        let headers = [
            ("Host", "localhost"),
            ("Authorization", "Bearer alpha"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
        ];
        Self {
            method: "POST".into(),
            path: "/mcp/probe".into(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).into(),
            body,
            chunked: false,
        }
    }

    pub fn rpc(method: &str, params: Value) -> Self {
        Self::post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    pub fn method(mut self, method: &str) -> Self {
        self.method = method.into();
        self
    }

    pub fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// Sets a header, replacing an existing one.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }

    pub fn in_session(self, id: &str) -> Self {
        self.with("MCP-Session-Id", id).with("MCP-Protocol-Version", "2025-11-25")
    }

    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Only the head, which announces the body.
    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &match self.chunked {
            true => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
            false => format!("Content-Length: {}\r\n\r\n", self.body.len()),
        };
        head.into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        if self.chunked {
            for chunk in self.body.chunks(60_000) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    /// Reads one response off a connection that closes after it.
    pub async fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let reading = stream.read_to_end(&mut bytes);
        let ended = tokio::time::timeout(Duration::from_secs(20), reading).await.expect("a response");
        assert!(ended.is_ok() || !bytes.is_empty(), "no response: {ended:?}");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { join_chunks(body) } else { body.to_owned() };
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    /// The messages of an event stream.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        self.body
            .split("\n\n")
            .filter(|event| !event.is_empty())
            .map(|event| serde_json::from_str(event.split_once("data: ").expect("data").1).expect("JSON"))
            .collect()
    }
}

fn join_chunks(mut body: &str) -> String {
    let mut joined = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        joined += &rest[..size];
        body = rest[size..].strip_prefix("\r\n").unwrap_or("");
    }
    joined
}
