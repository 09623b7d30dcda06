//! Unix: a host's side of the service process: starts it, asks it, ends it, and never fails the tool that asks.
//!
//! Life, in the contract's three orders:
//! - **start**: the service is spawned in a process group of its own and must say `lsp/ready` within [`READY_WITHIN`]; else it
//!   is killed, and the client is dead with a reason.
//! - **questions**: whatever goes wrong, the answer is empty. A cancelled question ends at once, and the service is told.
//! - **end**: [`LspServiceClient::shutdown`] asks politely for [`POLITE`], then sends SIGTERM to the group, and SIGKILL
//!   [`GRACE`] later. A client that is dropped without it kills the group; a host that dies takes the service with it.

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
    BOOTSTRAP, CHECK_FILE, CheckFile, DIAGNOSTICS, DIAGNOSTICS_AFTER, Diagnostic, DiagnosticsAfter, Files,
    GET_DIAGNOSTIC_EPOCH, READY, SHUTDOWN, STATUS, ServerStatus,
};
use crate::call_context::CallContext;
use crate::message::{Payload, RpcError};
use crate::process::{self, ChildHandle, ChildProcess, ProcessGroup};
use crate::server_log::ServerLog;
use crate::transport::{Connection, Peer, RequestError};

/// How long the service may take to say that it is ready.
pub const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to leave when it is asked to.
pub const POLITE: Duration = Duration::from_secs(2);
/// From SIGTERM to SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// The service bounds its own waits; one that exceeds this does not answer any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last words of a service that ended may take to arrive.
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
    /// What the service is asked.
    pub write: pipe::Sender,
}

/// See the module.
pub struct LspServiceClient {
    /// The service, or why there never was one.
    service: Result<Running, String>,
}

struct Running {
    handle: ChildHandle,
    connection: Connection,
    log: ServerLog,
    navigation: Mutex<Option<Navigation>>,
    leaving: AtomicBool,
    /// Reading and writing. Dropped with us, and ended by the end of the process.
    _tasks: JoinSet<()>,
}

impl LspServiceClient {
    /// Starts the service and waits until it is ready. A client that could not is there too: not alive, with a reason.
    pub async fn start(options: Options) -> Self {
        Self { service: launch(options).await }
    }

    /// A client for hosts whose user wants no language servers: never alive, every answer empty.
    pub fn off() -> Self {
        Self { service: Err("language servers are switched off".to_owned()) }
    }

    /// Whether it is worth asking.
    pub fn is_alive(&self) -> bool {
        self.service.as_ref().is_ok_and(Running::is_alive)
    }

    /// Why the service is not alive, in words for people.
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
    ) -> Vec<Diagnostic> {
        let params = CheckFile { file_path: path.to_string(), text: text.map(str::to_owned) };
        self.ask(CHECK_FILE, &params, cancel).await
    }

    /// The epoch now, always asked of the service; 0, which is before all others, when it cannot be told.
    pub async fn get_diagnostic_epoch(&self) -> u64 {
        self.ask(GET_DIAGNOSTIC_EPOCH, &json!({}), &CancellationToken::new()).await
    }

    /// The diagnostics of all known files, once what was checked since `epoch` had `wait` to show in other files.
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

    /// The diagnostics of all known files, as they are.
    pub async fn get_all_diagnostics(&self) -> Files {
        self.ask(DIAGNOSTICS, &json!({}), &CancellationToken::new()).await
    }

    /// How every configured language server is.
    pub async fn status(&self) -> Vec<ServerStatus> {
        self.ask(STATUS, &json!({}), &CancellationToken::new()).await
    }

    /// The pipes of the navigation tools of a service that is alive, once. None when the configuration does without them.
    pub fn take_navigation(&self) -> Option<Navigation> {
        let running = self.service.as_ref().ok().filter(|running| running.is_alive())?;
        running.navigation.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the service with everything it started. Await it: a host that leaves meanwhile lets servers die by force.
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

    /// Whatever goes wrong, the tool that asks goes on: with nothing.
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
            tracing::debug!(method, %error, "the service has no answer");
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
        // Dropped before it came, the answer is taken back with `$/cancelRequest`.
        self.connection.request(call, method, params).await?.wait(call).await
    }
}

/// Hears the service say that it is ready; what else it may say is no concern of ours.
#[derive(Default)]
struct Ready(CancellationToken);

impl Peer for Ready {
    fn notification(&self, method: &str, _: Payload) {
        if method == READY {
            self.0.cancel();
        }
    }

    fn request(&self, method: &str, _: Payload) -> Result<Value, RpcError> {
        Err(RpcError::method_not_found(method))
    }
}

async fn launch(options: Options) -> Result<Running, String> {
    let Options { mut command, workspace_root, config } = options;
    let wants_navigation = config.get("navigationTools") != Some(&Value::Bool(false));
    let bootstrap = json!({ "workspaceRoot": workspace_root, "config": config });
    command.env(BOOTSTRAP, bootstrap.to_string());
    let unable = |error: io::Error| format!("the service cannot be started: {error}");
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
            // Both tasks end with the process, unless someone else holds its pipes.
            let last_words = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
            Some(format!("the service ended before it was ready ({exit})"))
        }
        () = tokio::time::sleep(READY_WITHIN) => {
            Some(format!("the service was not ready within {} s", READY_WITHIN.as_secs()))
        }
    };
    if let Some(failed) = failed {
        // Dropping the handle kills the group; nothing is left of it when we return.
        handle.kill();
        handle.ended().await;
        return Err(ended(&failed, &log));
    }
    let navigation = Mutex::new(navigation);
    Ok(Running { handle, connection, log, navigation, leaving: AtomicBool::new(false), _tasks: tasks })
}

/// What happened, and the last that the service said about it.
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
