//! The handshake between client and daemon (one line each way), and the requests that a client can send.
//!
//! `{"tenon": 1, "version": …, "build": …, "want": {…}}` from the client, `{"welcome": {…}}` or `{"refused": {…}}` from the
//! daemon. The protocol number changes with every incompatible change of either line.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenon_code::explore::ExploreRequest;
use tenon_context::{FindRequest, PackRequest};
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::ServerState;
use tenon_lsp::workspace_check::CheckReport;
use tenon_work::{Check, CheckResult};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use super::client_settings::ClientSettings;

/// The version of this protocol.
pub(crate) const PROTOCOL: u32 = 1;

/// The longest line; it may name all files of a large workspace.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The longest response: the diagnostics of a large workspace.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How long either side may take to send its line.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// The client's line of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    pub tenon: u32,
    pub version: String,
    pub build: String,
    pub want: ConnectionKind,
    /// The settings that the client's environment and flags make.
    #[serde(default)]
    pub settings: ClientSettings,
}

impl ClientHello {
    /// For a client to which settings do not matter.
    pub fn new(want: ConnectionKind) -> Self {
        Self::with_settings(want, ClientSettings::default())
    }

    pub fn with_settings(want: ConnectionKind, settings: ClientSettings) -> Self {
        let build = super::BuildId::current().as_str().to_owned();
        Self { tenon: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned(), build, want, settings }
    }
}

/// What the connection is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionKind {
    /// MCP, one message per line, with these surfaces; `None` for the configured ones.
    Mcp { surfaces: Option<Vec<String>> },
    /// HTTP on a loopback port while the connection is open.
    Http { port: Option<u16> },
    /// The web console: serves it until the daemon exits, and answers with a link that signs a browser in.
    Console,
    /// A request about language servers; one line of response follows the handshake.
    Servers(DaemonRequest),
    /// Only the handshake.
    Status,
    /// Only the handshake, without a look at the disk: shows that the daemon runs. An older one rejects it, which shows it too.
    Ping,
    /// Stops the daemon. The connection closes when it has ended.
    Stop,
}

impl ConnectionKind {
    /// Whether the answer depends on settings. The others are about the daemon as it is.
    pub(crate) fn needs_settings(&self) -> bool {
        match self {
            Self::Mcp { .. } | Self::Http { .. } | Self::Console => true,
            Self::Servers(request) => !matches!(
                request,
                DaemonRequest::List | DaemonRequest::Restart { .. } | DaemonRequest::Logs { .. }
            ),
            Self::Status | Self::Ping | Self::Stop => false,
        }
    }
}

/// A request about the daemon's language servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonRequest {
    /// Their status.
    List,
    /// Finds them again, starts those that the workspace's files need, and responds with their status once they are ready.
    WarmUp,
    /// Checks for each language of the workspace that a server answers.
    #[serde(rename = "prove")]
    Probe,
    /// Restarts the servers with this id, broken ones included.
    Restart { id: String },
    /// The last log lines of the servers with this id.
    Logs { id: String },
    /// The diagnostics that changes to these files caused.
    EditDiagnostics { files: EditedFiles, wait_ms: u64 },
    /// The diagnostics that changes by any program since the last report caused. With `only_new`, nothing unless some are new.
    ChangeDiagnostics { wait_ms: u64, only_new: bool },
    /// The diagnostics of these files (absolute paths), waiting for all of them.
    Check { files: Vec<Utf8PathBuf>, severities: BTreeSet<Severity>, wait_seconds: u64 },
    /// Runs the checks of steps that a person closes.
    StepChecks(Vec<Check>),
    /// A question by symbol name.
    Explore(ExploreRequest),
    /// Passages that answer a question, as text or JSON.
    Ask { request: FindRequest, json: bool },
    /// A bounded bundle for an agent.
    Pack(PackRequest),
    /// The diagnostics that are new since a revision of the repository, waiting for all of them.
    CheckNew { since: String, severities: BTreeSet<Severity>, wait_seconds: u64 },
}

impl DaemonRequest {
    /// Whether the syntax index answers it, without a language server.
    pub(crate) fn asks_by_name(&self) -> bool {
        matches!(self, Self::Explore(_) | Self::Ask { .. } | Self::Pack(_))
    }
}

