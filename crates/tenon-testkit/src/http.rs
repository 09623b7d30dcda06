//! HTTP/1.1 by hand, so that tests can send what no client library would.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::PATIENCE;

/// A request, sent as written. `Content-Length` is added unless the headers define the body's framing.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.into(), path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// A `POST` with the headers that MCP requires, and a token.
    pub fn mcp(path: &str, token: Option<&str>, body: impl Into<Vec<u8>>) -> Self {
        let request = Self::new("POST", path)
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body);
        match token {
            Some(token) => request.header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    /// Adds a header; an existing one of the same name stays.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replaces every header of the same name.
    pub fn replace_header(self, name: &str, value: &str) -> Self {
        self.without_header(name).header(name, value)
    }

    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(present, _)| !present.eq_ignore_ascii_case(name));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(present, _)| present.eq_ignore_ascii_case(name))
    }

    /// The bytes on the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if !self.has("Content-Length") && !self.has("Transfer-Encoding") {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// `body` in chunks of `size` bytes, for a request with `Transfer-Encoding: chunked`.
pub fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + body.len() / size * 16);
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(present, _)| present.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The JSON messages in the body: a single message or an event stream.
    pub fn messages(&self) -> Vec<serde_json::Value> {
        let text = std::str::from_utf8(&self.body).expect("an MCP body is UTF-8");
        let parse = |json: &str| -> serde_json::Value {
            serde_json::from_str(json)
                .unwrap_or_else(|error| panic!("MCP body is not JSON ({error}): {json}"))
        };
        match self.header("Content-Type") {
            Some("text/event-stream") => {
                text.lines().filter_map(|line| line.strip_prefix("data:")).map(parse).collect()
            }
            _ if text.is_empty() => Vec::new(),
            _ => vec![parse(text)],
        }
    }
}

/// A keep-alive connection.
#[derive(Debug)]
pub struct HttpConnection {
    stream: BufReader<TcpStream>,
}

impl HttpConnection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a request and reads the response.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        self.write(&request.to_bytes())?;
        self.read()
    }

    /// Sends any bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads one response.
    pub fn read(&mut self) -> io::Result<Response> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut response = Response { status, headers, body: Vec::new() };
        response.body = self.body(&response)?;
        Ok(response)
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if response.header("Transfer-Encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = self.line()?;
                let size = u64::from_str_radix(size.split(';').next().unwrap_or_default(), 16);
                let size = size.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                self.stream.by_ref().take(size).read_to_end(&mut body)?;
                self.line()?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        let length = response.header("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
        self.stream.by_ref().take(length).read_to_end(&mut body)?;
        Ok(body)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// Sends one request over a new connection.
pub fn send(address: SocketAddr, request: &Request) -> io::Result<Response> {
    HttpConnection::open(address)?.send(request)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that reads one request up to the blank line and sends a fixed response.
    fn serve_once(text: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            stream.get_mut().write_all(text.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn plain_response_is_read() {
        let address = serve_once(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
        );
        let response = send(address, &Request::new("GET", "/")).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.messages(), [serde_json::json!({"a": 1})]);
    }

    #[test]
    fn chunked_event_stream_is_read() {
        let events = "data: {\"a\":1}\n\ndata: {\"a\":2}\n\n";
        let (first, second) = events.split_at(20);
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        );
        let response = send(serve_once(text.leak()), &Request::new("GET", "/")).unwrap();
        assert_eq!(response.messages(), [serde_json::json!({"a": 1}), serde_json::json!({"a": 2})]);
    }

    #[test]
    fn bodies_are_chunked() {
        assert_eq!(chunked(b"abcde", 2), b"2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n");
    }

    #[test]
    fn closed_connection_is_an_error() {
        assert!(send(serve_once(""), &Request::new("GET", "/")).is_err());
    }
}
