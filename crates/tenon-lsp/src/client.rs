//! One running language server: its process, its documents, and requests to it.
//!
//! One lock orders all writes to a server and is held only while sending: a request waits for earlier writes, never for
//! another caller's diagnostics.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex};
use tenon_contract::root::WorkspacePath;
use tokio::io::AsyncRead;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::call_context::{CallContext, Interrupted};
use crate::check_epoch::CheckEpoch;
use crate::message::{NoParams, Payload, RpcError};
use crate::process::{self, ChildExit, ChildHandle, ProcessGroup};
use crate::server_log::ServerLog;
use crate::transport::{Closed, Connection, PendingReply, RequestError};
use tenon_servers::find::Program;
use tenon_servers::registry::{Capability, ServerEntry};

mod barrier;
mod capabilities;
mod check_again;
mod diagnostics;
mod disk_check;
mod documents;
mod fair_slots;
mod file_check;
mod handshake;
mod indexing;
mod pull;
mod readiness;
mod session;
mod sync;
mod watched;

pub(crate) use capabilities::method;
pub(crate) use fair_slots::FairSlots;
pub(crate) use file_check::{Checked, gap_reason};
pub use sync::FileChangeKind;
pub(crate) use sync::{FileChange, Synced};

use capabilities::Capabilities;
use session::{Session, SessionState};

/// How long the last output of an exited server may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The longest delay between retries that a server requests.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How many pulls a server has at once. More would not make it faster, and delay what is asked next.
const PULLS_AT_ONCE: usize = 8;

/// What a client needs to start.
pub(crate) struct Start {
    pub(crate) entry: Arc<ServerEntry>,
    pub(crate) program: Program,
    /// The project folder: a real path and its URI.
    pub(crate) root: WorkspacePath,
    pub(crate) group: ProcessGroup,
    pub(crate) epoch: CheckEpoch,
    pub(crate) log: ServerLog,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start: {0}")]
    Spawn(#[source] std::io::Error),
    #[error("no answer to `initialize` in time")]
    Silent,
    #[error("start cancelled")]
    Cancelled,
    #[error("`initialize` failed: {0}")]
    Refused(RpcError),
    #[error("exited while starting ({0})")]
    Ended(String),
}

/// A server that answered `initialize`.
pub(crate) struct Client {
    session: Arc<Session>,
    connection: Connection,
    handle: ChildHandle,
    /// Orders writes, first come first served.
    turns: Mutex<()>,
    pulls: FairSlots,
    driver: Mutex<Option<JoinHandle<String>>>,
    checked: AtomicBool,
}

impl Client {
    /// Starts a server and sends `initialize` after `meanwhile` is done: the process may boot before the workspace is ready. A
    /// server that does not answer within the call is killed.
    pub(crate) async fn start(
        start: Start,
        call: &CallContext,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<Arc<Self>, StartError> {
        let Start { entry, program, root, group, epoch, log } = start;
        let mut command = Command::new(&program.path);
        command.args(&program.args).envs(&program.env).current_dir(root.as_path());
        let confinement = program.confinement.as_ref();
        let process = process::spawn(command, group, confinement).await.map_err(StartError::Spawn)?;
        let session = Arc::new(Session::new(
            Arc::clone(&entry),
            root.as_str(),
            root.uri().as_str(),
            program.settings.clone(),
            epoch,
            log.clone(),
            program.lacks_library,
        ));
        let peer: Arc<dyn crate::transport::Peer> = Arc::clone(&session) as _;
        let (connection, run) = Connection::open(process.stdout, process.stdin, peer);
        let handle = process.handle;
        let driver = tokio::spawn(drive(
            run,
            connection.clone(),
            handle.clone(),
            Arc::clone(&session),
            log,
            process.stderr,
        ));
        let client = Arc::new(Self {
            session,
            connection,
            handle,
            turns: Mutex::new(()),
            pulls: FairSlots::new(PULLS_AT_ONCE),
            driver: Mutex::new(Some(driver)),
            checked: AtomicBool::new(false),
        });
        meanwhile.await;
        match client.handshake(program, &root, call).await {
            Ok(()) => Ok(client),
            Err(error) => {
                client.kill();
                let ended = client.ended().await;
                Err(match error {
                    RequestError::Interrupted(Interrupted::Deadline) => StartError::Silent,
                    RequestError::Interrupted(Interrupted::Cancelled) => StartError::Cancelled,
                    RequestError::Refused(refusal) => StartError::Refused(refusal),
                    RequestError::Closed(_) => StartError::Ended(ended),
                    error @ (RequestError::TooLarge | RequestError::Unwritable(_)) => {
                        StartError::Ended(error.to_string())
                    }
                })
            }
        }
    }

    async fn handshake(
        &self,
        program: Program,
        root: &WorkspacePath,
        call: &CallContext,
    ) -> Result<(), RequestError> {
        let is_confined = program.confinement.is_some();
        let options = program.initialization_options;
        let utf16_columns = self.entry().utf16_columns;
        let (name, uri) = (root.as_str(), root.uri());
        let params = handshake::initialize_params(options, name, uri.as_str(), is_confined, utf16_columns);
        let answer = self.connection.request(call, "initialize", &params).await?.wait(call).await?;
        let answer: Value = answer.parse().unwrap_or_default();
        let capabilities = Capabilities::from_initialize(&answer);
        self.session.state().capabilities =
            capabilities.with_tsserver(self.entry().tsserver_command.as_deref());
        self.connection.notify(call, "initialized", &json!({})).await?;
        let settings = &program.settings;
        if self.entry().asks_for_settings || settings.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(());
        }
        let changed = json!({ "settings": settings });
        self.connection.notify(call, "workspace/didChangeConfiguration", &changed).await
    }

