//! Why a query about code failed.
//!
//! No error contains a path outside the roots, or a server's message, which may reveal one.

use tenon_contract::cursor::CursorError;
use tenon_contract::position::PositionError;
use tenon_contract::root::{GateError, ReadError};
use tenon_contract::snapshot::SnapshotTooLarge;
use tenon_lsp::ServerId;
use tenon_lsp::orchestrator::AskError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    #[error("the query is blank")]
    BlankQuery,
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("the cursor has expired; start again without a cursor")]
    CursorExpired,
    #[error(transparent)]
    Snapshot(#[from] SnapshotTooLarge),
    #[error("cannot open the document: {0}")]
    Unreadable(Unreadable),
    #[error(transparent)]
    Position(#[from] PositionError),
    #[error("there are more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    /// `fits` is the page size that would fit, if any.
    #[error("the answer is longer than {limit} bytes")]
    ResponseTooLarge { limit: usize, fits: Option<usize> },
    #[error("the answer was not ready in time; try again")]
    Timeout,
    #[error("{} still loading the workspace; try again", named(servers))]
    Indexing { servers: Vec<ServerId>, progress: Option<IndexingProgress> },
    #[error("the language server `{server}` truncated its answer")]
    ServerLimit { server: ServerId },
    #[error("the answer of the language server `{server}` exceeds {limit} bytes")]
    AnswerTooLarge { server: ServerId, limit: usize },
    #[error("no language server supports this query for such files")]
    NoProvider,
    #[error("the language server `{server}` {failure}")]
    Provider { server: ServerId, failure: ProviderFailure },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("internal error")]
    Internal,
}

/// How far the check of the workspace is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexingProgress {
    pub done: u64,
    pub total: u64,
    /// The first few files without a result, relative to the workspace.
    pub pending: Vec<String>,
}

/// `pyright is`, `clangd and pyright are`.
fn named(servers: &[ServerId]) -> String {
    let names: Vec<&str> = servers.iter().map(ServerId::as_str).collect();
    match names.as_slice() {
        [] => "language servers are".to_owned(),
        [one] => format!("{one} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    }
}

/// Why a document cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it no longer exists")]
    Gone,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("it cannot be read")]
    Unreadable,
}

/// Why a server cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    #[error("has exited; run `tenon servers restart {0}`")]
    Broken(ServerId),
    #[error("returned an error")]
    Refused,
    #[error("does not support `{0}` in a path")]
    UnsupportedPath(char),
    /// With the file, relative to the workspace.
    #[error("cannot read `{0}`, and rejects every file for that reason")]
    Rejected(String),
    /// Not installed, or not allowed to run.
    #[error("is not available: {0}")]
    Unavailable(String),
}

impl From<ReadError> for CodeError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(match error {
            ReadError::Denied => return GateError::Denied.into(),
            ReadError::Gone => Unreadable::Gone,
            ReadError::NotAFile => Unreadable::NotAFile,
            ReadError::TooLarge { limit } => Unreadable::TooLarge { limit },
            ReadError::NotUtf8 => Unreadable::NotText,
            ReadError::Io(_) => Unreadable::Unreadable,
        })
    }
}

impl From<AskError> for CodeError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unreadable(error) => error.into(),
            AskError::Position(error) => error.into(),
        }
    }
}