/// Files that an agent edited, as absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedFiles {
    pub files: Vec<Utf8PathBuf>,
    /// Those of them that the agent says are new.
    #[serde(default)]
    pub created: Vec<Utf8PathBuf>,
}

/// The response to a [`DaemonRequest`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonResponse {
    List(Vec<ServerSummary>),
    #[serde(rename = "proved")]
    Probed(Vec<LanguageProbe>),
    Restarted,
    Logs(Vec<String>),
    /// Text for a model; empty when there is nothing to report.
    EditDiagnostics(String),
    Checked(CheckReport),
    StepChecks(Vec<CheckResult>),
    /// The answer to a question by symbol name.
    Explored(String),
    /// Why there is no answer to it.
    NotExplored(String),
    Failed(String),
}

/// What the servers answered for the files of one language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageProbe {
    pub language: String,
    /// The most used symbol, with the number of references.
    pub symbol: Option<String>,
    /// A diagnostic.
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
    /// Whether it is running and has loaded its project.
    pub ready: bool,
}

/// The daemon's line of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerHello {
    Welcome(DaemonInfo),
    #[serde(rename = "refused")]
    Rejected(HandshakeRejection),
}

/// Identity and state of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub version: String,
    pub pid: u32,
    pub root: Utf8PathBuf,
    pub started_at: String,
    /// The number of connected clients, this one included if it stays.
    pub clients: usize,
    /// The available surfaces.
    pub surfaces: Vec<String>,
    pub log: Utf8PathBuf,
    /// The HTTP address, if HTTP is served.
    pub http: Option<String>,
    /// A link that signs a browser in to the console, once; only if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Settings or trust have changed since it started; they take effect once no client is connected.
    pub outdated: bool,
    /// Settings of the client that change no answer and take effect when the daemon starts again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred_settings: Vec<String>,
}

/// Why the daemon rejected the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct HandshakeRejection {
    pub code: RejectionCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionCode {
    /// The daemon is exiting: connect again.
    Leaving,
    /// It uses another protocol version.
    Protocol,
    /// It cannot parse the line.
    Malformed,
    /// The surface does not exist.
    Surface,
    /// HTTP cannot be served.
    Http,
    /// It does not have settings that the client makes, and other clients are connected.
    Settings,
}

impl HandshakeRejection {
    pub(crate) fn new(code: RejectionCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Writes one line.
pub(crate) async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin),
    line: &impl Serialize,
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    writer.write_all(&bytes).await?;
    writer.flush().await
}

/// Why a line could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadLineError {
    #[error("the peer closed the connection")]
    Closed,
    #[error("no line within the time limit")]
    Late,
    #[error("the line is too long or is not valid JSON")]
    Malformed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads one line and nothing after it. What the reader has buffered beyond it stays in the buffer.
pub(crate) async fn read_line<T: DeserializeOwned>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<T, ReadLineError> {
    read(reader, MAX_LINE_BYTES, DEADLINE).await
}

/// As [`read_line`] for a response, which may be long and take long.
pub(crate) async fn read_answer(
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
    async fn bytes_after_the_line_stay_buffered() {
        let mut bytes = Vec::new();
        let hello = ClientHello::new(ConnectionKind::Mcp { surfaces: Some(vec!["code".to_owned()]) });
        write_line(&mut bytes, &hello).await.unwrap();
        bytes.extend_from_slice(b"{\"jsonrpc\"");
        let mut reader = tokio::io::BufReader::new(bytes.as_slice());
        assert_eq!(read_line::<ClientHello>(&mut reader).await.unwrap(), hello);
        assert_eq!(reader.buffer(), b"{\"jsonrpc\"");
    }

    #[tokio::test]
    async fn invalid_hello_is_rejected() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"{}\n", b"\xff\n", &long] {
            let read = read_line::<ClientHello>(&mut tokio::io::BufReader::new(bytes)).await;
            assert!(matches!(read, Err(ReadLineError::Malformed)), "{read:?}");
        }
        let cut = read_line::<ClientHello>(&mut tokio::io::BufReader::new(&b"{\"tenon\""[..])).await;
        assert!(matches!(cut, Err(ReadLineError::Closed)));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_peer_times_out() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let silent = read_line::<ClientHello>(&mut tokio::io::BufReader::new(ours)).await;
        assert!(matches!(silent, Err(ReadLineError::Late)));
    }
}
