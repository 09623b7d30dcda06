//! The gateway contract (docs/contract.md) where it is about questions and answers: each test is named after its section.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod stage;

mod completeness;
mod cursors;
mod determinism;
mod limits;
mod load;
mod pages;
mod positions;
mod rounds;
mod snapshots;
mod symbols;
mod time;
mod tools;
