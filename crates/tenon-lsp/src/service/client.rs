//! Unix: the host's client of the service process: starts it, sends requests, and ends it. Its failures never fail a tool.
//!
//! Lifecycle:
//! - **start**: the service runs in its own process group and must send `lsp/ready` within [`READY_WITHIN`]; else it is
//!   killed, and the client is unavailable with a reason.
//! - **requests**: on any failure the answer is empty. A cancelled request ends at once and is cancelled in the service.
//! - **end**: [`LspServiceClient::shutdown`] asks the service to exit, sends SIGTERM to the group after [`POLITE`], and SIGKILL
//!   [`GRACE`] later. Dropping the client kills the group, and so does the death of the host.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    BOOTSTRAP, CHECK_FILE, CheckFile, DIAGNOSTICS, DIAGNOSTICS_AFTER, DiagnosticsAfter, Files,
    GET_DIAGNOSTIC_EPOCH, READY, SHUTDOWN, STATUS, ServiceDiagnostic, ServiceServerStatus,
};
use crate::call_context::CallContext;
use crate::message::{Payload, RpcError};
use crate::process::{self, ChildHandle, ChildProcess, ProcessGroup};
use crate::server_log::ServerLog;
use crate::transport::{Closed, Connection, Peer, RequestError};

/// How long the service may take to become ready.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to exit after `lsp/shutdown`.
pub const POLITE: Duration = Duration::from_secs(2);
/// From SIGTERM to SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// The service bounds its own waits; one that exceeds this is hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last output of an exited service may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How to start the service.
#[derive(Debug)]
pub struct Options {
    /// The program with its arguments, usually `tenon lsp-service`.
    pub command: Command,
    /// Absolute.
    pub workspace_root: Utf8PathBuf,
    /// The `config` of the bootstrap: timeouts, severities, servers.
    pub config: Map<String, Value>,
}

/// The pipes of the navigation tools, for an MCP client: newline-delimited JSON-RPC.
#[derive(Debug)]
pub struct Navigation {
    /// The service's answers.
    pub read: pipe::Receiver,
    /// Requests to the service.
    pub write: pipe::Sender,
}

/// See the module.
pub struct LspServiceClient {
    /// The service, or why it did not start.
    service: Result<Running, String>,
}

struct Running {
    handle: ChildHandle,
    connection: Connection,
    log: ServerLog,
    navigation: Mutex<Option<Navigation>>,
    leaving: AtomicBool,
    /// Reads and writes the pipes. Ends with this client or with the process.
    _tasks: JoinSet<()>,
}

impl LspServiceClient {
    /// Starts the service and waits until it is ready. If that fails, the client is not alive and has a reason.
    pub async fn start(options: Options) -> Self {
        Self { service: launch(options).await }
    }

    /// A client without a service, for users without language servers: never alive, every answer empty.
    pub fn off() -> Self {
        Self { service: Err("language servers are disabled".to_owned()) }
    }

    /// Whether the service can answer.
    pub fn is_alive(&self) -> bool {
        self.service.as_ref().is_ok_and(Running::is_alive)
    }

    /// Why the service is not alive, for people.
    pub fn get_unavailable_reason(&self) -> Option<String> {
        match &self.service {
            Err(reason) => Some(reason.clone()),
            Ok(running) if running.is_alive() => None,
            Ok(running) if running.leaving.load(Ordering::Relaxed) => {
                Some("the service was shut down".to_owned())
            }
            Ok(running) => Some(match running.handle.exit() {
                Some(exit) => ended(&format!("the service ended ({exit})"), &running.log),
                None => "the service closed its connection".to_owned(),
            }),
        }
    }

    /// The diagnostics of a file, for the text given or else the text on disk.
    pub async fn check_file(
        &self,
        path: &Utf8Path,
        text: Option<&str>,
        cancel: &CancellationToken,
    ) -> Vec<ServiceDiagnostic> {
        let params = CheckFile { file_path: path.to_string(), text: text.map(str::to_owned) };
        self.ask(CHECK_FILE, &params, cancel).await
    }

    /// The current epoch of the service; 0, which is before all others, if it is unknown.
    pub async fn get_diagnostic_epoch(&self) -> u64 {
        self.ask(GET_DIAGNOSTIC_EPOCH, &json!({}), &CancellationToken::new()).await
    }

