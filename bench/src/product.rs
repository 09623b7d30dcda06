//! The `dist` build of `tenon` in a sandbox.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenon_testkit::Sandbox;

use crate::error::BenchError;

/// Names another build of `tenon`, for benches that compare answers.
const BINARY: &str = "TENON_BENCH_BINARY";

/// The build of `tenon` next to this program: the `dist` build if `cargo xtask bench` started it. Benches that compare answers
/// accept any build; for the others, an unoptimised client would measure itself.
pub(crate) fn binary(any_build: bool) -> Result<PathBuf, BenchError> {
    if let Some(path) = std::env::var_os(BINARY).filter(|_| any_build).map(PathBuf::from) {
        let hint = format!("{BINARY}: no file at {}", path.display());
        return if path.is_file() { Ok(path) } else { Err(BenchError::new(hint)) };
    }
    let tenon = std::env::current_exe()?.with_file_name("tenon");
    if !tenon.is_file() || (cfg!(debug_assertions) && !any_build) {
        return Err(BenchError::new("no build next to this program\n  hint: run `cargo xtask bench`"));
    }
    Ok(tenon)
}

/// The binary and the sandbox it runs in.
pub(crate) struct Product<'a> {
    pub(crate) tenon: &'a Path,
    pub(crate) sandbox: &'a Sandbox,
}

impl Product<'_> {
    /// The bridge, which starts the workspace's daemon if none is running.
    pub(crate) fn bridge(&self) -> Command {
        let mut command = self.sandbox.command(self.tenon);
        command.args(["mcp", "--surface", "workspace"]).stderr(Stdio::null());
        command
    }

    /// Stops the daemon and checks that no process is left.
    pub(crate) fn stop(&self) -> Result<(), BenchError> {
        let stopped = self.sandbox.command(self.tenon).arg("stop").output()?;
        if !stopped.status.success() {
            return Err(BenchError::new(format!(
                "`tenon stop`: {}",
                String::from_utf8_lossy(&stopped.stderr)
            )));
        }
        match self.sandbox.wait_for_no_processes().as_slice() {
            [] => Ok(()),
            left => Err(BenchError::new(format!("`tenon stop` left processes behind: {left:?}"))),
        }
    }
}

/// `tenon serve --http` on a free port, until dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl HttpServer {
    pub(crate) fn start(product: &Product<'_>) -> Result<Self, BenchError> {
        let token = product.sandbox.command(product.tenon).args(["token", "show"]).output()?;
        let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
        let mut command = product.sandbox.command(product.tenon);
        command.args(["serve", "--http", "--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        let address = stdout.lines().map_while(Result::ok).find_map(|line| address_in(&line));
        let address = address
            .ok_or_else(|| BenchError::new("`tenon serve --http` exited without printing an address"))?;
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
    fn address_is_read_from_startup_line() {
        let expected = "127.0.0.1:4100".parse().ok();
        assert_eq!(address_in("listening on http://127.0.0.1:4100/mcp"), expected);
        assert_eq!(address_in("`http://127.0.0.1:4100`"), expected);
        assert_eq!(address_in("no address"), None);
    }
}
