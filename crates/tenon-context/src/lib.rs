//! Document caches: build, verify, inspect, resolve.
//!
//! A compiler and its reader: Markdown in, an immutable folder out, and a resolver that picks documents for a query
//! within a token budget. Same cache, same query, same budget: same bytes, on every machine, whether the cache is
//! read for one answer ([`resolve`]) or held in memory for many ([`Library`]).
//!
//! Architecture invariant: nothing here prints, knows a protocol, or repairs a cache it reads.

mod build;
mod check;
mod corpus;
mod document;
mod error;
mod exchange;
mod folder;
mod inspect;
mod library;
mod list;
mod manifest;
mod postings;
mod query;
mod root;
mod select;
mod sources;
mod staging;
mod stamp;
mod system;
mod words;

pub use build::{Existing, build};
pub use check::{Summary, verify};
pub use corpus::resolve;
pub use document::{Version, document_id};
pub use error::{Code, Error, Violation};
pub use inspect::{Inspection, inspect};
pub use library::Library;
pub use list::{Listed, Listing, list};
pub use query::Query;
pub use root::CacheRoot;
pub use select::{Selected, Selection, Tally, Why};
