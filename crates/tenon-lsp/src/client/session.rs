//! What one running server has told us, kept in step with what it sends.
//!
//! This is the [`Peer`] of the connection: it runs in the reader, changes state under one short lock and wakes whoever waits
//! for a change. It never waits itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tenon_contract::position::Encoding;
use tokio::sync::watch;
use tokio::time::Instant;

use super::capabilities::Capabilities;
use super::diagnostics::{LastChange, Store};
use super::documents::{Document, Documents};
use super::readiness::{Readiness, State};
use crate::check_epoch::CheckEpoch;
use crate::from_protocol;
use crate::message::{Payload, RpcError};
use crate::server_log::ServerLog;
use crate::transport::Peer;
use tenon_servers::registry::{self, ServerEntry};

/// Everything that changes while a server runs.
pub(crate) struct SessionState {
    pub(crate) capabilities: Capabilities,
    pub(crate) documents: Documents,
    pub(crate) diagnostics: Store,
    pub(crate) readiness: Readiness,
    /// Moves with every change and every publish.
    pub(crate) tick: u64,
    pub(crate) change: LastChange,
    /// Whether the last publish named its version; if not, changes need an answered request behind them.
    pub(crate) versioned: bool,
    /// When something was published last.
    pub(crate) published: Instant,
    /// Questions that were left with the server and that it has not answered.
    pub(crate) searches: usize,
    /// Set once the server is gone. Its diagnostics are gone then, too.
    pub(crate) ended: bool,
    /// How it went, as far as is known.
    pub(crate) ending: Option<String>,
    /// Whether the server was ever heard to speak again about a text after a change elsewhere.
    republishes: bool,
    /// Whether the server does not repeat empty lists.
    omits_repeated_empty: bool,
}

impl SessionState {
    /// The next moment of this server's time.
    pub(crate) fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Notes that something changed which may change diagnostics.
    pub(crate) fn note_change(&mut self) {
        let tick = self.next_tick();
        self.note_change_at(tick);
    }

    pub(crate) fn note_change_at(&mut self, tick: u64) {
        self.change = LastChange { tick, at: Instant::now() };
    }

    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        matches!(self.readiness.state(now), State::Since(_))
    }

    /// Whether nothing more is to be expected: no announced work, and something said about every open document since the
    /// last change.
    pub(crate) fn is_idle(&self) -> bool {
        !self.readiness.is_working() && self.documents.iter().all(|document| self.is_answered(document))
    }

    /// Whether the server is expected to say something about a document. One that has never been heard to speak again about a
    /// document whose text did not change is not taken to owe that: one that looks at each file alone never will.
    pub(crate) fn expects_diagnostics(&self, document: &Document) -> bool {
        !self.is_answered(document)
            && (self.republishes
                || self.capabilities.pulls()
                || self.readiness.is_working()
                || !self.is_answered_for_itself(document))
    }

    fn is_answered_for_itself(&self, document: &Document) -> bool {
        self.diagnostics.is_answered(document, LastChange { tick: document.changed, ..self.change })
    }

    /// Whether a pull for one file says nothing about the others, and nothing else does.
    pub(crate) fn checks_files_alone(&self) -> bool {
        self.capabilities.pulls() && !self.capabilities.has_inter_file_dependencies()
    }

    /// The last change that may have changed what the server thinks of a document.
    pub(crate) fn change_for(&self, document: &Document) -> LastChange {
        match self.checks_files_alone() {
            true => LastChange { tick: document.changed, ..self.change },
            false => self.change,
        }
    }

    /// Whether a change of one file is taken to change what the server thinks of others.
    pub(crate) fn checks_other_files(&self) -> bool {
        self.republishes || (self.capabilities.pulls() && self.capabilities.has_inter_file_dependencies())
    }

    /// Whether what is held for a document is what the server thinks since the last change, wherever that was.
    pub(crate) fn is_answered(&self, document: &Document) -> bool {
        if self.capabilities.pulls() {
            // What it pushes besides says nothing about what it would answer.
            return self.diagnostics.is_pulled(document, self.change_for(document));
        }
        let is_clean = || self.diagnostics.current(document.path.as_str(), Some(document)).is_empty();
        self.diagnostics.is_answered(document, self.change_for(document))
            // Nothing wrong before and nothing wrong now is not said twice; who must know has it opened again.
            || (self.omits_repeated_empty && is_clean() && self.is_answered_for_itself(document))
    }
}

/// The state of one server with those who wait for it to change.
pub(crate) struct Session {
    entry: Arc<ServerEntry>,
    root: String,
    root_uri: String,
    settings: Value,
    state: Mutex<SessionState>,
    changes: watch::Sender<()>,
    epoch: CheckEpoch,
    log: ServerLog,
}

