//! The service as a Rust host embeds it: a minimal agent, the client, the real program, and scripted language servers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod agent;
mod flows;
mod life;