    pub(crate) fn entry(&self) -> &ServerEntry {
        self.session.entry()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.handle.pid()
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.session.state().ended
    }

    /// How the server ended, once it has.
    pub(crate) fn ending(&self) -> Option<String> {
        self.session.state().ending.clone()
    }

    /// Waits for the server's end and returns its reason.
    pub(crate) async fn ended(&self) -> String {
        let driver = self.driver.lock().await.take();
        match driver {
            Some(driver) => driver.await.unwrap_or_else(|_| "it ended".to_owned()),
            None => self.handle.ended().await.to_string(),
        }
    }

    pub(crate) fn kill(&self) {
        self.handle.kill();
    }

    /// Ends the server: `shutdown` and `exit` within `polite`, then SIGTERM, then SIGKILL after `grace`.
    pub(crate) async fn shutdown(&self, polite: Duration, grace: Duration) -> ChildExit {
        let call = CallContext::within(polite);
        let asked = async {
            self.connection.request(&call, "shutdown", &NoParams).await?.wait(&call).await?;
            self.connection.notify(&call, "exit", &NoParams).await?;
            Ok::<_, RequestError>(call.bound(self.handle.ended()).await?)
        };
        match asked.await {
            Ok(exit) => exit,
            Err(_) => self.handle.terminate(grace).await,
        }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.entry().has(capability) && self.session.state().capabilities.has(capability)
    }

    /// Whether a provider has an option, such as a second request.
    pub(crate) fn has_option(&self, capability: Capability, option: &str) -> bool {
        self.session.state().capabilities.has_option(capability, option)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.session.encoding()
    }

    /// Whether its answers can be trusted now, by the registry's readiness rule.
    pub(crate) fn is_ready(&self) -> bool {
        self.session.state().is_ready(Instant::now())
    }

    /// Whether there is evidence that its answers are complete, by the registry's readiness rule.
    pub(crate) fn is_proven(&self) -> bool {
        self.session.state().readiness.is_proven()
    }

    /// Whether it has read a header by itself that needs others before it: what it finds in that header replaces what it
    /// found while it read the whole program.
    pub(crate) fn misreads_headers(&self) -> bool {
        !self.session.state().misread.is_empty()
    }