impl Session {
    pub(crate) fn new(
        entry: Arc<ServerEntry>,
        root: &str,
        root_uri: &str,
        settings: Value,
        epoch: CheckEpoch,
        log: ServerLog,
    ) -> Self {
        let state = SessionState {
            capabilities: Capabilities::from_initialize(&Value::Null),
            documents: Documents::default(),
            diagnostics: Store::default(),
            readiness: Readiness::new(entry.ready.clone(), Instant::now()),
            tick: 0,
            change: LastChange { tick: 0, at: Instant::now() },
            versioned: false,
            published: Instant::now(),
            searches: 0,
            ended: false,
            ending: None,
            // One that swallows empty lists speaks of open files after every change, or there would be nothing to swallow.
            republishes: entry.reopens,
            omits_repeated_empty: entry.reopens,
        };
        Self {
            entry,
            root: root.to_owned(),
            root_uri: root_uri.to_owned(),
            settings,
            state: Mutex::new(state),
            changes: watch::Sender::new(()),
            epoch,
            log,
        }
    }

    pub(crate) fn entry(&self) -> &ServerEntry {
        &self.entry
    }

    pub(crate) fn epoch(&self) -> &CheckEpoch {
        &self.epoch
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.state().capabilities.encoding
    }

    /// Notes a search that ends when what is returned is dropped.
    pub(crate) fn begin_search(self: &Arc<Self>) -> Search {
        self.state().searches += 1;
        Search(Arc::clone(self))
    }

    /// Wakes all that wait for a change of state.
    pub(crate) fn wake(&self) {
        self.changes.send_replace(());
    }

    /// Sees every change from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The server is gone: its diagnostics go with it and all waits end.
    pub(crate) fn end(&self, how: &str) {
        let held = {
            let mut state = self.state();
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            state.ending = Some(how.to_owned());
            let held = state
                .diagnostics
                .keys()
                .any(|key| !state.diagnostics.current(key, state.documents.get(key)).is_empty());
            state.diagnostics = Store::default();
            held
        };
        if held {
            self.epoch.advance();
        }
        self.wake();
    }

    fn published(&self, params: &Payload) {
        let Some(published) = from_protocol::published(params) else {
            tracing::debug!(server = %self.entry.id, "diagnostics that cannot be read");
            return;
        };
        let changed = {
            let mut state = self.state();
            if state.ended {
                return;
            }
            state.versioned = published.version.is_some();
            state.published = Instant::now();
            state.readiness.diagnostics_arrived(Instant::now());
            let document = state.documents.get(&published.key);
            let again =
                document.is_some_and(|one| state.is_answered_for_itself(one) && !state.is_answered(one));
            state.republishes |= again;
            let tick = state.next_tick();
            let state = &mut *state;
            state.diagnostics.push(
                &published.key,
                published.version,
                published.items,
                state.documents.get(&published.key),
                tick,
                Instant::now(),
            )
        };
        if changed {
            self.epoch.advance();
        }
        self.wake();
    }

    fn configuration(&self, params: &Payload) -> Value {
        let params: Value = from_protocol::params(params).unwrap_or_default();
        params
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|item| {
                let section = item.get("section").and_then(Value::as_str);
                registry::section(&self.settings, section).clone()
            })
            .collect()
    }
}

/// A question that is left with the server.
pub(crate) struct Search(Arc<Session>);

impl Drop for Search {
    fn drop(&mut self) {
        self.0.state().searches -= 1;
        self.0.wake();
    }
}

impl Peer for Session {
    fn notification(&self, method: &str, params: Payload) {
        match method {
            "textDocument/publishDiagnostics" => self.published(&params),
            "$/progress" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                self.state().readiness.progress(&params, Instant::now());
                self.wake();
            }
            "experimental/serverStatus" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                self.state().readiness.server_status(&params, Instant::now());
                self.wake();
            }
            "window/logMessage" | "window/showMessage" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                if let Some(text) = params.get("message").and_then(Value::as_str) {
                    self.log.push(text);
                    let awaited = self.state().readiness.log_message(text, Instant::now());
                    if awaited {
                        self.wake();
                    }
                }
            }
            // Telemetry and notifications of servers' own making concern nobody here.
            _ => {}
        }
    }

    fn request(&self, method: &str, params: Payload) -> Result<Value, RpcError> {
        match method {
            "workspace/configuration" => Ok(self.configuration(&params)),
            "workspace/workspaceFolders" => Ok(json!([{ "uri": self.root_uri, "name": self.root }])),
            "client/registerCapability" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                self.state().capabilities.register(&params, &self.root);
                self.wake();
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                self.state().capabilities.unregister(&params);
                self.wake();
                Ok(Value::Null)
            }
            // Read-only is read-only: a server cannot edit through us.
            "workspace/applyEdit" => {
                Ok(json!({ "applied": false, "failureReason": "this client does not edit" }))
            }
            "workspace/diagnostic/refresh" => {
                self.state().note_change();
                self.wake();
                Ok(Value::Null)
            }
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/foldingRange/refresh" => Ok(Value::Null),
            "window/showDocument" => Ok(json!({ "success": false })),
            other => Err(RpcError::method_not_found(other)),
        }
    }
}
