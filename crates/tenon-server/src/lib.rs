//! Surfaces over MCP, their transports, and the life of the daemon.

pub mod config;
pub mod dirs;
pub mod http;
pub mod log;
pub mod mcp;
pub mod surface;
pub mod surfaces;
pub mod token;
pub mod trust;
