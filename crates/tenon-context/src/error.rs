//! What can go wrong, in the words of caches, and the six codes a caller may see.
//!
//! The line between [`Code::CacheInvalid`] and [`Code::IoError`]: a broken rule of the format stays broken however
//! often one looks; a refusal of the operating system may pass. What is found broken wins over what could not be
//! read, because no retry mends it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

/// The six codes of Context Resolve v0. There are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    CacheMissing,
    CacheInvalid,
    InvalidQuery,
    InvalidBudget,
    IoError,
    InternalError,
}

impl Code {
    /// The sentence that goes with the code: the same in every run, free of paths and hashes.
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

/// Why something could not be done. Cheap to clone: one failed load is told to everyone who waited for it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no cache at `{}`", .cache.display())]
    CacheMissing { cache: PathBuf },

    #[error("the cache at `{}` is invalid: {}", .cache.display(), Listed(.violations))]
    CacheInvalid { cache: PathBuf, violations: Arc<[Violation]> },

    #[error("the query has {bytes} bytes, {limit} are allowed")]
    QueryTooLong { bytes: usize, limit: usize },

    #[error("the query is not UTF-8")]
    QueryNotUtf8,

    #[error("the budget is not a whole number from 0 to {}", u64::MAX)]
    BudgetNotANumber,

    #[error("cannot {action} `{}`", .path.display())]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },

    #[error("no folder of sources at `{}`", .sources.display())]
    SourcesMissing { sources: PathBuf },

    #[error("`{}` exists already", .cache.display())]
    TargetExists { cache: PathBuf },

    #[error("`{}` is not a cache and is not replaced", .cache.display())]
    TargetNotACache { cache: PathBuf },

    #[error("`{}` holds the sources and is not replaced", .cache.display())]
    TargetHoldsSources { cache: PathBuf },

    #[error("`{}` is not UTF-8", .source_file.display())]
    SourceNotUtf8 { source_file: PathBuf },

    #[error("the name `{}` is not UTF-8", .source_file.display())]
    NameNotUtf8 { source_file: PathBuf },

    #[error("`{}` and `{}` have one id, `{id}`", .first.display(), .second.display())]
    SameId { id: String, first: PathBuf, second: PathBuf },
}

impl Error {
    /// The code under which a caller hears of this.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::CacheMissing { .. } => Code::CacheMissing,
            Self::CacheInvalid { .. }
            | Self::SourceNotUtf8 { .. }
            | Self::NameNotUtf8 { .. }
            | Self::SameId { .. } => Code::CacheInvalid,
            Self::QueryTooLong { .. } | Self::QueryNotUtf8 => Code::InvalidQuery,
            Self::BudgetNotANumber => Code::InvalidBudget,
            Self::Io { .. }
            | Self::SourcesMissing { .. }
            | Self::TargetExists { .. }
            | Self::TargetNotACache { .. }
            | Self::TargetHoldsSources { .. } => Code::IoError,
        }
    }

    /// Wraps a refusal of the operating system: `cannot {action} {path}`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.as_ref().to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn invalid(cache: &Path, violations: Vec<Violation>) -> Self {
        Self::CacheInvalid { cache: cache.to_owned(), violations: violations.into() }
    }
}

/// A rule of the format that a cache breaks. `file` is relative to the cache folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("`{file}` is missing")]
    Missing { file: String },
    #[error("`{file}` is not a regular file")]
    NotAFile { file: String },
    #[error("`{file}` is not a folder")]
    NotAFolder { file: String },
    #[error("`{file}` leaves the cache folder")]
    Outside { file: String },
    #[error("`{file}` is not a file directly below `documents`")]
    Misplaced { file: String },
    #[error("`{file}` is malformed: {reason}")]
    Malformed { file: String, reason: String },
    #[error("version `{version}` with `{hash_algorithm}` is not supported")]
    Unsupported { version: String, hash_algorithm: String },
    #[error("`manifest.json` counts {stated} documents and lists {listed}")]
    WrongCount { stated: u64, listed: usize },
    #[error("`manifest.json` does not list `{id}` in byte order of the ids")]
    OutOfOrder { id: String },
    #[error("`cache_version` is not the hash of the documents listed")]
    WrongCacheVersion,
    #[error("`index.json` and `manifest.json` differ")]
    IndexDiffers,
    #[error("`{file}` holds another document than `{id}`")]
    WrongDocument { file: String, id: String },
    #[error("`{file}` differs from its hash")]
    WrongHash { file: String },
    #[error("`{file}` is not listed in `manifest.json`")]
    Unlisted { file: String },
}

/// The first violation, and how many more there are.
struct Listed<'a>(&'a [Violation]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("for no reason given"),
            [only] => only.fmt(f),
            [first, rest @ ..] => write!(f, "{first}, and {} more", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spelled_as_the_schema_spells_them() {
        let codes = [
            (Code::CacheMissing, r#""cache_missing""#),
            (Code::CacheInvalid, r#""cache_invalid""#),
            (Code::InvalidQuery, r#""invalid_query""#),
            (Code::InvalidBudget, r#""invalid_budget""#),
            (Code::IoError, r#""io_error""#),
            (Code::InternalError, r#""internal_error""#),
        ];
        for (code, spelled) in codes {
            assert_eq!(serde_json::to_string(&code).unwrap(), spelled);
        }
    }

    #[test]
    fn an_invalid_cache_names_its_first_violation_and_counts_the_rest() {
        let missing = |file: &str| Violation::Missing { file: file.into() };
        let error = |violations| Error::invalid(Path::new("c"), violations).to_string();
        assert_eq!(
            error(vec![missing("index.json")]),
            "the cache at `c` is invalid: `index.json` is missing"
        );
        assert_eq!(
            error(vec![missing("a"), missing("b"), missing("c")]),
            "the cache at `c` is invalid: `a` is missing, and 2 more"
        );
    }
}
