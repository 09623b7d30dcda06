//! MCP over stdio: JSON lines over the pipes of a child process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::Transport;
use crate::{PATIENCE, processes};

/// How many messages are buffered; a server that sends more is blocked, as with any client.
const CAPACITY: usize = 1024;

pub(super) struct OverPipes {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl OverPipes {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
                panic!("cannot start {}: {error}", command.get_program().to_string_lossy());
            });
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout was piped above");
        Self { child, stdin, lines: read_lines(stdout) }
    }
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(CAPACITY);
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Transport for OverPipes {
    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("nothing is sent after closing");
        let mut line = message.to_string();
        line.push('\n');
        stdin.write_all(line.as_bytes()).expect("the server reads its stdin");
        stdin.flush().expect("the server reads its stdin");
    }

    fn receive(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(message) => Some(message),
                Err(error) => panic!("stdout carries messages only ({error}): {line}"),
            },
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("the server neither responded nor closed its stdout in time")
            }
        }
    }

    fn finish(&mut self) {
        self.stdin = None;
    }

    fn status(&mut self) -> Option<ExitStatus> {
        assert!(
            processes::wait_for_exit(self.child.id(), PATIENCE),
            "the server did not exit after its stdin closed"
        );
        Some(self.child.wait().expect("our own child can be waited for"))
    }
}

impl Drop for OverPipes {
    fn drop(&mut self) {
        self.stdin = None;
        if !processes::wait_for_exit(self.child.id(), PATIENCE) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
