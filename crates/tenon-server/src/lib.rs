//! Surfaces over MCP, their transports, and the life of the daemon.

pub mod http;
pub mod mcp;
pub mod surface;
pub mod surfaces;
pub mod token;
