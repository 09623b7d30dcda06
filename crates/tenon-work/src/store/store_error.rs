//! Errors of the store, distinguished by what to do about them.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use super::StoreLocationError;

/// What an backend says went wrong.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of the store itself, not of a request.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store is locked by other writers")]
    Busy,
    #[error("the disk is full")]
    Full,
    /// Nothing of the call was stored.
    #[error("cannot reach the database server")]
    Unreachable(#[source] Cause),
    #[error("the connection broke during the commit: the change may or may not be stored")]
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
    #[error("the URL of the store has certificates, but its `sslmode` does not require TLS")]
    TlsMode,
    #[error("cannot establish TLS to the database server")]
    Tls(#[source] Cause),
    #[error("cannot open the store")]
    Open(#[source] Cause),
    #[error("the database rejected a statement")]
    Database(#[source] Cause),
    #[error("the store is closed")]
    Closed,
    #[error("the store file was moved, deleted or replaced while it was open")]
    Displaced,
    #[error("line {line} of the import: {problem}")]
    Import { line: usize, problem: String },
    #[error("workspace `{0}` already exists")]
    WorkspaceExists(String),
    #[error("cannot read or write the stream")]
    Stream(#[from] std::io::Error),
}

impl StoreError {
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// Whether the same call may succeed later without manual repair.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::Unreachable(_))
    }

    /// What a person or an agent can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy => Some("try the same call again"),
            Self::Full => Some("make room on the disk, then try the same call again"),
            Self::Unreachable(_) => {
                Some("check that the database server is running, then try the same call again")
            }
            Self::Unknown(_) => Some("check whether the change is stored before you repeat the call"),
            Self::NewerSchema { .. } => Some("upgrade tenon, or use the version that wrote this store"),
            Self::Damaged(_) => Some("run `tenon store check`; import the last export into a new store"),
            Self::WorkspaceExists(_) => Some("import into a store without this workspace"),
            Self::StoreLocationError(_) => {
                Some("give the absolute path of an SQLite file, or a URL that begins with `postgres://`")
            }
            Self::Parameter(_) => Some("remove it; docs/work.md lists the supported parameters"),
            Self::TlsMode => Some("add `sslmode=verify-full`, or remove the certificates"),
            Self::Tls(_) => Some("check `sslmode`, `sslrootcert`, and the name in the server's certificate"),
            Self::Open(_) => Some("check the `store` setting, and that the file or server can be reached"),
            Self::Folder { .. } => Some("check the `store` setting and the permissions of the folder"),
            Self::Database(_) => Some("run `tenon store check`; the log has more"),
            Self::Displaced => Some("restore the file, or stop the daemon with `tenon stop`"),
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
            // No room for the index of the write-ahead log.
            _ if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Database(error.into()),
        }
    }
}

impl StoreError {
    /// The error of a failed commit. If the connection broke, the commit may have succeeded.
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
            sqlx::Error::Tls(_) => Self::Tls(error.into()),
            // The handshake failed, for example because of the server's certificate.
            sqlx::Error::Io(cause) if cause.kind() == std::io::ErrorKind::InvalidData => {
                Self::Tls(error.into())
            }
            sqlx::Error::Io(_) => Self::Unreachable(error.into()),
            sqlx::Error::Database(fault) => match fault.code().as_deref() {
                // Serialisation, deadlock, lock not available, too many connections.
                Some("40001" | "40P01" | "55P03" | "53300") => Self::Busy,
                // Shutting down, crashing or starting up.
                Some("57P01" | "57P02" | "57P03") => Self::Unreachable(error.into()),
                Some("53100") => Self::Full,
                Some("XX001" | "XX002") => Self::Damaged(fault.message().to_owned()),
                _ => Self::Database(error.into()),
            },
            _ => Self::Database(error.into()),
        }
    }
}
