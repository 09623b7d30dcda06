//! A scriptable fake language server: the production codec on the other side of the pipes, misbehaving on demand.
//!
//! A [`Script`] is data: the capabilities to offer, and rules that say what to do when a message arrives. What arrives is
//! written to a transcript, so that a test can see what a client said.

mod documents;
mod script;
mod server;
mod workbench;

pub use script::{
    Action, Diagnostic, Initialize, Locations, Partial, Progress, Publish, Rule, Script, Version,
};
pub use server::serve;
pub use workbench::{Builder, Workbench};

use std::path::PathBuf;

/// The fake server's program, built beside the test that asks.
///
/// # Panics
/// When it has not been built.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a program");
    let name = format!("tenon-fake-lsp{}", std::env::consts::EXE_SUFFIX);
    let found = test.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("`{name}` is not built; run `cargo build -p tenon-fake-lsp`"))
}
