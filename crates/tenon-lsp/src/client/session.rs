//! The state of one running server, updated by its messages.
//!
//! This is the [`Peer`] of the connection: it runs in the reader, changes the state under one short lock and wakes waiting
//! tasks. It never waits itself.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tenon_contract::position::Encoding;
use tokio::sync::watch;
use tokio::time::Instant;

use super::barrier::Questions;
use super::capabilities::Capabilities;
use super::diagnostics::{Freshness, LastChange, Store};
use super::disk_check::DiskCheck;
use super::documents::{Document, Documents};
use super::readiness::{Readiness, State};
use super::watched::UnwatchedChanges;
use crate::check_epoch::CheckEpoch;
use crate::from_protocol;
use crate::message::{Payload, RpcError};
use crate::model::{Diagnostic, Severity};
use crate::server_log::ServerLog;
use crate::transport::{Closed, Peer};
use tenon_servers::registry::{self, ServerEntry};

/// How many files with errors are remembered that are read as part of others.
const MAX_MISREAD: usize = 10_000;

/// Everything that changes while a server runs.
pub(crate) struct SessionState {
    pub(crate) capabilities: Capabilities,
    pub(crate) documents: Documents,
    pub(crate) diagnostics: Store,
    pub(crate) readiness: Readiness,
    /// Advances with every change and every publish.
    pub(crate) tick: u64,
    pub(crate) change: LastChange,
    /// The tick of the last change on disk that was reported to the server, or that it cannot see.
    pub(crate) disk_change: u64,
    /// The tick of the last change on disk, of any file: some servers read files that they do not watch through us.
    pub(crate) any_disk_change: u64,
    /// Open documents that changed on disk and that the server may not have indexed since.
    pub(crate) unindexed: BTreeSet<String>,
    /// Changes on disk that the server did not watch. It is told when it asks for them, since it may have read the files
    /// before that.
    pub(crate) unwatched: UnwatchedChanges,
    /// Whether a publish had a version, and whether one had none.
    pub(crate) versioned: bool,
    pub(crate) unversioned: bool,
    /// The requests that this server answers.
    pub(crate) questions: Questions,
    /// The time of the last publish.
    pub(crate) published: Instant,
    /// Requests that are never cancelled and were not answered yet.
    pub(crate) searches: usize,
    /// Headers with errors, open or closed: they may need what is declared before they are included.
    pub(crate) misread: BTreeSet<String>,
    /// Whether the server has ended. Its diagnostics are then removed.
    pub(crate) ended: bool,
    /// How it ended, if known.
    pub(crate) ending: Option<String>,
    /// Whether the server has ever published again for an unchanged text after a change elsewhere.
    republishes: bool,
    /// Whether the server does not repeat empty lists, so that a document has to be opened again.
    omits_repeated_empty: bool,
}

impl SessionState {
    /// Advances the clock.
    pub(crate) fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Notes a change that may affect diagnostics.
    pub(crate) fn note_change(&mut self) {
        let tick = self.next_tick();
        self.note_change_at(tick);
    }

    pub(crate) fn note_change_at(&mut self, tick: u64) {
        self.change = LastChange { tick, at: Instant::now() };
    }

