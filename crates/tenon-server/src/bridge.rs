//! Unix: `tenon mcp` copies bytes between an agent and the daemon, unchanged.
//!
//! Two threads with blocking reads and no runtime, because every message passes here. The end of the agent's input is
//! forwarded, and the daemon's last answers still come back. A daemon that ends first is reported.
//!
//! A third thread notices a daemon that is stopped or hangs (decision 0208): if it has been silent for a while, the thread
//! asks on another connection whether it still runs. During a long call the daemon answers there, so the session continues.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

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
    /// The daemon does not run: it is stopped or hangs.
    DaemonSilent,
}

/// When and how to find out whether a silent daemon still runs.
pub struct Heartbeat<F> {
    /// Silence after a message of the agent.
    pub waiting: Duration,
    /// Silence otherwise: an earlier call may still be running.
    pub idle: Duration,
    pub is_alive: F,
}

impl<F> Heartbeat<F> {
    pub fn new(is_alive: F) -> Self {
        Self { waiting: Duration::from_secs(15), idle: Duration::from_secs(60), is_alive }
    }
}

/// How many heartbeats in a row must fail: on a busy machine, one may be late.
const HEARTBEATS: u32 = 2;

/// When messages passed, in milliseconds since the start.
struct Activity {
    start: Instant,
    /// The first message of the agent since the last one of the daemon.
    asked: AtomicU64,
    answered: AtomicU64,
}

impl Activity {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn asked(&self) {
        if self.asked.load(Ordering::Relaxed) <= self.answered.load(Ordering::Relaxed) {
            self.asked.store(self.now(), Ordering::Relaxed);
        }
    }

    fn answered(&self) {
        self.answered.store(self.now(), Ordering::Relaxed);
    }

    /// The time from which on the daemon has been silent, and whether the agent waits for it.
    fn silence(&self) -> (u64, bool) {
        let (asked, answered) = (self.asked.load(Ordering::Relaxed), self.answered.load(Ordering::Relaxed));
        (asked.max(answered), asked > answered)
    }
}

/// Copies bytes between `input`/`output` and the daemon. `early` came with the handshake.
pub fn pass(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    early: &[u8],
    daemon: UnixStream,
    heartbeat: Heartbeat<impl Fn() -> bool + Send + 'static>,
) -> io::Result<BridgeEnd> {
    let activity =
        Arc::new(Activity { start: Instant::now(), asked: AtomicU64::new(0), answered: AtomicU64::new(0) });
    let silent = Arc::new(AtomicBool::new(false));
    // Dropped at the end of this function, which ends the thread.
    let (_running, ended) = mpsc::sync_channel(0);
    std::thread::Builder::new().name("heartbeat".to_owned()).spawn({
        let (activity, silent, daemon) = (Arc::clone(&activity), Arc::clone(&silent), daemon.try_clone()?);
        move || {
            if watch(&heartbeat, &activity, &ended) {
                silent.store(true, Ordering::Release);
                let _ = daemon.shutdown(Shutdown::Both);
            }
        }
    })?;
    let agent_done = Arc::new(AtomicBool::new(false));
    let mut to_daemon = daemon.try_clone()?;
    // Not joined: it may wait for input that never comes after everything else has ended.
    std::thread::Builder::new().name("input".to_owned()).spawn({
        let (agent_done, activity) = (Arc::clone(&agent_done), Arc::clone(&activity));
        move || {
            let passed = copy(&mut input, &mut to_daemon, || activity.asked());
            // If the daemon stopped reading, the other direction notices.
            if passed.is_ok_and(|reached_end| reached_end) {
                agent_done.store(true, Ordering::Release);
                let _ = to_daemon.shutdown(Shutdown::Write);
            }
        }
    })?;
    let mut from_daemon = early.chain(daemon);
    match copy(&mut from_daemon, &mut output, || activity.answered()) {
        _ if silent.load(Ordering::Acquire) => Ok(BridgeEnd::DaemonSilent),
        Ok(true) if agent_done.load(Ordering::Acquire) => Ok(BridgeEnd::Served),
        Ok(true) => Ok(BridgeEnd::DaemonGone),
        Ok(false) => Ok(BridgeEnd::AgentGone),
        // The kernel reports a killed peer as a reset.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(BridgeEnd::DaemonGone),
        Err(error) => Err(error),
    }
}

/// Waits until the daemon does not run (`true`) or the bridge ends (`false`).
fn watch(heartbeat: &Heartbeat<impl Fn() -> bool>, activity: &Activity, ended: &mpsc::Receiver<()>) -> bool {
    let mut checked = 0;
    loop {
        // Looks often: the agent may begin to wait meanwhile.
        if ended.recv_timeout(heartbeat.waiting / 4) != Err(mpsc::RecvTimeoutError::Timeout) {
            return false;
        }
        let (since, is_waiting) = activity.silence();
        let limit = if is_waiting { heartbeat.waiting } else { heartbeat.idle };
        let silent = Duration::from_millis(activity.now().saturating_sub(since.max(checked)));
        if silent < limit {
            continue;
        }
        let is_dead = (0..HEARTBEATS).all(|_| !(heartbeat.is_alive)());
        // An answer meanwhile is a sign of life, too.
        if is_dead && activity.silence().0 == since {
            return true;
        }
        checked = activity.now();
    }
}

/// Copies until the reader ends (`true`) or the writer accepts no more (`false`).
fn copy(reader: &mut impl Read, writer: &mut impl Write, passed: impl Fn()) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match reader.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        passed();
        if writer.write_all(&chunk[..count]).and_then(|()| writer.flush()).is_err() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive() -> Heartbeat<impl Fn() -> bool + Send + 'static> {
        Heartbeat::new(|| true)
    }

    #[test]
    fn daemon_that_does_not_run_is_reported() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (input, mut agent) = UnixStream::pair().unwrap();
        agent.write_all(b"question").unwrap();
        let instant = Duration::from_millis(1);
        let heartbeat = Heartbeat { waiting: instant, idle: instant, is_alive: || false };
        assert_eq!(pass(input, Vec::new(), b"", ours, heartbeat).unwrap(), BridgeEnd::DaemonSilent);
    }

    #[test]
    fn silent_daemon_that_runs_is_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (sender, asked) = mpsc::sync_channel(0);
        let daemon = std::thread::spawn(move || {
            // Answers after many heartbeats.
            for _ in 0..20 {
                asked.recv().unwrap();
            }
            drop(asked);
            theirs.read_to_string(&mut String::new()).unwrap();
            theirs.write_all(b"answer").unwrap();
        });
        let instant = Duration::from_millis(1);
        let is_alive = move || {
            let _ = sender.send(());
            true
        };
        let heartbeat = Heartbeat { waiting: instant, idle: instant, is_alive };
        let mut output = Vec::new();
        let ended = pass(&b"question"[..], &mut output, b"", ours, heartbeat).unwrap();
        assert_eq!((ended, output.as_slice()), (BridgeEnd::Served, b"answer".as_slice()));
        daemon.join().unwrap();
    }

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
        let ended = pass(&b"question"[..], &mut output, b"early ", ours, alive()).unwrap();
        assert_eq!(ended, BridgeEnd::Served);
        assert_eq!(output, b"early answer");
        assert_eq!(daemon.join().unwrap(), "question");
    }

    #[test]
    fn daemon_that_ends_first_is_reported() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, _open) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(pass(input, Vec::new(), b"", ours, alive()).unwrap(), BridgeEnd::DaemonGone);
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
        assert_eq!(pass(input, Closed, b"", ours, alive()).unwrap(), BridgeEnd::AgentGone);
    }
}
