//! Child processes on systems other than Unix: killed when dropped, without process groups and signals.
//!
//! A child can only be killed, and its own children may outlive it.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tenon_servers::confinement::Confinement;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Whose process group a child belongs to. Has no effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessGroup {
    Own,
    Inherited,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildExit {
    Code(i32),
    Unknown,
}

impl std::fmt::Display for ChildExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Unknown => f.write_str("an unknown end"),
        }
    }
}

/// A running child with its three pipes.
pub(crate) struct ChildProcess {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    pub(crate) handle: ChildHandle,
}

/// Watches and ends a child. Clones share it; dropping the last one kills the child.
#[derive(Clone)]
pub(crate) struct ChildHandle(Arc<ChildState>);

struct ChildState {
    pid: u32,
    kill: CancellationToken,
    exit: watch::Receiver<Option<ChildExit>>,
}

impl Drop for ChildState {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

impl ChildHandle {
    pub(crate) fn pid(&self) -> u32 {
        self.0.pid
    }

    /// How the child ended, once it has.
    pub(crate) fn exit(&self) -> Option<ChildExit> {
        *self.0.exit.borrow()
    }

    /// Waits for the end of the child.
    pub(crate) async fn ended(&self) -> ChildExit {
        let mut exit = self.0.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(ChildExit::Unknown),
            Err(_) => ChildExit::Unknown,
        }
    }

    /// Ends the child now.
    pub(crate) fn kill(&self) {
        self.0.kill.cancel();
    }

    /// Ends the child when it has not ended by itself after `grace`.
    pub(crate) async fn terminate(&self, grace: Duration) -> ChildExit {
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.kill();
                self.ended().await
            }
        }
    }
}

/// Starts a child with its pipes.
#[expect(clippy::unused_async, reason = "where there is Unix, another thread starts the child")]
pub(crate) async fn spawn(
    command: Command,
    _: ProcessGroup,
    _: Option<&Confinement>,
) -> io::Result<ChildProcess> {
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let missing = || io::Error::other("the child has no pipe");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let (pid, kill) = (child.id().unwrap_or_default(), CancellationToken::new());
    let (ended, exit) = watch::channel(None);
    tokio::spawn(attend(child, kill.clone(), ended));
    Ok(ChildProcess { stdin, stdout, stderr, handle: ChildHandle(Arc::new(ChildState { pid, kill, exit })) })
}

/// Waits for the exit of a child, or kills it.
async fn attend(mut child: Child, kill: CancellationToken, ended: watch::Sender<Option<ChildExit>>) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = kill.cancelled() => match child.start_kill() {
            Ok(()) => child.wait().await,
            Err(error) => Err(error),
        },
    };
    let exit = status.ok().and_then(|status| status.code()).map_or(ChildExit::Unknown, ChildExit::Code);
    ended.send_replace(Some(exit));
}

/// Does nothing here.
pub fn return_freed_memory() {}
