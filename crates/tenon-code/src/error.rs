//! What can go wrong with a question about code, in words of the domain.
//!
//! Nothing here carries a path or a server's own words: both may name what lies outside the roots.

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
    #[error("the result that the cursor pages through is gone; start again without a cursor")]
    CursorExpired,
    #[error(transparent)]
    Snapshot(#[from] SnapshotTooLarge),
    #[error("the document cannot be opened: {0}")]
    Unreadable(Unreadable),
    #[error(transparent)]
    Position(#[from] PositionError),
    #[error("there are more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    /// `fits` is the page size that would fit, where one does.
    #[error("the answer is longer than {limit} bytes")]
    ResponseTooLarge { limit: usize, fits: Option<usize> },
    #[error("the answer was not ready in time; ask again")]
    Timeout,
    /// `progress` is what is done of how much, where that is known.
    #[error("language servers are still reading the workspace; ask again")]
    Indexing { servers: Vec<ServerId>, progress: Option<(u64, u64)> },
    #[error("the language server `{server}` cut its answer short")]
    ServerLimit { server: ServerId },
    #[error("no language server answers this question for such files")]
    NoProvider,
    #[error("the language server `{server}` {failure}")]
    Provider { server: ServerId, failure: ProviderFailure },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("internal error")]
    Internal,
}

/// Why a document cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it is no longer there")]
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

/// What keeps a server from answering.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    #[error("has ended; `tenon servers restart {0}` starts it again")]
    Broken(ServerId),
    #[error("refused the request")]
    Refused,
    /// Nobody knows when it has read the workspace.
    #[error("never tells whether it has read the workspace, so that no list of its can be called whole")]
    Unproven,
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
