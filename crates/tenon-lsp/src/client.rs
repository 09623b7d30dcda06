//! One running language server: its process, its documents, and the questions it is asked.
//!
//! Writes to a server are ordered by one queue, in which a turn lasts only as long as the sending: a read waits for the
//! writes before it, never for somebody's diagnostics.

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
use crate::message::{Payload, RpcError};
use crate::process::{self, ChildExit, ChildHandle, ProcessGroup};
use crate::server_log::ServerLog;
use crate::transport::{Closed, Connection, PendingReply, RequestError};
use tenon_servers::find::Program;
use tenon_servers::registry::{Capability, ServerEntry};

mod capabilities;
mod diagnostics;
mod documents;
mod file_check;
mod handshake;
mod readiness;
mod session;
mod sync;
mod watched;

pub(crate) use capabilities::method;
pub use file_check::Checked;
pub(crate) use file_check::gap_reason;
pub use sync::{FileChange, FileChangeKind, Synced};

use capabilities::Capabilities;
use session::{Session, SessionState};

/// After a server exited, how long its last words may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// A server may ask for a retry again and again; pauses that grow to this keep it from being asked in a busy loop.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What a client is made of.
pub struct Start {
    pub entry: Arc<ServerEntry>,
    pub program: Program,
    /// The project folder: a real path and its URI.
    pub root: WorkspacePath,
    pub group: ProcessGroup,
    pub epoch: CheckEpoch,
    pub log: ServerLog,
}

/// Why a server did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("it could not be started: {0}")]
    Spawn(#[source] std::io::Error),
    #[error("it did not answer `initialize` in time")]
    Silent,
    #[error("the start was cancelled")]
    Cancelled,
    #[error("it refused `initialize`: {0}")]
    Refused(RpcError),
    #[error("it ended while starting ({0})")]
    Ended(String),
}

/// A server that answered `initialize`.
pub struct Client {
    session: Arc<Session>,
    connection: Connection,
    handle: ChildHandle,
    /// One writer at a time, in the order of asking.
    turns: Mutex<()>,
    driver: Mutex<Option<JoinHandle<String>>>,
    checked: AtomicBool,
}