    /// Whether it cannot expand the macros of the standard library: it then finds nothing inside of them.
    pub(crate) fn lacks_library(&self) -> bool {
        self.session.lacks_library()
    }

    /// The error that it reports about itself: its answers then say nothing about the project.
    pub(crate) fn failure(&self) -> Option<String> {
        self.session.state().readiness.failure().map(str::to_owned)
    }

    /// Whether any file has been checked.
    pub(crate) fn was_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// Opens a document in a server that is not ready, and pulls diagnostics if that is what makes it ready. Fails if the server
    /// rejects the document's project.
    pub(crate) async fn open_to_load(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Result<(), RequestError> {
        let synced = self.sync(call, path, lines, true).await?;
        self.pull_first_diagnostics(call, &synced).await;
        self.load_in_tsserver(call, &synced).await
    }

    /// Waits until the server is ready. `false` if it or the call ended first.
    pub(crate) async fn ready(&self, call: &CallContext) -> bool {
        self.wait_until(call, |state, now| {
            if state.ended {
                return Wait::Done(false);
            }
            match state.readiness.state(now) {
                readiness::State::Since(_) => Wait::Done(true),
                readiness::State::NotBefore(at) => Wait::Until(at),
                readiness::State::Waiting => Wait::ForChange,
            }
        })
        .await
        .unwrap_or(false)
    }

    /// Calls `look` after every change of the state until it returns [`Wait::Done`].
    async fn wait_until<T>(
        &self,
        call: &CallContext,
        look: impl Fn(&SessionState, Instant) -> Wait<T>,
    ) -> Result<T, Interrupted> {
        let mut changes = self.session.subscribe();
        loop {
            changes.mark_unchanged();
            let outcome = look(&self.session.state(), Instant::now());
            let next = match outcome {
                Wait::Done(value) => return Ok(value),
                Wait::Until(at) => Some(at),
                Wait::ForChange => None,
            };
            let pause = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            call.bound(async {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = pause => {}
                }
            })
            .await?;
        }
    }

    /// Sends a request and waits for the answer. Retries within the call if the server reports that the content was modified or
    /// that it cancelled the request.
    pub(crate) async fn ask<P: Serialize + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
    ) -> Result<Payload, RequestError> {
        let mut pause = RetryDelay::default();
        loop {
            let turn = call.bound(self.turns.lock()).await?;
            let reply = self.send_question(call, method, params, |_| {}).await?;
            drop(turn);
            match retryable(reply.wait(call).await)? {
                Some(payload) => return Ok(payload),
                None => pause.wait(call).await?,
            }
        }
    }

    /// Like [`Client::ask`], for the project of an open document, in a server that answers for the project of the document
    /// that the last request was about.
    pub(crate) async fn ask_in_project(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        method: &str,
        params: &Value,
    ) -> Result<Payload, RequestError> {
        // Without positions the answer is empty; what counts is that the request is about this document.
        let touch = json!({ "textDocument": { "uri": path.uri().as_str() }, "positions": [] });
        let mut pause = RetryDelay::default();
        loop {
            let turn = call.bound(self.turns.lock()).await?;
            let touched = self.connection.request(call, "textDocument/selectionRange", &touch).await?;
            let reply = self.send_question(call, method, params, |_| {}).await?;
            drop(turn);
            let answer = reply.wait(call).await;
            drop(touched);
            match retryable(answer)? {
                Some(payload) => return Ok(payload),
                None => pause.wait(call).await?,
            }
        }
    }

