//! The engine with real language servers, in workspaces that the tests write.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod file_changes;
mod rust_analyzer;
mod typescript_native;
mod workspace;
