//! The engine against the fake language server, misbehaving services and pipes in memory.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod dependents;
mod faults;
mod freshness;
mod lifecycle;
mod navigation;
mod protocol;
mod service;
mod support;
mod texts;
mod transport;
mod watch;
