//! The built `tenon` in a sandbox, as benches and clients use it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tenon_testkit::Sandbox;

use crate::shell::Failure;

/// The binary and where it runs.
pub(crate) struct Product<'a> {
    pub(crate) tenon: &'a Path,
    pub(crate) sandbox: &'a Sandbox,
}

impl Product<'_> {
    /// The bridge, which starts the workspace's daemon if there is none.
    pub(crate) fn bridge(&self) -> Command {
        let mut command = self.sandbox.command(self.tenon);
        command.args(["mcp", "--surface", "workspace"]).stderr(Stdio::null());
        command
    }

    /// Ends the daemon and makes sure that nothing is left of it.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        let stopped = self.sandbox.command(self.tenon).arg("stop").output()?;
        if !stopped.status.success() {
            return Err(Failure::new(format!("`tenon stop`: {}", String::from_utf8_lossy(&stopped.stderr))));
        }
        match self.sandbox.wait_for_no_processes().as_slice() {
            [] => Ok(()),
            left => Err(Failure::new(format!("`tenon stop` left processes behind: {left:?}"))),
        }
    }
}

/// `tenon serve --http` on a port of its own choice, until dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl HttpServer {
    pub(crate) fn start(product: &Product<'_>) -> Result<Self, Failure> {
        let token = product.sandbox.command(product.tenon).args(["token", "show"]).output()?;
        let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
        let mut command = product.sandbox.command(product.tenon);
        command.args(["serve", "--http", "--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        let address = stdout.lines().map_while(Result::ok).find_map(|line| address_in(&line));
        let address = address.ok_or_else(|| Failure::new("`tenon serve --http` ended without an address"))?;
        Ok(Self { child, address, token })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a line such as `listening on http://127.0.0.1:4100/mcp`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("http://")?.1;
    rest.split(['/', ' ', '"', '`']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_is_said() {
        let expected = "127.0.0.1:4100".parse().ok();
        assert_eq!(address_in("listening on http://127.0.0.1:4100/mcp"), expected);
        assert_eq!(address_in("`http://127.0.0.1:4100`"), expected);
        assert_eq!(address_in("no address"), None);
    }
}
