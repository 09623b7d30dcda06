//! The `edit` surface through the real program: what it changes, what it refuses, and what it says broke.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod killed;
mod permission;
mod real;
mod refusals;
mod stage;
mod texts;
