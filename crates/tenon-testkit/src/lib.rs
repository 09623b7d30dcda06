//! Shared test helpers: hermetic sandboxes, installed tools, and an MCP client that checks every message.
//!
//! Everything here panics on failure with a message for the reader of the failed test, and runs on Linux only.
//! Nothing sleeps: helpers wait for events, with [`PATIENCE`] as the deadline that only a broken product reaches.

pub mod code_tools;
pub mod console;
pub mod corpus;
pub mod direct_server;
pub mod file_changes;
pub mod file_tree;
pub mod framed_rpc;
pub mod generated;
pub mod http;
pub mod large_store;
pub mod mcp_client;
pub mod pgbouncer;
pub mod postgres;
pub mod processes;
pub mod program;
pub mod real_project;
pub mod rust_toolchain;
pub mod sandbox;
pub mod small_disk;
mod transcript;

use std::path::Path;
use std::time::Duration;

pub use file_tree::FileTree;
pub use mcp_client::{McpClient, Revision};
pub use real_project::RealProject;
pub use sandbox::Sandbox;
pub use transcript::transcript;

/// The deadline for events that should happen at once: long enough for a machine under load, short enough to name the
/// test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The root of the repository.
pub fn repository_root() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    folder.expect("this crate lies two folders below the repository")
}