    /// Like [`Client::ask`], sent together with a document's text, so that no other write comes between.
    pub(crate) async fn ask_about<P: Serialize + ?Sized>(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        method: &str,
        params: &P,
    ) -> Result<Payload, RequestError> {
        let mut pause = RetryDelay::default();
        loop {
            let (reply, _pin) = {
                let turn = call.bound(self.turns.lock()).await?;
                let pin = self.sync_in_turn(call, path, lines, true).await?;
                let seen =
                    self.note_question(path.as_str()).map(|version| self.mark_seen(path.as_str(), version));
                let on_reply = |answer: &_| seen.into_iter().for_each(|seen| seen(answer));
                let reply = self.send_question(call, method, params, on_reply).await?;
                drop(turn);
                (reply, pin)
            };
            match retryable(reply.wait(call).await)? {
                Some(payload) => return Ok(payload),
                None => pause.wait(call).await?,
            }
        }
    }

    /// Sends a request while the write lock is held. If the server's entry says so, the request is never cancelled, and nothing
    /// changes for the server before it has answered: see [`Client::wait_for_searches`].
    async fn send_question<P: Serialize + ?Sized>(
        &self,
        call: &CallContext,
        method: &str,
        params: &P,
        on_reply: impl FnOnce(&Result<Payload, RpcError>) + Send + 'static,
    ) -> Result<PendingReply, RequestError> {
        if !self.entry().keeps.iter().any(|kept| kept == method) {
            return self.connection.request_with(call, method, params, on_reply).await;
        }
        let search = self.session.begin_search();
        let on_reply = move |answer: &_| {
            on_reply(answer);
            drop(search);
        };
        Ok(self.connection.request_with(call, method, params, on_reply).await?.without_cancel())
    }

    /// Waits until the server has answered all requests that are never cancelled. After a change during such a search, pyright
    /// keeps reporting errors of the old text (decision 0321).
    async fn wait_for_searches(&self, call: &CallContext) -> Result<(), Interrupted> {
        let over = |state: &SessionState, _: Instant| match state.searches == 0 || state.ended {
            true => Wait::Done(()),
            false => Wait::ForChange,
        };
        self.wait_until(call, over).await
    }
}

/// The delay before a retry: short at first, since most servers are ready again at once.
struct RetryDelay(Duration);

impl Default for RetryDelay {
    fn default() -> Self {
        Self(Duration::from_millis(1))
    }
}

impl RetryDelay {
    async fn wait(&mut self, call: &CallContext) -> Result<(), Interrupted> {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        call.bound(tokio::time::sleep(pause)).await
    }
}

/// `None` means retry.
fn retryable<T>(outcome: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match outcome {
        Ok(answer) => Ok(Some(answer)),
        Err(RequestError::Refused(error))
            if matches!(error.code, RpcError::CONTENT_MODIFIED | RpcError::SERVER_CANCELLED) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// How a wait continues.
enum Wait<T> {
    Done(T),
    Until(Instant),
    ForChange,
}

/// Runs a server's connection to its end, drains its stderr, and makes sure that the process is gone.
async fn drive(
    run: impl Future<Output = Closed> + Send + 'static,
    connection: Connection,
    handle: ChildHandle,
    session: Arc<Session>,
    log: ServerLog,
    stderr: impl AsyncRead + Unpin + Send + 'static,
) -> String {
    let stderr_log = log.clone();
    let drained = tokio::spawn(async move { stderr_log.drain(stderr).await });
    tokio::pin!(run);
    let (closed, exit) = tokio::select! {
        closed = &mut run => (closed, None),
        exit = handle.ended() => {
            // Its last output may still be in the pipe.
            let closed = match tokio::time::timeout(LAST_WORDS, &mut run).await {
                Ok(closed) => closed,
                Err(_) => {
                    connection.close();
                    run.await
                }
            };
            (closed, Some(exit))
        }
    };
    session.end(&closed.to_string());
    let exit = match exit {
        Some(exit) => exit,
        None => {
            // Its pipes are closed; it gets a short time to exit by itself.
            match tokio::time::timeout(LAST_WORDS, handle.ended()).await {
                Ok(exit) => exit,
                Err(_) => handle.terminate(LAST_WORDS).await,
            }
        }
    };
    drained.abort();
    match closed {
        Closed::EndOfStream | Closed::Locally => exit.to_string(),
        closed => format!("{closed}; {exit}"),
    }
}
