//! A server in one process answers on whatever its standard input and output are, and leaves what others share as it was.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tenon_testkit::Sandbox;

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

/// Runs `tenon context-server`, which needs no workspace.
fn serve(sandbox: &Sandbox, input: Stdio, output: Stdio, errors: Stdio) -> Child {
    let mut command = sandbox.tenon();
    command.arg("context-server").stdin(input).stdout(output).stderr(errors).spawn().unwrap()
}

fn line(from: impl std::io::Read) -> String {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).unwrap();
    line
}

#[test]
fn pipes_shared_with_other_processes_keep_blocking() {
    let sandbox = Sandbox::new();
    let (input, mut to) = std::io::pipe().unwrap();
    let (from, output) = std::io::pipe().unwrap();
    // As a shell does for `2>&1`.
    let errors = output.try_clone().unwrap();
    let (ours, also_ours) = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let mut child = serve(&sandbox, input.into(), output.into(), errors.into());
    to.write_all(PING).unwrap();
    assert_eq!(line(&from), PONG);
    for shared in [OwnedFd::from(ours), OwnedFd::from(also_ours)] {
        let flags = OFlag::from_bits_retain(fcntl(&shared, FcntlArg::F_GETFL).unwrap());
        assert!(!flags.contains(OFlag::O_NONBLOCK), "{flags:?}");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn sockets_are_served_also_if_errors_go_to_the_same_one() {
    let sandbox = Sandbox::new();
    for shares_errors in [false, true] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let end = || OwnedFd::from(theirs.try_clone().unwrap());
        let errors = if shares_errors { end().into() } else { Stdio::null() };
        let mut child = serve(&sandbox, end().into(), end().into(), errors);
        ours.write_all(PING).unwrap();
        assert_eq!(line(&ours), PONG, "shares errors: {shares_errors}");
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn files_are_served() {
    let sandbox = Sandbox::new();
    let [input, output] = ["input", "output"].map(|name| sandbox.folder().join(name));
    std::fs::write(&input, PING).unwrap();
    let files = (File::open(&input).unwrap(), File::create(&output).unwrap());
    assert!(serve(&sandbox, files.0.into(), files.1.into(), Stdio::null()).wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(&output).unwrap(), PONG);
}
