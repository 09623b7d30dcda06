//! The documentation, executed: shell blocks run, recorded calls return the recorded answers, and the book lists every page.
//!
//! `TENON_UPDATE=1 cargo nextest run -p tenon --test docs` records the answers again; `cargo xtask schemas` does, too.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod book;
mod page;
mod recorded_calls;
mod shell_blocks;
