//! The daemon: one process per canonical workspace root, shared by all clients.
//!
//! # How a client finds its daemon
//!
//! A workspace has three files, named by a hash of the root (`daemon_paths`): in a private folder for sockets the socket
//! and the *start lock*, held by the process that starts a daemon until that daemon accepts connections; in the state
//! folder the *life lock*, held by the daemon while it runs. Both locks belong to open files, so the kernel releases them
//! however their holder dies. The files themselves stay; the note in the life lock says where the holder's socket is.
//!
//! A client connects. If there is no answer, it takes the start lock, connects again (another client may have been
//! faster), and only then starts a daemon. Clients that start at the same time therefore start one daemon.
//!
//! The life lock decides whether a daemon runs, not the socket: the folder for sockets may be removed or replaced. The
//! daemon looks for its socket every second and makes a new one. A client that finds the lock held and no socket waits
//! for that, or for the end of a daemon that is exiting.
//!
//! # Handshake
//!
//! One JSON line from the client, one from the daemon (`protocol`), then raw bytes both ways. Both ends check that the
//! peer process belongs to the same user.
//!
//! # When it exits
//!
//! On `stop`, SIGTERM or SIGINT, and after an idle time without clients. An outdated daemon (another build than the
//! client's, changed settings, or without a setting that the client's environment makes) exits when the next client connects and no other is connected; that client then starts
//! a new one. While other clients are connected, it keeps running unchanged, and rejects clients whose environment makes
//! settings that it does not have (`client_settings`).

use std::path::Path;

use camino::Utf8PathBuf;

pub mod client_settings;
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
mod life_holder;
#[cfg(unix)]
pub mod start;
#[cfg(unix)]
pub mod tool_list;

/// Identifies a build of the program.
///
/// The version alone does not: an upgrade may keep the number, and a developer's builds do. So the size and modification
/// time of the program file are part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildId(String);

impl BuildId {
    /// The build of the running program. Call this early: the file may be replaced while the program runs.
    pub(crate) fn current() -> Self {
        let program = std::env::current_exe().ok();
        Self(describe(program.as_deref()).unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
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

/// Why there is no connection to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("no daemon serves this workspace")]
    NotRunning,
    #[error("socket folder `{folder}` {problem}")]
    Folder { folder: Utf8PathBuf, problem: FolderProblem },
    #[error("cannot use socket folder `{folder}`")]
    FolderIo { folder: Utf8PathBuf, source: std::io::Error },
    #[error("socket path is too long: `{path}`")]
    PathTooLong { path: Utf8PathBuf },
    #[error("the process behind `{socket}` belongs to another user")]
    OtherOwner { socket: Utf8PathBuf },
    #[error("cannot communicate with the daemon")]
    Io(#[from] std::io::Error),
    #[error("the daemon has not opened its socket `{socket}` for {seconds} s")]
    NoSocket { socket: Utf8PathBuf, seconds: u64 },
    #[error("the daemon did not answer within {seconds} s")]
    Timeout { seconds: u64, pid: Option<i32> },
    #[error("the daemon sent an invalid response")]
    InvalidResponse,
    #[error("{0}")]
    Rejected(protocol::HandshakeRejection),
    #[error("cannot start the daemon: {0}")]
    Start(String),
    #[error("another process has been starting or stopping the daemon for {seconds} s")]
    Locked { seconds: u64 },
    #[error("the daemon does not answer MCP requests")]
    Mcp(#[source] std::io::Error),
    #[error("a daemon already serves this workspace")]
    AlreadyServed,
}
