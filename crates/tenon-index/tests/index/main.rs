//! The index of a workspace: updates, the store, questions and searches.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bad_input;
mod determinism;
mod questions;
mod search;
mod store;
mod updates;
mod workspace;
