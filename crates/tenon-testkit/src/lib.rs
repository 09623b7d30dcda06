//! What the tests share: hermetic environments, tool folders and a consuming MCP client.
//!
//! Everything here panics on trouble, with words for the person who reads the failed test, and works
//! on Linux alone. Nothing sleeps: what must be waited for is waited for as an event, with
//! [`PATIENCE`] as the deadline that only a broken product reaches.

pub mod bare;
pub mod client;
pub mod code_tools;
pub mod disk;
pub mod frames;
pub mod generated;
pub mod http;
pub mod postgres;
pub mod processes;
pub mod program;
pub mod sandbox;
pub mod source;
pub mod tree;

use std::time::Duration;

pub use client::{Client, Revision};
pub use sandbox::Sandbox;
pub use source::Source;
pub use tree::Tree;

/// How long a test waits for something that should come at once: long enough for a machine under
/// load, short enough to name the test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);
