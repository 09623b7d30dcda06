//! The gateway contract, sentence by sentence: each test is named after the section it holds us to. docs/contract.md
//! lists them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

mod boundary;
mod contract;
mod cursors;
mod determinism;
mod discovery;
mod envelope;
mod errors;
mod input;
mod limits;
mod page;
mod snapshots;
mod symbols;
mod time;
mod tools;
mod whole;
