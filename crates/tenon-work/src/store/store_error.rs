//! What can go wrong with a database, told apart by what one can do about it.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use super::StoreLocationError;

/// What an backend says went wrong.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the store itself, never of what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("other writers hold the store")]
    Busy,
    #[error("the disk is full")]
    Full,
    /// Nothing of the call was stored.
    #[error("the server of the store cannot be reached")]
    Unreachable(#[source] Cause),
    #[error("the connection broke at the end of the call: it is not known whether it was stored")]
    Unknown(#[source] Cause),
    #[error("the store has schema {found}, this program knows {known}")]
    NewerSchema { found: i64, known: i64 },
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("cannot make the folder `{path}`")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    StoreLocationError(#[from] StoreLocationError),
    #[error("the URL of the store has an unknown parameter `{0}`")]
    Parameter(String),
    #[error("the URL of the store asks for TLS, which this build does not speak")]
    Tls,
    #[error("cannot open the store")]
    Open(#[source] Cause),
    #[error("the database refused a statement")]
    Database(#[source] Cause),
    #[error("the store is closed")]
    Closed,
    #[error("the file of the store was moved, deleted or replaced while it was open")]
    Displaced,
    #[error("line {line} of the import: {problem}")]
    Import { line: usize, problem: String },
    #[error("the workspace `{0}` is already there")]
    WorkspaceExists(String),
    #[error("cannot read or write the stream")]
    Stream(#[from] std::io::Error),
}

impl StoreError {
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Whether the same call may succeed later without anything being mended by hand.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::Unreachable(_))
    }

    /// What a person or an agent can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy => Some("try the same call again"),
            Self::Full => Some("make room on the disk, then try the same call again"),
            Self::Unreachable(_) => Some("see that the database server runs, then try the same call again"),
            Self::Unknown(_) => Some("look whether it is there before you repeat it"),
            Self::NewerSchema { .. } => Some("upgrade tenon, or use the version that wrote this store"),
            Self::Damaged(_) => Some("run `tenon store check`; import the last export into a new store"),
            Self::WorkspaceExists(_) => Some("import into a store that does not have it"),
            Self::StoreLocationError(_) => {
                Some("give the absolute path of an SQLite file, or a URL that begins with `postgres://`")
            }
            Self::Parameter(_) => Some("remove it; docs/work.md lists those there are"),
            Self::Tls => {
                Some("remove what asks for it, and reach the server through a tunnel or a private network")
            }
            Self::Open(_) => Some("check the `store` setting, and that the file or server can be reached"),
            Self::Folder { .. } => Some("check the `store` setting, and who may write there"),
            Self::Database(_) => Some("`tenon store check` looks for what is wrong; the log has more"),
            Self::Displaced => Some("put the file back, or start anew: `tenon stop` ends the daemon"),
            Self::Closed | Self::Import { .. } | Self::Stream(_) => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let extended = error.sqlite_error().map(|fault| fault.extended_code);
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            // There is no room for the index of the log.
            _ if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Database(error.into()),
        }
    }
}

impl StoreError {
    /// What it means that a commit failed. Told by the server, it is as good as any other answer; by the connection, it may
    /// have been done all the same.
    pub(super) fn of_commit(error: sqlx::Error) -> Self {
        match Self::from(error) {
            Self::Unreachable(cause) => Self::Unknown(cause),
            other => other,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy,
            sqlx::Error::PoolClosed => Self::Closed,
            sqlx::Error::Io(_) => Self::Unreachable(error.into()),
            sqlx::Error::Database(fault) => match fault.code().as_deref() {
                // Serialisation, deadlock, lock not available, too many connections.
                Some("40001" | "40P01" | "55P03" | "53300") => Self::Busy,
                // Shutting down, in good order or not, or starting up.
                Some("57P01" | "57P02" | "57P03") => Self::Unreachable(error.into()),
                Some("53100") => Self::Full,
                Some("XX001" | "XX002") => Self::Damaged(fault.message().to_owned()),
                _ => Self::Database(error.into()),
            },
            _ => Self::Database(error.into()),
        }
    }
}
