//! A signed-in client of the web console.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use crate::http::{HttpConnection, Request, Response, send};
use crate::{PATIENCE, Sandbox};

/// The console of one workspace, with a session.
#[derive(Debug)]
pub struct SignedIn {
    pub address: SocketAddr,
    pub cookie: String,
}

/// A new link of `tenon console` in a sandbox: the address and the path with the code.
pub fn link(sandbox: &Sandbox) -> (SocketAddr, String) {
    link_of(&mut sandbox.tenon())
}

fn link_of(tenon: &mut Command) -> (SocketAddr, String) {
    let output = tenon.args(["console", "--no-open"]).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("a link is ASCII");
    let rest = text.trim().strip_prefix("http://").expect("a link");
    let (address, path) = rest.split_once('/').expect("a link with a path");
    (address.parse().expect("a link to an address"), format!("/{path}"))
}

impl SignedIn {
    /// A session of the console that the test build serves.
    pub fn new(sandbox: &Sandbox) -> Self {
        Self::with(&mut sandbox.tenon())
    }

    /// A session of the console that this build serves.
    pub fn with(tenon: &mut Command) -> Self {
        let (address, path) = link_of(tenon);
        let answer = send(address, &get(address, &path)).expect("the console answers");
        assert_eq!(answer.status, 303);
        let cookie = answer.header("set-cookie").expect("a session").split(';').next().unwrap_or_default();
        Self { address, cookie: cookie.to_owned() }
    }

    /// The request for a page.
    pub fn request(&self, path: &str) -> Request {
        get(self.address, path).header("Cookie", &self.cookie)
    }

    pub fn get(&self, path: &str) -> Response {
        send(self.address, &self.request(path)).expect("the console answers")
    }

    /// The text of a page, which must exist.
    pub fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        let text = String::from_utf8(answer.body).expect("a page is UTF-8");
        assert_eq!(answer.status, 200, "{path}: {text}");
        text
    }

    pub fn form_token(&self) -> String {
        let page = self.page("/console/tasks");
        let (_, rest) = page.split_once("name=\"form_token\" value=\"").expect("a form");
        rest.split('"').next().unwrap_or_default().to_owned()
    }

    /// A form of the console, as a browser sends it.
    pub fn form(&self, path: &str, fields: &str) -> Request {
        Request::new("POST", path)
            .header("Host", &self.address.to_string())
            .header("Origin", &format!("http://{}", self.address))
            .header("Cookie", &self.cookie)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(fields)
    }

    /// Sends a form with the session's token.
    pub fn post(&self, path: &str, fields: &str) -> Response {
        let token = self.form_token();
        let form = self.form(path, &format!("form_token={token}&{fields}"));
        send(self.address, &form).expect("the console answers")
    }

    /// A connection for many requests.
    pub fn connect(&self) -> HttpConnection {
        HttpConnection::open(self.address).expect("the console accepts connections")
    }

    /// The events of an open page.
    pub fn events(&self) -> Events {
        let mut stream = TcpStream::connect(self.address).expect("the console accepts connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
        stream.write_all(&self.request("/console/-/events").to_bytes()).expect("the console reads");
        Events(BufReader::new(stream))
    }
}

/// The open stream of events of one page.
#[derive(Debug)]
pub struct Events(BufReader<TcpStream>);

impl Events {
    /// Reads until a line contains the text.
    pub fn until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.0.read_line(&mut line).unwrap_or_else(|error| panic!("no {text:?}: {error}"));
            assert!(read > 0, "the stream ended before {text:?}");
        }
    }
}

/// A request without a session.
pub fn get(address: SocketAddr, path: &str) -> Request {
    Request::new("GET", path).header("Host", &address.to_string())
}
