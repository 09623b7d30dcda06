//! A program that is spoken to in lines, as clients over pipes do it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A child that answers lines with lines.
pub(super) struct Lines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    answer: String,
}

impl Lines {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped above");
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        Ok(Self { child, stdin, stdout, answer: String::new() })
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        // One write for the whole line: two would be two wake-ups at the other end.
        self.stdin.write_all(format!("{line}\n").as_bytes())
    }

    /// Says a line and waits for the line that answers it.
    pub(super) fn ask(&mut self, line: &str) -> io::Result<()> {
        self.say(line)?;
        self.answer.clear();
        match self.stdout.read_line(&mut self.answer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The handshake of MCP.
    pub(super) fn initialize(&mut self) -> io::Result<()> {
        self.ask(INITIALIZE)?;
        self.say(INITIALIZED)
    }

    /// What the child said last.
    pub(super) fn answer(&self) -> &str {
        &self.answer
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the child's input and waits for its end.
    pub(super) fn end(mut self) -> io::Result<()> {
        drop(self.stdin);
        self.child.wait().map(drop)
    }
}
