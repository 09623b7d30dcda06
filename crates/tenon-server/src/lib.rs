//! Surfaces over MCP, their transports, and the life of the daemon.
