//! Why a file was not changed. Whichever it is, the file is byte for byte what it was.

use std::io;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the path does not name a file of the workspace: {0}")]
    Path(String),
    #[error("the file is outside the workspace")]
    Outside,
    /// It decides what runs or who may do what: that is for people to change.
    #[error("{0}; edits of it are never made through this tool")]
    Protected(&'static str),
    #[error("there is no such file")]
    NotFound,
    #[error("this is not a regular file")]
    NotAFile,
    #[error("`old_text` is empty, and the file is not")]
    EmptyOldText,
    #[error("`old_text` does not occur in the file")]
    OldTextAbsent,
    /// `lines` are where the first of them begin.
    #[error("`old_text` occurs {count} times in the file")]
    OldTextAmbiguous { count: usize, lines: Vec<u32> },
    #[error("the file is not what `expected_sha256` says")]
    HashMismatch { actual: Option<String> },
    #[error("the file exists, and `expected_sha256` does not say which text is to be overwritten")]
    HashRequired { actual: String },
    /// Someone else own_paths changing it between reading and writing.
    #[error("the file changes all the time")]
    Changing,
    #[error("the file is read-only")]
    ReadOnly,
    #[error("the file is not UTF-8 text")]
    NotText,
    #[error("more than {limit} bytes are no text to edit")]
    TooLarge { limit: u64 },
    #[error("the disk is full")]
    DiskFull,
    #[error("the file cannot be changed: {0}")]
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