    /// Notes a change on disk.
    pub(crate) fn note_disk_change(&mut self) {
        self.note_change();
        self.disk_change = self.change.tick;
    }

    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        matches!(self.readiness.state(now), State::Since(_))
    }

    /// Whether an answered request must prove that the server has seen a change: its publishes have no versions, or none came.
    pub(crate) fn needs_proof(&self) -> bool {
        !self.capabilities.pulls() && (self.unversioned || !self.versioned)
    }

    /// Whether a document is opened again to get its diagnostics.
    pub(crate) fn reopens(&self) -> bool {
        self.omits_repeated_empty && !self.capabilities.pulls()
    }

    /// Whether no more diagnostics are expected: no progress is running, and every open document has diagnostics since the last
    /// change.
    pub(crate) fn idle(&self, now: Instant) -> Freshness {
        if self.readiness.is_working() {
            return Freshness::Waiting;
        }
        let answered = self.documents.iter().map(|document| self.answered(document, now));
        answered.chain([self.diagnostics.disk_freshness(now)]).max().unwrap_or(Freshness::Fresh)
    }

    /// Whether diagnostics of a document are expected. A server that never republished for an unchanged text is not expected to:
    /// one that checks each file alone never does.
    pub(crate) fn expects_diagnostics(&self, document: &Document) -> bool {
        self.is_disk_check_due()
            || !self.is_answered(document)
                && (self.republishes
                    || self.capabilities.pulls()
                    || self.readiness.is_working()
                    || !self.is_answered_for_itself(document))
    }

    /// Whether the check of the files on disk has to end.
    pub(crate) fn is_disk_check_due(&self) -> bool {
        self.diagnostics.disk_freshness(Instant::now()) != Freshness::Fresh
    }

    /// Whether there were diagnostics for the document's current text.
    pub(crate) fn answered_for_itself(&self, document: &Document, now: Instant) -> Freshness {
        self.diagnostics.answered(document, LastChange { tick: document.changed, ..self.change }, now)
    }

    fn is_answered_for_itself(&self, document: &Document) -> bool {
        self.answered_for_itself(document, Instant::now()) == Freshness::Fresh
    }

    /// Whether the server only supports pulls without dependencies between files.
    pub(crate) fn checks_files_alone(&self) -> bool {
        self.capabilities.pulls() && !self.capabilities.has_inter_file_dependencies()
    }

    /// Whether a document's text was pulled, and nothing has changed since then, not even a file that the server does not watch.
    pub(crate) fn is_pulled_since_every_change(&self, document: &Document) -> bool {
        let change = LastChange { tick: self.change.tick.max(self.any_disk_change), ..self.change };
        self.diagnostics.is_pulled(document, change)
    }

    /// The last change that may affect a document's diagnostics.
    pub(crate) fn change_for(&self, document: &Document) -> LastChange {
        match self.checks_files_alone() {
            true => LastChange { tick: document.changed, ..self.change },
            false => self.change,
        }
    }

    /// Whether a change of one file may affect the diagnostics of others.
    pub(crate) fn checks_other_files(&self) -> bool {
        self.republishes || (self.capabilities.pulls() && self.capabilities.has_inter_file_dependencies())
    }

    /// Whether the diagnostics of a document are up to date with the last change anywhere.
    pub(crate) fn is_answered(&self, document: &Document) -> bool {
        self.answered(document, Instant::now()) == Freshness::Fresh
    }

    fn answered(&self, document: &Document, now: Instant) -> Freshness {
        if self.capabilities.pulls() {
            // Additional pushes do not replace a pull.
            return match self.diagnostics.is_pulled(document, self.change_for(document)) {
                true => Freshness::Fresh,
                false => Freshness::Waiting,
            };
        }
        let answered = self.diagnostics.answered(document, self.change_for(document), now);
        let is_clean = || self.diagnostics.current(document.path.as_str(), Some(document)).is_empty();
        if answered == Freshness::Waiting && self.omits_repeated_empty && is_clean() {
            // Such a server does not publish an empty list twice; reopening the document forces it.
            return self.answered_for_itself(document, now);
        }
        answered
    }
}

/// The state of one server, with change notifications.
pub(crate) struct Session {
    entry: Arc<ServerEntry>,
    root: String,
    root_uri: String,
    settings: Value,
    state: Mutex<SessionState>,
    changes: watch::Sender<()>,
    epoch: CheckEpoch,
    log: ServerLog,
    /// Whether its toolchain lacked the standard library's source when it was started.
    lacks_library: bool,
}

impl Session {
    pub(crate) fn new(
        entry: Arc<ServerEntry>,
        root: &str,
        root_uri: &str,
        settings: Value,
        epoch: CheckEpoch,
        log: ServerLog,
        lacks_library: bool,
    ) -> Self {
        let state = SessionState {
            capabilities: Capabilities::from_initialize(&Value::Null),
            documents: Documents::default(),
            diagnostics: Store::new(entry.settle(), DiskCheck::new(entry.on_save.clone())),
            readiness: Readiness::new(entry.ready.clone(), Instant::now()),
            tick: 0,
            change: LastChange { tick: 0, at: Instant::now() },
            disk_change: 0,
            any_disk_change: 0,
            unindexed: BTreeSet::new(),
            unwatched: UnwatchedChanges::default(),
            versioned: false,
            unversioned: false,
            questions: Questions::default(),
            published: Instant::now(),
            searches: 0,
            misread: BTreeSet::new(),
            ended: false,
            ending: None,
            // A server that drops repeated empty lists republishes after every change.
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
            lacks_library,
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

    /// Notes a search; it ends when the returned guard is dropped.
    pub(crate) fn begin_search(self: &Arc<Self>) -> Search {
        self.state().searches += 1;
        Search(Arc::clone(self))
    }

    /// Wakes all tasks that wait for a change of state.
    pub(crate) fn wake(&self) {
        self.changes.send_replace(());
    }

    /// Sees every change from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The server has ended: removes its diagnostics and ends all waits.
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
            state.diagnostics.clear();
            held
        };
        if held {
            self.epoch.advance();
        }
        self.wake();
    }

