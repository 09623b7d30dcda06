//! Unix: `tenon mcp` copies bytes between an agent and the daemon, unchanged.
//!
//! Two threads with blocking reads and no runtime, because every message passes here. The end of the agent's input is
//! forwarded, and the daemon's last answers still come back. A daemon that ends first is reported.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// How a bridge ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeEnd {
    /// The agent closed its side and got all answers.
    Served,
    /// The agent stopped reading.
    AgentGone,
    /// The daemon closed its side while the agent was still connected.
    DaemonGone,
}

/// Copies bytes between `input`/`output` and the daemon. `early` came with the handshake.
pub fn pass(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    early: &[u8],
    daemon: UnixStream,
) -> io::Result<BridgeEnd> {
    let agent_done = Arc::new(AtomicBool::new(false));
    let mut to_daemon = daemon.try_clone()?;
    // Not joined: it may wait for input that never comes after everything else has ended.
    std::thread::Builder::new().name("input".to_owned()).spawn({
        let agent_done = Arc::clone(&agent_done);
        move || {
            let passed = copy(&mut input, &mut to_daemon);
            // If the daemon stopped reading, the other direction notices.
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

/// Copies until the reader ends (`true`) or the writer accepts no more (`false`).
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
    fn end_of_input_is_forwarded_and_last_answers_come_back() {
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
    fn daemon_that_ends_first_is_reported() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, _open) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(pass(input, Vec::new(), b"", ours).unwrap(), BridgeEnd::DaemonGone);
    }

    #[test]
    fn agent_that_stops_reading_is_reported() {
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
