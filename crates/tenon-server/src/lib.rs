//! Surfaces over MCP, their transports, and the daemon.

pub mod activity;
#[cfg(unix)]
pub mod bridge;
pub mod config;
pub mod daemon;
pub mod dirs;
mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod http;
pub mod log;
#[cfg(unix)]
pub mod lsp_service;
pub mod mcp;
pub mod service;
pub mod stdio;
pub mod surface;
pub mod surfaces;
pub mod token;
pub mod trust;
pub mod web;
pub mod workspace;
