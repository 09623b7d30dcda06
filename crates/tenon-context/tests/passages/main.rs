//! Questions about the passages of a workspace, through the public API.

mod bad_input;
mod fixture;
mod freshness;
mod ranking;
