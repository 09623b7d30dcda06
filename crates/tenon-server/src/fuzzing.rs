//! The bodies of this crate's fuzz targets: each takes any bytes and panics if a promise is broken.
//!
//! `fuzz/src/bin` runs them with random inputs, a test in each file with the inputs of `fuzz/corpus`.

pub mod mcp_messages;
pub mod settings;