impl Client {
    /// Starts a server and shakes hands with it when `meanwhile` is over: it may boot before we are ready to tell it of the
    /// workspace. A server that does not answer within the call is killed.
    pub async fn start(
        start: Start,
        call: &CallContext,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<Arc<Self>, StartError> {
        let Start { entry, program, root, group, epoch, log } = start;
        let mut command = Command::new(&program.path);
        command.args(&program.args).envs(&program.env).current_dir(root.as_path());
        let process = process::spawn(command, group).await.map_err(StartError::Spawn)?;
        let session = Arc::new(Session::new(
            Arc::clone(&entry),
            root.as_str(),
            root.uri().as_str(),
            program.settings.clone(),
            epoch,
            log.clone(),
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
                    RequestError::Unwritable(error) => StartError::Ended(error.to_string()),
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
        let params =
            handshake::initialize_params(program.initialization_options, root.as_str(), root.uri().as_str());
        let answer = self.connection.request(call, "initialize", &params).await?.wait(call).await?;
        let answer: Value = answer.parse().unwrap_or_default();
        self.session.state().capabilities = Capabilities::from_initialize(&answer);
        self.connection.notify(call, "initialized", &json!({})).await?;
        let settings = &program.settings;
        if self.entry().asks_for_settings || settings.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(());
        }
        let changed = json!({ "settings": settings });
        self.connection.notify(call, "workspace/didChangeConfiguration", &changed).await
    }

    pub fn entry(&self) -> &ServerEntry {
        self.session.entry()
    }

    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }

    pub fn is_alive(&self) -> bool {
        !self.session.state().ended
    }

    /// How the server ended, once it has.
    pub fn ending(&self) -> Option<String> {
        self.session.state().ending.clone()
    }

    /// Waits for the server's end and says how it came.
    pub async fn ended(&self) -> String {
        let driver = self.driver.lock().await.take();
        match driver {
            Some(driver) => driver.await.unwrap_or_else(|_| "it ended".to_owned()),
            None => self.handle.ended().await.to_string(),
        }
    }

    pub fn kill(&self) {
        self.handle.kill();
    }

    /// Ends the server: asks it to, then signals. `polite` bounds the asking, `grace` the time after SIGTERM.
    pub async fn shutdown(&self, polite: Duration, grace: Duration) -> ChildExit {
        let call = CallContext::within(polite);
        let asked = async {
            self.connection.request(&call, "shutdown", &Value::Null).await?.wait(&call).await?;
            self.connection.notify(&call, "exit", &Value::Null).await?;
            Ok::<_, RequestError>(call.bound(self.handle.ended()).await?)
        };
        match asked.await {
            Ok(exit) => exit,
            Err(_) => self.handle.terminate(grace).await,
        }
    }

    pub fn has(&self, capability: Capability) -> bool {
        self.entry().has(capability) && self.session.state().capabilities.has(capability)
    }

    pub fn encoding(&self) -> Encoding {
        self.session.encoding()
    }

    /// Whether its answers can be trusted now, as far as the registry knows how to tell.
    pub fn is_ready(&self) -> bool {
        self.session.state().is_ready(Instant::now())
    }

    /// Whether it has shown that its answers are complete, as far as the registry knows how to tell.
    pub fn is_proven(&self) -> bool {
        self.session.state().readiness.is_proven()
    }

    /// Whether a check of any file has been through.
    pub fn was_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// Tells a server that is not ready of a document, and asks for its diagnostics where that is what makes it ready.
    pub(crate) async fn open_to_load(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Result<(), RequestError> {
        let synced = self.sync(call, path, lines, true).await?;
        self.pull_first_diagnostics(call, &synced).await;
        Ok(())
    }

    /// Waits until the server is ready. `false` when it ended or the call did before.
    pub async fn ready(&self, call: &CallContext) -> bool {
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

    /// Looks at the state after every change until `look` is satisfied.
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

    /// Asks a question and waits for the answer. Asked again within the call when the server says that the content
    /// changed under it or that it gave up by itself.
    pub async fn ask<P: Serialize + ?Sized>(
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

    /// As [`Client::ask`], sent in one turn with a document's text, so that no other write comes between.
    pub async fn ask_about<P: Serialize + ?Sized>(
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

    /// Sends a question, in the sender's turn. It is left with the server for good where its entry wants that, and nothing
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

    /// Waits until the server has answered all questions that are left with it. What changes under such a search stays half
    /// unseen for good: after one, pyright went on to report errors of the text before, as the answer to a pull for the text
    /// after.
    async fn wait_for_searches(&self, call: &CallContext) -> Result<(), Interrupted> {
        let over = |state: &SessionState, _: Instant| match state.searches == 0 || state.ended {
            true => Wait::Done(()),
            false => Wait::ForChange,
        };
        self.wait_until(call, over).await
    }
}

/// The time before another try: short at first, since most servers cancel what a change overtakes and are ready again at
/// once.
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

/// `None` asks for another try.
fn retryable(outcome: Result<Payload, RequestError>) -> Result<Option<Payload>, RequestError> {
    match outcome {
        Ok(payload) => Ok(Some(payload)),
        Err(RequestError::Refused(error))
            if matches!(error.code, RpcError::CONTENT_MODIFIED | RpcError::SERVER_CANCELLED) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What a look at the state says to a wait.
enum Wait<T> {
    Done(T),
    Until(Instant),
    ForChange,
}

/// Runs a server's connection to its end, drains its stderr, and makes sure that nothing of it is left.
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
            // What it said last may still be in the pipe.
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
            // Its pipes are closed: it has nothing left to say, and a short time to go by itself.
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