    /// The diagnostics of all known files, after dependents of the files checked since `epoch` had up to `wait` to update.
    pub async fn get_all_diagnostics_after(
        &self,
        epoch: u64,
        wait: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Files {
        let wait_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let params = DiagnosticsAfter { after_epoch: epoch, wait_ms };
        self.ask(DIAGNOSTICS_AFTER, &params, cancel).await
    }

    /// The current diagnostics of all known files.
    pub async fn get_all_diagnostics(&self) -> Files {
        self.ask(DIAGNOSTICS, &json!({}), &CancellationToken::new()).await
    }

    /// The status of every configured language server.
    pub async fn status(&self) -> Vec<ServiceServerStatus> {
        self.ask(STATUS, &json!({}), &CancellationToken::new()).await
    }

    /// The pipes of the navigation tools, once, while the service is alive. `None` if the configuration disables them.
    pub fn take_navigation(&self) -> Option<Navigation> {
        let running = self.service.as_ref().ok().filter(|running| running.is_alive())?;
        running.navigation.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the service and everything it started. Await it: if the host exits early, the servers are killed.
    pub async fn shutdown(&self) {
        let Ok(running) = &self.service else {
            return;
        };
        running.leaving.store(true, Ordering::Relaxed);
        let call = CallContext::within(POLITE);
        if running.request(SHUTDOWN, &json!({}), &call).await.is_ok() {
            let _ = call.bound(running.handle.ended()).await;
        }
        if running.handle.exit().is_none() {
            running.handle.terminate(GRACE).await;
        }
    }

    /// Returns an empty answer on any failure.
    async fn ask<T: DeserializeOwned + Default>(
        &self,
        method: &str,
        params: &impl Serialize,
        cancel: &CancellationToken,
    ) -> T {
        let Ok(running) = &self.service else {
            return T::default();
        };
        let call = CallContext::new(tokio::time::Instant::now() + PATIENCE, cancel.clone());
        let answer = running.request(method, params, &call).await;
        let parsed = answer.and_then(|payload| Ok(payload.parse()?));
        parsed.unwrap_or_else(|error| {
            tracing::debug!(method, %error, "no answer from the service");
            T::default()
        })
    }
}

impl Running {
    fn is_alive(&self) -> bool {
        let open = self.connection.ended().now_or_never().is_none();
        open && self.handle.exit().is_none() && !self.leaving.load(Ordering::Relaxed)
    }

    async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
        call: &CallContext,
    ) -> Result<Payload, RequestError> {
        // Dropping the pending reply sends `$/cancelRequest`.
        self.connection.request(call, method, params).await?.wait(call).await
    }
}

/// Waits for the ready notification and ignores everything else.
#[derive(Default)]
struct Ready(CancellationToken);

impl Peer for Ready {
    fn notification(&self, method: &str, _: Payload) -> Result<(), Closed> {
        if method == READY {
            self.0.cancel();
        }
        Ok(())
    }

    fn request(&self, _: &str, _: Payload) -> Result<Value, RpcError> {
        Err(RpcError::method_not_found())
    }
}

async fn launch(options: Options) -> Result<Running, String> {
    let Options { mut command, workspace_root, config } = options;
    let wants_navigation = config.get("navigationTools") != Some(&Value::Bool(false));
    let bootstrap = json!({ "workspaceRoot": workspace_root, "config": config });
    command.env(BOOTSTRAP, bootstrap.to_string());
    let unable = |error: io::Error| format!("cannot start the service: {error}");
    let (handed, navigation) = match wants_navigation {
        true => navigation().map(|(handed, navigation)| (handed, Some(navigation))).map_err(unable)?,
        false => (Vec::new(), None),
    };
    let spawned = process::spawn_with(command, ProcessGroup::Own, handed).await;
    let ChildProcess { stdin, stdout, stderr, handle } = spawned.map_err(unable)?;

    let ready = Arc::new(Ready::default());
    let heard = ready.0.clone();
    let (connection, run) = Connection::open(stdout, stdin, ready);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let why = run.await;
        tracing::debug!(%why, "the service's connection ended");
    });
    let log = ServerLog::default();
    tasks.spawn({
        let log = log.clone();
        async move { log.drain(stderr).await }
    });

    let failed = tokio::select! {
        biased;
        () = heard.cancelled() => None,
        exit = handle.ended() => {
            // Both tasks end with the process, unless another process holds its pipes.
            let last_words = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
            Some(format!("the service ended before it was ready ({exit})"))
        }
        () = tokio::time::sleep(READY_WITHIN) => {
            Some(format!("the service was not ready within {} s", READY_WITHIN.as_secs()))
        }
    };
    if let Some(failed) = failed {
        // Wait for the kill, so that no process is left when we return.
        handle.kill();
        handle.ended().await;
        return Err(ended(&failed, &log));
    }
    let navigation = Mutex::new(navigation);
    Ok(Running { handle, connection, log, navigation, leaving: AtomicBool::new(false), _tasks: tasks })
}

/// What happened, with the last line of the service's log.
fn ended(what: &str, log: &ServerLog) -> String {
    log.last().map_or_else(|| what.to_owned(), |last| format!("{what}: {last}"))
}

/// Two pipes: 3 is read by the service, 4 is written by it.
fn navigation() -> io::Result<(Vec<(OwnedFd, i32)>, Navigation)> {
    let (asked, write) = io::pipe()?;
    let (read, answers) = io::pipe()?;
    let navigation = Navigation {
        read: pipe::Receiver::from_owned_fd(read.into())?,
        write: pipe::Sender::from_owned_fd(write.into())?,
    };
    Ok((vec![(asked.into(), 3), (answers.into(), 4)], navigation))
}
