//! A compilation database for C++ projects that have none.

use serde_json::{Value, json};
use tenon_testkit::Sandbox;

use crate::source_sample;

/// Writes a `compile_commands.json` for all sources, with the flags of `compile_flags.txt`, unless there is one.
pub(crate) fn write(sandbox: &Sandbox) {
    let database = sandbox.tree().path("compile_commands.json");
    if database.exists() {
        return;
    }
    let root = sandbox.root().canonicalize().unwrap_or_else(|_| sandbox.root().to_owned());
    let flags_file = sandbox.tree().path("compile_flags.txt");
    let flags = std::fs::read_to_string(&flags_file).unwrap_or_default();
    // Programs differ in which of the two they prefer.
    let _ = std::fs::remove_file(flags_file);
    let sources =
        ["cc", "cpp", "c"].into_iter().flat_map(|extension| source_sample::files(sandbox, extension));
    let command = |file: String| {
        let arguments: Vec<&str> = ["c++", "-std=c++20", "-I.", "-Iinclude"]
            .into_iter()
            .chain(flags.split_whitespace())
            .chain(["-c", &file])
            .collect();
        json!({ "directory": root, "file": file, "arguments": arguments })
    };
    let commands: Vec<Value> = sources.map(command).collect();
    sandbox.tree().write("compile_commands.json", &json!(commands).to_string());
}
