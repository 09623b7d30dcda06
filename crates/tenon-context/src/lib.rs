//! Text within a token budget: passages of a workspace ([`PassageIndex`]), bundles ([`pack`]) and document caches.
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
mod find;
mod inspect;
mod list;
mod manifest;
mod pack;
mod postings;
mod query;
mod select;
mod sources;
mod staging;
mod system;
mod tokenize;
mod verify;
mod watch;

pub use build::{Existing, build, build_with};
pub use cache_pool::CachePool;
pub use cache_root::CacheRoot;
pub use corpus::resolve;
pub use document::{ContentVersion, document_id};
pub use error::{ContextErrorCode, Error, Violation};
pub use find::{
    ExtraText, ExtraTexts, FindAnswer, FindError, FindRequest, Passage, PassageIndex, PassageKind,
    PassageTotals, Tokenizer,
};
pub use inspect::{Inspection, inspect};
pub use list::{CacheListing, ListedCache, list};
pub use pack::{PackFormat, PackItem, PackPart, PackRequest, pack};
pub use query::Query;
pub use select::{ScoreExplanation, SelectedDocument, Selection, SelectionTotals};
pub use sources::{SourceRules, document_extensions};
pub use verify::{CacheSummary, verify};
pub use watch::{WatchEvent, watch};
