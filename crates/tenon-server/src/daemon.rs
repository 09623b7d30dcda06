//! The daemon's life: one process per canonical workspace root, found, started, shared, replaced and ended.
//!
//! # How a client finds its daemon
//!
//! A folder of ours (`folder`) holds three files per workspace, named by a hash of the root: the socket, the *life lock*,
//! which the daemon holds as long as it lives, and the *start lock*, which whoever starts a daemon holds until that
//! daemon accepts connections. Both locks belong to open files, so the kernel releases them when their holder dies,
//! however it dies; the files themselves stay and mean nothing.
//!
//! A client connects. If nobody answers, it takes the start lock, connects again (another client may have been
//! faster), and only then starts a daemon. So many clients that come at once start one daemon. Under the start lock,
//! a life lock that is held while nobody answers can only be a daemon on its way out: the new one waits for it.
//!
//! # How a connection opens
//!
//! One JSON line from the client (`hello`), one from the daemon, then raw bytes both ways. Both ends check that the
//! process at the other end belongs to the same user.
//!
//! # When it ends
//!
//! At `stop`, at SIGTERM or SIGINT, and after an idle time without clients. A daemon that is out of date (another build
//! than the client's, or settings that have changed) leaves when the next client comes and no other is connected;
//! that client then starts a new one. While others are connected it goes on as it is.

use std::path::Path;

use camino::Utf8PathBuf;

pub mod protocol;

#[cfg(unix)]
mod connected_clients;
#[cfg(unix)]
pub mod connection;
#[cfg(unix)]
pub mod daemon_paths;
#[cfg(unix)]
pub mod daemon_server;
#[cfg(unix)]
pub mod file_lock;
#[cfg(unix)]
pub mod start;
#[cfg(unix)]
pub mod tool_list;

/// What tells one build of the program from another.
///
/// The version alone does not: an upgrade may carry the same number, and a developer's builds all do. So the size and the
/// time of the program file belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId(String);

impl BuildId {
    /// The build of the running program. Ask early: the file may be replaced while the program runs.
    pub fn current() -> Self {
        let program = std::env::current_exe().ok();
        Self(describe(program.as_deref()).unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn describe(program: Option<&Path>) -> Option<String> {
    let metadata = std::fs::metadata(program?).ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}+{}.{}", env!("CARGO_PKG_VERSION"), metadata.len(), changed.as_nanos()))
}

/// How a request to stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopOutcome {
    Ended,
    NotRunning,
}

/// Why a folder for sockets is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FolderProblem {
    #[error("is a link")]
    Link,
    #[error("is not a folder")]
    NotAFolder,
    #[error("belongs to another user")]
    OtherOwner,
    #[error("is open to other users")]
    OpenToOthers,
}

/// Why there is no daemon to talk to.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("no daemon serves this workspace")]
    NotRunning,
    #[error("the folder for sockets, `{folder}`, {problem}")]
    Folder { folder: Utf8PathBuf, problem: FolderProblem },
    #[error("the folder for sockets, `{folder}`, cannot be used")]
    FolderIo { folder: Utf8PathBuf, source: std::io::Error },
    #[error("the path of the socket is too long: `{path}`")]
    PathTooLong { path: Utf8PathBuf },
    #[error("the process behind `{socket}` belongs to another user")]
    OtherOwner { socket: Utf8PathBuf },
    #[error("cannot talk to the daemon")]
    Io(#[from] std::io::Error),
    #[error("the daemon did not answer within {seconds} s")]
    Timeout { seconds: u64, pid: Option<i32> },
    #[error("the daemon said something that this version does not understand")]
    InvalidResponse,
    #[error("{0}")]
    Rejected(protocol::HandshakeRejection),
    #[error("the daemon could not be started: {0}")]
    Start(String),
    #[error("another process has been starting or ending the daemon for {seconds} s")]
    Locked { seconds: u64 },
    #[error("the daemon does not answer MCP requests")]
    Mcp(#[source] std::io::Error),
    #[error("a daemon already serves this workspace")]
    AlreadyServed,
}