    fn published(&self, params: &Payload) -> Result<(), Closed> {
        let Some(mut published) = from_protocol::published(params) else {
            tracing::debug!(server = %self.entry.id, "ignored invalid diagnostics");
            return Ok(());
        };
        let changed = {
            let mut state = self.state();
            self.drop_false(&state, &mut published.items);
            // What tsserver answers is published again, later and in parts.
            if state.ended || state.capabilities.runs_tsserver || self.entry.ignores_publishes {
                return Ok(());
            }
            match published.version {
                Some(_) => state.versioned = true,
                None => state.unversioned = true,
            }
            state.published = Instant::now();
            state.readiness.diagnostics_arrived(Instant::now());
            let document = state.documents.get(&published.key);
            let again =
                document.is_some_and(|one| state.is_answered_for_itself(one) && !state.is_answered(one));
            state.republishes |= again;
            if self.is_part_of_others(&published.key) {
                let has_errors = published.items.iter().any(|one| one.severity() == Severity::Error);
                if !has_errors {
                    state.misread.remove(&published.key);
                } else if state.misread.len() < MAX_MISREAD {
                    state.misread.insert(published.key.clone());
                }
            }
            let tick = state.next_tick();
            let state = &mut *state;
            let changed = state.diagnostics.push(
                &published.key,
                published.version,
                published.items,
                state.documents.get(&published.key),
                tick,
                Instant::now(),
            );
            if state.diagnostics.overflowed {
                return Err(Closed::TooManyDiagnostics);
            }
            changed
        };
        if changed {
            self.epoch.advance();
        }
        self.wake();
        Ok(())
    }

    /// Whether it cannot expand the macros of the standard library: it then finds nothing inside of them.
    pub(crate) fn lacks_library(&self) -> bool {
        self.lacks_library || self.log.was_seen()
    }

    /// Removes what a server without the standard library's source reports by itself: it takes `None` for a variable. What
    /// the compiler finds in the saved files stays.
    pub(crate) fn drop_false(&self, state: &SessionState, items: &mut Vec<Diagnostic>) {
        if self.lacks_library() {
            items.retain(|one| state.diagnostics.disk.made(one));
        }
    }

    fn is_part_of_others(&self, key: &str) -> bool {
        self.entry.projects.is_some_and(|kind| kind.is_part_of_others(key.into()))
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

/// A running request that is never cancelled.
pub(crate) struct Search(Arc<Session>);

impl Drop for Search {
    fn drop(&mut self) {
        self.0.state().searches -= 1;
        self.0.wake();
    }
}

impl Peer for Session {
    fn notification(&self, method: &str, params: Payload) -> Result<(), Closed> {
        match method {
            "textDocument/publishDiagnostics" => self.published(&params)?,
            "$/progress" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                let mut state = self.state();
                let (tick, now) = (state.next_tick(), Instant::now());
                state.readiness.progress(&params, now);
                state.diagnostics.disk.progress(&params, tick, now);
                drop(state);
                self.wake();
            }
            "experimental/serverStatus" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                let mut state = self.state();
                let (tick, now) = (state.next_tick(), Instant::now());
                let was_quiescent = state.readiness.is_quiescent();
                state.readiness.server_status(&params, now);
                state.diagnostics.disk.server_status(&params);
                if !was_quiescent && state.readiness.is_quiescent() {
                    state.diagnostics.disk.note_ready(tick, now);
                }
                drop(state);
                self.wake();
            }
            "window/logMessage" | "window/showMessage" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                if let Some(text) = params.get("message").and_then(Value::as_str) {
                    self.log.push(text);
                    if self.entry.exit_message.as_deref().is_some_and(|part| text.contains(part)) {
                        return Err(Closed::WorkerExited);
                    }
                    let awaited = self.state().readiness.log_message(text, Instant::now());
                    if awaited {
                        self.wake();
                    }
                }
            }
            // Telemetry and custom notifications are ignored.
            _ => {}
        }
        Ok(())
    }

    fn request(&self, method: &str, params: Payload) -> Result<Value, RpcError> {
        match method {
            "workspace/configuration" => Ok(self.configuration(&params)),
            "workspace/workspaceFolders" => Ok(json!([{ "uri": self.root_uri, "name": self.root }])),
            "client/registerCapability" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                let all = {
                    let mut state = self.state();
                    state.unwatched.ask_again();
                    state.capabilities.register(&params, &self.root)
                };
                self.wake();
                if all {
                    Ok(Value::Null)
                } else {
                    Err(RpcError::new(RpcError::INTERNAL_ERROR, "too many registrations"))
                }
            }
            "client/unregisterCapability" => {
                let params: Value = from_protocol::params(&params).unwrap_or_default();
                self.state().capabilities.unregister(&params);
                self.wake();
                Ok(Value::Null)
            }
            // Servers cannot edit through us.
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
            _ => Err(RpcError::method_not_found()),
        }
    }
}
