//! `cargo check` of a crate, offline, and the Rust toolchain that the bench was started with.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tenon_testkit::{Sandbox, program};

use super::finding::{Counts, Finding};
use crate::error::BenchError;

/// The folder with the real `cargo` and `rustc`: rustup's proxies find no toolchain in a sandbox.
fn toolchain() -> Result<PathBuf, BenchError> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    match sysroot.trim() {
        "" => Err(BenchError::new("`rustc --print sysroot` printed nothing")),
        sysroot => Ok(Path::new(sysroot).join("bin")),
    }
}

/// A `PATH` on which rust-analyzer and the toolchain come first.
pub(super) fn search_path(rust_analyzer: &Path) -> Result<OsString, BenchError> {
    let first = rust_analyzer.parent().map(Path::to_owned).into_iter().chain([toolchain()?]);
    let rest = program::search_path();
    let folders = first.chain(env::split_paths(&rest));
    env::join_paths(folders).map_err(|error| BenchError::new(error.to_string()))
}

/// All errors of the compiler. rust-analyzer runs the same command.
pub(super) fn findings(sandbox: &Sandbox) -> Result<Counts, BenchError> {
    let folder = toolchain()?;
    let mut command = sandbox.command(folder.join("cargo"));
    let rest = program::search_path();
    let path = env::join_paths([folder].into_iter().chain(env::split_paths(&rest)));
    command.env("PATH", path.map_err(|error| BenchError::new(error.to_string()))?);
    command.args(["check", "--offline", "--workspace", "--all-targets", "--keep-going"]);
    let output = command.arg("--message-format=json").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("build-finished") {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(BenchError::new(format!("`cargo check` did not finish: {error}")));
    }
    Ok(errors(sandbox.root(), &text))
}

/// The errors in cargo's output. The library and its tests are compiled apart: an error of both counts once.
fn errors(root: &Path, output: &str) -> Counts {
    let mut found: BTreeSet<(Finding, u64, u64)> = BTreeSet::new();
    for line in output.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let message = &line["message"];
        if line["reason"] != "compiler-message" || message["level"] != "error" {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spans = message["spans"].as_array().into_iter().flatten();
        for span in spans.filter(|span| span["is_primary"] == true) {
            let span = in_workspace(span);
            let finding = Finding::new(
                root,
                &text(&span["file_name"]),
                &text(&message["code"]["code"]),
                &text(&message["message"]),
            );
            let number = |key: &str| span[key].as_u64().unwrap_or_default();
            found.insert((finding, number("line_start"), number("column_start")));
        }
    }
    found.into_iter().map(|(finding, _, _)| finding).collect()
}

/// The place in the workspace from which a macro of another crate was used.
fn in_workspace(span: &Value) -> &Value {
    let mut span = span;
    while span["file_name"].as_str().is_some_and(|file| file.starts_with(['/', '<'])) {
        match span["expansion"].get("span") {
            Some(outer) => span = outer,
            None => break,
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn error_of_library_and_tests_counts_once() {
        let span = json!({ "is_primary": true, "file_name": "src/a.rs", "line_start": 3, "column_start": 5 });
        let message = json!({
            "level": "error", "message": "cannot find value `x`", "code": { "code": "E0425" }, "spans": [span],
        });
        let line = json!({ "reason": "compiler-message", "message": message }).to_string();
        let found = errors(Path::new("/r"), &format!("{line}\n{line}\nno JSON\n"));
        let expected = Finding::new(Path::new("/r"), "src/a.rs", "E0425", "cannot find value `x`");
        assert_eq!(found.iter().collect::<Vec<_>>(), [(&expected, &1)]);
    }
}
