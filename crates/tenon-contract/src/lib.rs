//! The formats and rules that all crates share: canonical JSON, ids, cursors, snapshots, budgets, positions and roots.

pub mod budget;
pub mod checked_file;
pub mod clock;
pub mod cursor;
pub mod epoch;
pub mod error_chain;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod id;
pub mod json;
pub mod position;
pub mod regular_file;
pub mod root;
pub mod snapshot;
pub mod visible;
