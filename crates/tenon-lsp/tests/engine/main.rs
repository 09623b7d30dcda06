//! The engine against the fake language server, misbehaving services and pipes in memory.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod change;
mod check_batches;
mod declarations;
mod dependents;
mod faults;
mod file_changes;
mod freshness;
mod lifecycle;
mod load;
mod navigation;
mod project_coverage;
mod protocol;
mod saves;
mod service;
mod support;
mod texts;
mod transport;
mod tried_change;
mod unversioned;
mod watch;
