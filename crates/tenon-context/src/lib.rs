//! Document caches: build, verify, inspect, resolve.
//!
//! [`build`] compiles Markdown files into an immutable folder; [`resolve`] picks documents from it for a query within a
//! token budget. The same cache, query and budget give the same bytes on every machine, whether the cache is read for
//! one answer ([`resolve`]) or stays in memory for many ([`CachePool`]).
//!
//! Architecture invariant: this crate does not print, knows no protocol, and never repairs the content of a cache.

mod atomic_rename;
mod build;
mod cache_folder;
mod cache_pool;
mod cache_root;
mod corpus;
mod document;
mod error;
mod file_stamp;
mod inspect;
mod list;
mod manifest;
mod postings;
mod query;
mod select;
mod sources;
mod staging;
mod system;
mod tokenize;
mod verify;

pub use build::{Existing, build};
pub use cache_pool::CachePool;
pub use cache_root::CacheRoot;
pub use corpus::resolve;
pub use document::{ContentVersion, document_id};
pub use error::{ContextErrorCode, Error, Violation};
pub use inspect::{Inspection, inspect};
pub use list::{CacheListing, ListedCache, list};
pub use query::Query;
pub use select::{ScoreExplanation, SelectedDocument, Selection, SelectionTotals};
pub use verify::{CacheSummary, verify};
