//! Texts and logs of programs under test, as values that a test can compare.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::Sandbox;

/// The exit code, stdout and stderr of a command as one text. The sandbox's path is replaced by `[SANDBOX]`.
pub fn transcript(sandbox: &Sandbox, output: &Output) -> String {
    let folder = sandbox.folder().display().to_string();
    let mut transcript = format!("exit: {}\n", output.status.code().unwrap_or(-1));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            let text = String::from_utf8_lossy(bytes).replace(&folder, "[SANDBOX]");
            transcript.push_str(&format!("--- {name}\n{text}"));
        }
    }
    transcript
}

/// The complete JSON lines of a log that another process may still be writing, such as a fake language server's
/// transcript. A missing file is empty.
pub fn read_json_lines(path: impl AsRef<Path>) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn transcript_has_exit_code_streams_and_no_sandbox_path() {
        let sandbox = Sandbox::new();
        let output = sandbox.command("sh").args(["-c", "pwd; echo oops >&2; exit 3"]).output().unwrap();
        assert_eq!(transcript(&sandbox, &output), "exit: 3\n--- stdout\n[SANDBOX]/w\n--- stderr\noops\n");
    }

    #[test]
    fn incomplete_line_and_missing_file_are_skipped() {
        let sandbox = Sandbox::with_tree("//- log\n{\"a\":1}\n{\"a\":\n");
        assert_eq!(read_json_lines(sandbox.root().join("log")), [json!({"a": 1})]);
        assert!(read_json_lines(sandbox.root().join("missing")).is_empty());
    }
}
