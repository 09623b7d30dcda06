//! A child process that answers JSON lines over pipes, as an MCP client sees it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Sends a line, reads a line.
pub(crate) struct JsonLines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    answer: String,
}

impl JsonLines {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped above");
        let stdout = BufReader::new(child.stdout.take().expect("stdout was piped above"));
        Ok(Self { child, stdin, stdout, answer: String::new() })
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        // One write per line: two would wake the other end twice.
        self.stdin.write_all(format!("{line}\n").as_bytes())
    }

    /// Sends a line and reads the line that answers it.
    pub(crate) fn ask(&mut self, line: &str) -> io::Result<()> {
        self.send(line)?;
        self.answer.clear();
        match self.stdout.read_line(&mut self.answer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Performs the MCP handshake.
    pub(crate) fn initialize(&mut self) -> io::Result<()> {
        self.ask(INITIALIZE)?;
        self.send(INITIALIZED)
    }

    /// The last answer.
    pub(crate) fn answer(&self) -> &str {
        &self.answer
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the child's stdin and waits for it to exit.
    pub(crate) fn end(mut self) -> io::Result<()> {
        drop(self.stdin);
        self.child.wait().map(drop)
    }
}
