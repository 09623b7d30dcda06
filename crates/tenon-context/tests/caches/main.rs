//! Document caches through the public API: format, validation, replacement and answers.

#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

mod answers;
mod cache_pool;
mod fixture;
mod format;
mod invalid_caches;
mod replacement;
