//! Why a file was not changed. In every case the file is unchanged.

use std::io;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("invalid path: {0}")]
    Path(String),
    #[error("the file is outside the workspace")]
    Outside,
    /// It decides what runs or who may do what, so only people change it.
    #[error("{0}; this tool never edits it")]
    Protected(&'static str),
    #[error("file not found")]
    NotFound,
    #[error("not a regular file")]
    NotAFile,
    #[error("`old_text` is empty, and the file is not")]
    EmptyOldText,
    #[error("`old_text` does not occur in the file")]
    OldTextAbsent,
    /// `lines` are the first lines of the first matches.
    #[error("`old_text` occurs {count} times in the file")]
    OldTextAmbiguous { count: usize, lines: Vec<u32> },
    #[error("the file does not match `expected_sha256`")]
    HashMismatch { actual: Option<String> },
    #[error("the file exists; `expected_sha256` is required to overwrite it")]
    HashRequired { actual: String },
    /// Another program kept changing it between our read and write.
    #[error("another program keeps changing the file")]
    Changing,
    #[error("the file is read-only")]
    ReadOnly,
    #[error("the file is not UTF-8 text")]
    NotText,
    #[error("file exceeds {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the disk is full")]
    DiskFull,
    #[error("cannot change the file: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for EditError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => Self::NotAFile,
            _ => Self::Io(error),
        }
    }
}
