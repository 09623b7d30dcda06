//! How a connection opens: one line each way, before the bytes that it is about.
//!
//! `{"tenon": 1, "version": …, "build": …, "want": {…}}` from the client, `{"welcome": {…}}` or `{"refused": {…}}` from the
//! daemon. The protocol number changes when either line does in a way that the other side must know of.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::ServerState;
use tenon_lsp::workspace_check::CheckReport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// The number of this protocol.
pub const PROTOCOL: u32 = 1;

/// The longest line, with the names of all files of a large workspace in it.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The longest answer to a request: what all servers say about a large workspace.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How long either side may take for its line.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// The client's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    pub tenon: u32,
    pub version: String,
    pub build: String,
    pub want: ConnectionKind,
}

impl ClientHello {
    pub fn new(want: ConnectionKind) -> Self {
        let build = super::BuildId::current().as_str().to_owned();
        Self { tenon: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), build, want }
    }
}

/// What the rest of the connection is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionKind {
    /// MCP, one message a line, with these surfaces; without a choice, the configured ones.
    Mcp { surfaces: Option<Vec<String>> },
    /// HTTP on a loopback port for as long as the connection lasts.
    Http { port: Option<u16> },
    /// Something about the language servers; one line of answer follows the welcome.
    Servers(DaemonRequest),
    /// Nothing but the answer.
    Status,
    /// The daemon's end. The connection closes when it has ended.
    Stop,
}

/// What a person wants of the daemon's language servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonRequest {
    /// How they are.
    List,
    /// Look for them again, start those that the workspace's files need, and say how they are when they are ready.
    WarmUp,
    /// Show for each language of the workspace that a server answers.
    Prove,
    /// Start those with this id anew, broken ones too.
    Restart { id: String },
    /// What those with this id said last.
    Logs { id: String },
    /// What changes to these files, named by absolute paths, led to.
    EditDiagnostics { files: Vec<Utf8PathBuf>, wait_ms: u64 },
    /// What is wrong with these files, named by absolute paths, with the patience of somebody who waits for all of them.
    Check { files: Vec<Utf8PathBuf>, severities: BTreeSet<Severity>, wait_seconds: u64 },
}

/// How the request went.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonResponse {
    List(Vec<ServerSummary>),
    Proved(Vec<LanguageProbe>),
    Restarted,
    Logs(Vec<String>),
    /// In words for a model; none when there is nothing to say.
    EditDiagnostics(String),
    Checked(CheckReport),
    Failed(String),
}

/// What servers said about the files of one language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageProbe {
    pub language: String,
    /// Where a symbol is defined.
    pub definition: Option<String>,
    /// Something that is wrong.
    pub diagnostic: Option<String>,
}

/// One language server, as `lsp/status` names its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSummary {
    pub id: String,
    pub status: ServerState,
    pub language: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether it runs and has loaded its project.
    pub ready: bool,
}

/// The daemon's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerHello {
    Welcome(DaemonInfo),
    #[serde(rename = "refused")]
    Rejected(HandshakeRejection),
}

/// Who the daemon is and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub version: String,
    pub pid: u32,
    pub root: Utf8PathBuf,
    pub started_at: String,
    /// How many clients are connected, this one included if it stays.
    pub clients: usize,
    /// The surfaces that can be asked for.
    pub surfaces: Vec<String>,
    pub log: Utf8PathBuf,
    /// Where HTTP is served, if it is.
    pub http: Option<String>,
    /// Settings or trust have changed since it started; it goes on without them while clients are connected.
    pub outdated: bool,
}

/// Why the daemon does not do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct HandshakeRejection {
    pub code: RejectionCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionCode {
    /// It is on its way out: connect again.
    Leaving,
    /// It speaks another protocol.
    Protocol,
    /// It does not understand the line.
    Malformed,
    /// It has no such surface.
    Surface,
    /// HTTP cannot be served.
    Http,
}

impl HandshakeRejection {
    pub fn new(code: RejectionCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Writes one line.
pub async fn write_line(writer: &mut (impl AsyncWrite + Unpin), line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    writer.write_all(&bytes).await?;
    writer.flush().await
}

/// Why a line could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadLineError {
    #[error("the other side closed")]
    Closed,
    #[error("no line came in time")]
    Late,
    #[error("the line is too long or no such JSON")]
    Malformed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads one line and nothing after it. What the reader has buffered beyond the line stays there.
pub async fn read_line<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<T, ReadLineError> {
    read(reader, MAX_LINE_BYTES, DEADLINE).await
}

/// The same for the answer to a request, which may take its time and be long.
pub async fn read_answer(
    reader: &mut (impl AsyncBufRead + Unpin),
    patience: Duration,
) -> Result<DaemonResponse, ReadLineError> {
    read(reader, MAX_ANSWER_BYTES, patience).await
}

async fn read<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
    max: usize,
    patience: Duration,
) -> Result<T, ReadLineError> {
    let mut line = Vec::new();
    let gathered = tokio::time::timeout(patience, gather(reader, max, &mut line));
    gathered.await.map_err(|_| ReadLineError::Late)??;
    serde_json::from_slice(&line).map_err(|_| ReadLineError::Malformed)
}

async fn gather(
    reader: &mut (impl AsyncBufRead + Unpin),
    max: usize,
    line: &mut Vec<u8>,
) -> Result<(), ReadLineError> {
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Err(ReadLineError::Closed);
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&available[..newline.unwrap_or(available.len())]);
        let taken = newline.map_or(available.len(), |at| at + 1);
        reader.consume(taken);
        if line.len() > max {
            return Err(ReadLineError::Malformed);
        }
        if newline.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_read_and_the_bytes_after_it_stay() {
        let mut bytes = Vec::new();
        let hello = ClientHello::new(ConnectionKind::Mcp { surfaces: Some(vec!["code".to_owned()]) });
        write_line(&mut bytes, &hello).await.unwrap();
        bytes.extend_from_slice(b"{\"jsonrpc\"");
        let mut reader = tokio::io::BufReader::new(bytes.as_slice());
        assert_eq!(read_line::<ClientHello>(&mut reader).await.unwrap(), hello);
        assert_eq!(reader.buffer(), b"{\"jsonrpc\"");
    }

    #[tokio::test]
    async fn what_is_no_hello_is_refused() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"{}\n", b"\xff\n", &long] {
            let read = read_line::<ClientHello>(&mut tokio::io::BufReader::new(bytes)).await;
            assert!(matches!(read, Err(ReadLineError::Malformed)), "{read:?}");
        }
        let cut = read_line::<ClientHello>(&mut tokio::io::BufReader::new(&b"{\"tenon\""[..])).await;
        assert!(matches!(cut, Err(ReadLineError::Closed)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_is_not_waited_for() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let silent = read_line::<ClientHello>(&mut tokio::io::BufReader::new(ours)).await;
        assert!(matches!(silent, Err(ReadLineError::Late)));
    }
}
