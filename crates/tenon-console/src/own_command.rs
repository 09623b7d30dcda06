//! Runs commands of this program, for actions that the command line has already: what a page does is what a person would type.

use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use tokio::process::Command;

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most output that is kept, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    pub(crate) succeeded: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// The first line that says what happened.
    pub(crate) fn summary(&self) -> &str {
        let lines = self.stderr.lines().chain(self.stdout.lines());
        lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("the command printed nothing")
    }
}

/// Runs `tenon ARGUMENTS` for the workspace at `root`.
pub(crate) async fn run(root: &Utf8Path, arguments: &[&str]) -> Result<CommandOutput, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find the program: {error}"))?;
    let mut command = Command::new(program);
    command.arg("--root").arg(root).args(arguments).current_dir(root);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.output()).await;
    let output = ended
        .map_err(|_| format!("the command did not end within {} s", TIMEOUT.as_secs()))?
        .map_err(|error| format!("cannot run the program: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_OUTPUT)]).into_owned();
    Ok(CommandOutput {
        succeeded: output.status.success(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}
