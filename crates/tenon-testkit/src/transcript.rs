//! The outcome of a command as one text, for snapshots.

use std::process::Output;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcript_has_exit_code_streams_and_no_sandbox_path() {
        let sandbox = Sandbox::new();
        let output = sandbox.command("sh").args(["-c", "pwd; echo oops >&2; exit 3"]).output().unwrap();
        assert_eq!(transcript(&sandbox, &output), "exit: 3\n--- stdout\n[SANDBOX]/w\n--- stderr\noops\n");
    }
}
