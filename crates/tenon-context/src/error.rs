//! The errors of document caches, and the six codes that a client may see.
//!
//! [`ContextErrorCode::CacheInvalid`] means that the cache violates the format, so a retry does not help. [`ContextErrorCode::IoError`] means
//! that the operating system returned an error, so a retry may help. If both apply, the violation is reported.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

/// The six error codes of Context Resolve v0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextErrorCode {
    CacheMissing,
    CacheInvalid,
    InvalidQuery,
    InvalidBudget,
    IoError,
    InternalError,
}

impl ContextErrorCode {
    /// The fixed message of the code, without paths or hashes.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::CacheMissing => "Cache does not exist",
            Self::CacheInvalid => "Cache exists but is invalid",
            Self::InvalidQuery => "Query is invalid",
            Self::InvalidBudget => "Budget is invalid",
            Self::IoError => "I/O error occurred",
            Self::InternalError => "Internal error",
        }
    }
}

/// Why an operation failed. Cheap to clone, since all callers that share a load receive the same error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no cache at `{}`", .cache.display())]
    CacheMissing { cache: PathBuf },

    #[error("cache `{}` is invalid: {}", .cache.display(), FirstOf(.violations))]
    CacheInvalid { cache: PathBuf, violations: Arc<[Violation]> },

    #[error("query has {bytes} bytes; the limit is {limit}")]
    QueryTooLong { bytes: usize, limit: usize },

    #[error("query is not valid UTF-8")]
    QueryNotUtf8,

    #[error("budget is not an integer from 0 to {}", u64::MAX)]
    BudgetNotANumber,

    #[error("cannot {action} `{}`", .path.display())]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },

    #[error("source folder `{}` does not exist", .sources.display())]
    SourcesMissing { sources: PathBuf },

    #[error("`{}` already exists", .cache.display())]
    TargetExists { cache: PathBuf },

    #[error("`{}` is not a cache and will not be replaced", .cache.display())]
    TargetNotACache { cache: PathBuf },

    #[error("`{}` contains the sources and will not be replaced", .cache.display())]
    TargetHoldsSources { cache: PathBuf },

    #[error("`{}` is not valid UTF-8", .source_file.display())]
    SourceNotUtf8 { source_file: PathBuf },

    #[error("file name `{}` is not valid UTF-8", .source_file.display())]
    NameNotUtf8 { source_file: PathBuf },

    #[error("`{}` and `{}` have the same id `{id}`", .first.display(), .second.display())]
    SameId { id: String, first: PathBuf, second: PathBuf },
}

impl Error {
    /// The code for clients.
    #[must_use]
    pub fn code(&self) -> ContextErrorCode {
        match self {
            Self::CacheMissing { .. } => ContextErrorCode::CacheMissing,
            Self::CacheInvalid { .. }
            | Self::SourceNotUtf8 { .. }
            | Self::NameNotUtf8 { .. }
            | Self::SameId { .. } => ContextErrorCode::CacheInvalid,
            Self::QueryTooLong { .. } | Self::QueryNotUtf8 => ContextErrorCode::InvalidQuery,
            Self::BudgetNotANumber => ContextErrorCode::InvalidBudget,
            Self::Io { .. }
            | Self::SourcesMissing { .. }
            | Self::TargetExists { .. }
            | Self::TargetNotACache { .. }
            | Self::TargetHoldsSources { .. } => ContextErrorCode::IoError,
        }
    }

    /// Wraps an error of the operating system: `cannot {action} {path}`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.as_ref().to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn invalid(cache: &Path, violations: Vec<Violation>) -> Self {
        Self::CacheInvalid { cache: cache.to_owned(), violations: violations.into() }
    }
}

/// A violated rule of the cache format. `file` is relative to the cache folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("`{file}` is missing")]
    Missing { file: String },
    #[error("`{file}` is not a regular file")]
    NotAFile { file: String },
    #[error("`{file}` is not a folder")]
    NotAFolder { file: String },
    #[error("`{file}` leads outside the cache folder")]
    Outside { file: String },
    #[error("`{file}` is not a file directly below `documents`")]
    Misplaced { file: String },
    #[error("`{file}` is malformed: {reason}")]
    Malformed { file: String, reason: String },
    #[error("version `{version}` with `{hash_algorithm}` is not supported")]
    Unsupported { version: String, hash_algorithm: String },
    #[error("`manifest.json` states {stated} documents but lists {listed}")]
    WrongCount { stated: u64, listed: usize },
    #[error("`{id}` is out of byte order in `manifest.json`")]
    OutOfOrder { id: String },
    #[error("`cache_version` does not match the listed documents")]
    WrongCacheVersion,
    #[error("`index.json` and `manifest.json` differ")]
    IndexDiffers,
    #[error("`{file}` does not contain document `{id}`")]
    WrongDocument { file: String, id: String },
    #[error("`{file}` does not match its hash")]
    WrongHash { file: String },
    #[error("`{file}` is not listed in `manifest.json`")]
    Unlisted { file: String },
}

/// The first violation and the number of others.
struct FirstOf<'a>(&'a [Violation]);

impl fmt::Display for FirstOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("unknown reason"),
            [only] => only.fmt(f),
            [first, rest @ ..] => write!(f, "{first}, and {} more", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spelled_as_in_the_schema() {
        let codes = [
            (ContextErrorCode::CacheMissing, r#""cache_missing""#),
            (ContextErrorCode::CacheInvalid, r#""cache_invalid""#),
            (ContextErrorCode::InvalidQuery, r#""invalid_query""#),
            (ContextErrorCode::InvalidBudget, r#""invalid_budget""#),
            (ContextErrorCode::IoError, r#""io_error""#),
            (ContextErrorCode::InternalError, r#""internal_error""#),
        ];
        for (code, spelled) in codes {
            assert_eq!(serde_json::to_string(&code).unwrap(), spelled);
        }
    }

    #[test]
    fn invalid_cache_names_the_first_violation_and_counts_the_rest() {
        let missing = |file: &str| Violation::Missing { file: file.into() };
        let error = |violations| Error::invalid(Path::new("c"), violations).to_string();
        assert_eq!(error(vec![missing("index.json")]), "cache `c` is invalid: `index.json` is missing");
        assert_eq!(
            error(vec![missing("a"), missing("b"), missing("c")]),
            "cache `c` is invalid: `a` is missing, and 2 more"
        );
    }
}
