//! A scriptable fake language server: the production codec on the other side of the pipes, misbehaving on demand.
//!
//! A [`Script`] is data: the capabilities to offer, and rules for arriving messages. The server writes every message it
//! receives to a transcript for the test.

mod documents;
mod script;
pub mod scripts;
mod server;
mod workbench;

pub use script::{
    Action, Diagnostic, Initialize, Locations, Partial, Progress, Publish, Rule, Script, Version,
};
pub use server::serve;
pub use tenon_servers::registry::{ReadinessRule, ServerEntry};
pub use workbench::{Builder, Workbench};

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The fake server's program, built next to the running test.
///
/// # Panics
/// When it has not been built.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let name = format!("tenon-fake-lsp{}", std::env::consts::EXE_SUFFIX);
    let found = test.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("`{name}` is not built: run `cargo build -p tenon-fake-lsp`, or the tests with `cargo nextest run`"))
}

/// The settings of a fake server for `.fake` files, with its script `<id>.json` and transcript `<id>.jsonl` in `folder`.
///
/// # Panics
/// When the script is invalid or cannot be written.
pub fn entry(folder: &Path, id: &str, script: Value) -> Value {
    let script: Script = serde_json::from_value(script).expect("a script");
    let at = |ending: &str| folder.join(format!("{id}.{ending}"));
    std::fs::write(at("json"), serde_json::to_vec(&script).expect("a script is JSON"))
        .expect("a folder to write to");
    // In its sandbox, the server may append to the file, but not create it.
    std::fs::write(at("jsonl"), "").expect("a folder to write to");
    json!({
        "command": program(), "extensions": [".fake"],
        "args": ["--script", at("json"), "--transcript", at("jsonl")],
    })
}

/// The transcript of the fake server that [`entry`] put in `folder`, in order. The server may still be writing it: an
/// incomplete line is skipped, and a missing file is empty.
pub fn transcript(folder: &Path, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(transcript_path(folder, id)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn transcript_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}
