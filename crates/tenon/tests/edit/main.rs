//! The `edit` surface through the real program: changed files, rejected edits, and diagnostics.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod by_name;
mod checkout;
mod diagnostics;
mod file_changes;
mod killed;
mod killed_rename;
mod permission;
mod real;
mod rejected_edits;
mod workspace;
