//! Runs the checks of steps: diagnostics through the language servers, commands where the user allows them.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use tenon_lsp::CallContext;
use tenon_work::{Check, CheckOutcome, CheckResult};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::Engine;

/// Time that is left for the answer when a check ends at the deadline of the call.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// The end of the output that is kept.
const MAX_OUTPUT: usize = 64 * 1024;

impl Engine {
    /// Runs checks one after the other.
    pub(crate) async fn run_step_checks(
        self: &Arc<Self>,
        checks: &[Check],
        call: &CallContext,
    ) -> Vec<CheckResult> {
        let mut call = call.clone();
        call.deadline -= ANSWER_TIME;
        let root = self.workspace.root();
        let may_run_commands = self.workspace.config().work.runs_commands_in(root);
        let mut results = Vec::new();
        for check in checks {
            let (outcome, output, exit_code) = match check {
                Check::Problems(scope) => self.problems_in(scope, &call).await,
                Check::Command(_) if !may_run_commands => {
                    let why = "the user's setting `work.run_commands` does not allow it";
                    (CheckOutcome::NotAllowed, why.to_owned(), None)
                }
                Check::Command(line) => command(line, root, &call).await,
            };
            results.push(CheckResult { check: check.clone(), outcome, output, exit_code });
        }
        results
    }

    /// No diagnostics, and nothing left unchecked: silence alone proves nothing.
    async fn problems_in(
        self: &Arc<Self>,
        scope: &str,
        call: &CallContext,
    ) -> (CheckOutcome, String, Option<i32>) {
        let explorer = match self.explorer().await {
            Ok(explorer) => explorer,
            Err(error) => return (CheckOutcome::Unknown, error.to_string(), None),
        };
        match explorer.problem_gate(scope, call).await {
            Ok(gate) if !gate.findings.is_empty() => (CheckOutcome::Failed, gate.findings.join("\n"), None),
            Ok(gate) if !gate.gaps.is_empty() => (CheckOutcome::Unknown, gate.gaps.join("; "), None),
            Ok(gate) => (CheckOutcome::Passed, format!("no problems in {} files", gate.files), None),
            Err(error) => (CheckOutcome::Unknown, error.to_string(), None),
        }
    }
}

async fn command(line: &str, root: &Utf8Path, call: &CallContext) -> (CheckOutcome, String, Option<i32>) {
    let mut group = match Group::start(line, root) {
        Ok(group) => group,
        Err(error) => return (CheckOutcome::Unknown, format!("cannot start a shell: {error}"), None),
    };
    let ended = tokio::select! {
        ended = tokio::time::timeout_at(call.deadline, group.finish()) => ended.ok(),
        () = call.cancel.cancelled() => None,
    };
    match ended {
        Some(Ok((output, Some(0)))) => (CheckOutcome::Passed, output, Some(0)),
        Some(Ok((output, code))) => {
            let what = code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}"));
            (CheckOutcome::Failed, format!("{output}\n{what}"), code)
        }
        Some(Err(error)) => (CheckOutcome::Unknown, format!("the command failed: {error}"), None),
        None => (CheckOutcome::Unknown, "the command took too long".to_owned(), None),
    }
}

/// A shell and everything that it started. Dropping it ends all of them.
struct Group {
    child: Child,
}

impl Group {
    fn start(command: &str, root: &Utf8Path) -> std::io::Result<Self> {
        let mut shell = Command::new("sh");
        // One stream, so that the order of output and errors is kept.
        shell.arg("-c").arg(format!("exec 2>&1\n{command}")).current_dir(root);
        shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        shell.process_group(0);
        Ok(Self { child: shell.spawn()? })
    }

    /// The end of the output, and the exit code.
    async fn finish(&mut self) -> std::io::Result<(String, Option<i32>)> {
        let mut kept: Vec<u8> = Vec::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            let mut chunk = vec![0; 8192];
            loop {
                let count = stdout.read(&mut chunk).await?;
                if count == 0 {
                    break;
                }
                kept.extend_from_slice(&chunk[..count]);
                if kept.len() > 2 * MAX_OUTPUT {
                    kept.drain(..kept.len() - MAX_OUTPUT);
                }
            }
        }
        let status = self.child.wait().await?;
        let text = String::from_utf8_lossy(&kept).replace('\0', "\u{fffd}");
        let start = text.floor_char_boundary(text.len().saturating_sub(MAX_OUTPUT));
        Ok((text[start..].trim_end().to_owned(), status.code()))
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        // The id is gone once the shell was waited for; then nothing of ours is left to end.
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            let _ =
                nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
        }
    }
}
