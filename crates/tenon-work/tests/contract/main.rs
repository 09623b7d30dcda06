//! The contract of plans, tasks and memory, rule by rule, on both engines with the same code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod client;
mod postgres;
mod slice;
