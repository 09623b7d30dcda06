//! What can go wrong with a database, told apart by what one can do about it.

use std::path::PathBuf;

use super::Misplaced;

/// A failure of the store itself, never of what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("other writers hold the store")]
    Busy,
    #[error("the disk is full")]
    Full,
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
    Misplaced(#[from] Misplaced),
    #[error("the URL of the store has an unknown parameter `{0}`")]
    Parameter(String),
    #[error("the URL of the store asks for TLS, which this build does not speak")]
    Tls,
    #[error("cannot open the store")]
    Open(#[source] sqlx::Error),
    #[error("the database refused a statement")]
    Database(#[source] sqlx::Error),
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
        matches!(self, Self::Busy | Self::Full)
    }

    /// What a person or an agent can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy => Some("try the same call again"),
            Self::Full => Some("make room on the disk, then try the same call again"),
            Self::NewerSchema { .. } => Some("upgrade tenon, or use the version that wrote this store"),
            Self::Damaged(_) => Some("run `tenon store check`; import the last export into a new store"),
            Self::WorkspaceExists(_) => Some("import into a store that does not have it"),
            Self::Misplaced(_) => {
                Some("give the absolute path of an SQLite file, or a URL that begins with `postgres://`")
            }
            Self::Parameter(_) => Some("remove it; docs/work.md lists those there are"),
            Self::Tls => {
                Some("remove what asks for it, and reach the server through a tunnel or a private network")
            }
            Self::Open(_) => Some("check the `store` setting, and that the file or server can be reached"),
            Self::Folder { .. } => Some("check the `store` setting, and who may write there"),
            Self::Database(_) => Some("`tenon store check` looks for what is wrong; the log has more"),
            Self::Import { .. } | Self::Stream(_) => None,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy,
            sqlx::Error::Database(fault) => match fault.code().as_deref().map(classify) {
                Some(Class::Busy) => Self::Busy,
                Some(Class::Full) => Self::Full,
                Some(Class::Damaged) => Self::Damaged(fault.message().to_owned()),
                Some(Class::Other) | None => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

enum Class {
    Busy,
    Full,
    Damaged,
    Other,
}

/// SQLite codes are decimal numbers whose low byte is the primary code; PostgreSQL's have five characters, so
/// no code of one reads as a code of the other that matters here.
fn classify(code: &str) -> Class {
    match code {
        // Serialisation, deadlock, lock not available, too many connections, starting up or shutting down.
        "40001" | "40P01" | "55P03" | "53300" | "57P01" | "57P02" | "57P03" => return Class::Busy,
        "53100" => return Class::Full,
        "XX001" | "XX002" => return Class::Damaged,
        _ if code.len() == 5 => return Class::Other,
        _ => {}
    }
    match code.parse::<i32>().map(|code| code & 0xff) {
        Ok(5 | 6) => Class::Busy,
        Ok(13) => Class::Full,
        Ok(11 | 26) => Class::Damaged,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_engines_are_told_apart() {
        for busy in ["5", "261", "517", "6", "40001", "55P03"] {
            assert!(matches!(classify(busy), Class::Busy), "{busy}");
        }
        assert!(matches!(classify("13"), Class::Full));
        assert!(matches!(classify("53100"), Class::Full));
        assert!(matches!(classify("779"), Class::Damaged));
        // 23505 is a unique violation; its low byte must not be taken for a code of SQLite.
        assert!(matches!(classify("23505"), Class::Other));
        assert!(matches!(classify("1555"), Class::Other));
    }
}
