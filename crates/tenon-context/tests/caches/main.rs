//! Caches from the outside: what is written, what is refused, what is answered.

#![expect(clippy::unwrap_used, reason = "a test that meets trouble panics")]

mod boundary;
mod fixture;
mod format;
mod library;
mod model;
mod replacing;
