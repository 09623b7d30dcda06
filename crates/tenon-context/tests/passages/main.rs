//! Questions about the passages of a workspace, through the public API.

#![expect(clippy::unwrap_used, reason = "a test fails if its setup fails")]

mod bad_input;
mod fixture;
mod freshness;
mod ranking;
