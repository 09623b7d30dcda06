//! The gateway contract (docs/contract.md) where it is about the wire: each test is named after its section.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod stage;

mod boundary;
mod contract;
mod discovery;
mod envelope;
mod errors;
mod input;
mod sizes;
