//! A signed-in client of the console.

use std::net::SocketAddr;

use tenon_testkit::Sandbox;
use tenon_testkit::http::{Request, Response, send};

/// The console of one workspace, with a session.
pub struct SignedIn {
    pub address: SocketAddr,
    pub cookie: String,
}

/// A new link of `tenon console`: the address and the path with the code.
pub fn link(sandbox: &Sandbox) -> (SocketAddr, String) {
    let output = sandbox.tenon().args(["console", "--no-open"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rest = text.trim().strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    (address.parse().unwrap(), format!("/{path}"))
}

impl SignedIn {
    pub fn new(sandbox: &Sandbox) -> Self {
        let (address, path) = link(sandbox);
        let answer = send(address, &get(address, &path)).unwrap();
        assert_eq!(answer.status, 303);
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Self { address, cookie }
    }

    pub fn get(&self, path: &str) -> Response {
        send(self.address, &get(self.address, path).header("Cookie", &self.cookie)).unwrap()
    }

    /// The text of a page, which must exist.
    pub fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(answer.status, 200, "{path}: {text}");
        text
    }

    pub fn form_token(&self) -> String {
        let page = self.page("/console/tasks");
        let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
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
        send(self.address, &self.form(path, &format!("form_token={token}&{fields}"))).unwrap()
    }
}

pub fn get(address: SocketAddr, path: &str) -> Request {
    Request::new("GET", path).header("Host", &address.to_string())
}
