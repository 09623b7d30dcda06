//! The service as a host in Rust embeds it: the real program behind its client, scripted language servers behind that, and a
//! small agent with an edit tool and a write tool in front.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod flows;
mod life;
