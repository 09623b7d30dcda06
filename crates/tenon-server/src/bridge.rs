//! Unix: `tenon mcp` between an agent and the daemon: bytes in, bytes out, nothing added.
//!
//! Two threads with blocking reads, no runtime: what passes here is on the way of every message. The agent's end of
//! input is passed on and the daemon's last answers still come back; a daemon that ends first is said.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// How a bridge came down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// The agent closed its side, and everything was answered.
    Served,
    /// The agent does not read any more.
    AgentGone,
    /// The daemon closed its side while the agent was still there.
    DaemonGone,
}

/// Passes bytes between `input`/`output` and the daemon. `early` came with the daemon's greeting.
pub fn pass(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    early: &[u8],
    daemon: UnixStream,
) -> io::Result<BridgeEnd> {
    let agent_done = Arc::new(AtomicBool::new(false));
    let mut to_daemon = daemon.try_clone()?;
    // Not joined: it may be waiting for input that never comes when everything else is over.
    std::thread::Builder::new().name("input".to_owned()).spawn({
        let agent_done = Arc::clone(&agent_done);
        move || {
            let passed = copy(&mut input, &mut to_daemon);
            // When the daemon does not take any more, the other direction says so.
            if passed.is_ok_and(|reached_end| reached_end) {
                agent_done.store(true, Ordering::Release);
                let _ = to_daemon.shutdown(Shutdown::Write);
            }
        }
    })?;
    let mut from_daemon = early.chain(daemon);
    match copy(&mut from_daemon, &mut output) {
        Ok(true) if agent_done.load(Ordering::Acquire) => Ok(BridgeEnd::Served),
        Ok(true) => Ok(BridgeEnd::DaemonGone),
        Ok(false) => Ok(BridgeEnd::AgentGone),
        // The kernel reports a killed peer as a reset.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(BridgeEnd::DaemonGone),
        Err(error) => Err(error),
    }
}

/// Copies until the reader ends (`true`) or the writer takes no more (`false`).
fn copy(reader: &mut impl Read, writer: &mut impl Write) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match reader.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if writer.write_all(&chunk[..count]).and_then(|()| writer.flush()).is_err() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_input_is_passed_on_and_the_last_answers_come_back() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let daemon = std::thread::spawn(move || {
            let mut asked = String::new();
            theirs.read_to_string(&mut asked).unwrap();
            theirs.write_all(b"answer").unwrap();
            asked
        });
        let mut output = Vec::new();
        let ended = pass(&b"question"[..], &mut output, b"early ", ours).unwrap();
        assert_eq!(ended, BridgeEnd::Served);
        assert_eq!(output, b"early answer");
        assert_eq!(daemon.join().unwrap(), "question");
    }

    #[test]
    fn a_daemon_that_ends_first_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, _open) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(pass(input, Vec::new(), b"", ours).unwrap(), BridgeEnd::DaemonGone);
    }

    #[test]
    fn an_agent_that_stops_reading_is_noticed() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (input, _open) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").unwrap();
        assert_eq!(pass(input, Closed, b"", ours).unwrap(), BridgeEnd::AgentGone);
    }
}
