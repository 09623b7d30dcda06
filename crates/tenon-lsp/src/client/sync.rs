//! Keeps a server's documents in sync: opens, changes, saves and closes them, and reports files that changed on disk.
//!
//! Invariant: our state of a server matches what was queued for it. A place in the queue is reserved first; then the state
//! changes and the frames are sent without a wait in between, so that a cancelled call cannot separate the two. Nothing is
//! sent while the server runs a search that is never cancelled (decision 0321).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::Client;
use super::documents::{Document, Update};
use super::session::SessionState;
use crate::call_context::{CallContext, Interrupted};
use crate::message::{self, NoParams};
use crate::transport::{Closed, RequestError};
use tenon_servers::registry::Capability;

impl Client {
    /// Sends a file's text to the server. The returned pin keeps the document open.
    pub(crate) async fn sync(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
    ) -> Result<Synced<'_>, RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let synced = self.sync_in_turn(call, path, lines, saved).await?;
        self.mark_when_seen(call, path).await?;
        drop(turn);
        Ok(synced)
    }

    pub(super) async fn sync_in_turn(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
    ) -> Result<Synced<'_>, RequestError> {
        let key = path.as_str();
        if self.open_text(key).is_none_or(|seen| seen.text() != lines.text()) {
            self.wait_for_searches(call).await?;
        }
        let room = self.connection.reserve(call).await?;
        let (update, version, evicted, lost, include_text, open_close, reopens) = {
            let mut state = self.session.state();
            let state = &mut *state;
            if state.ended {
                return Err(Closed::EndOfStream.into());
            }
            let (encoding, sync) = (state.capabilities.encoding, state.capabilities.sync);
            let known = state.documents.get(key);
            if let (Some(document), Some(order)) = (known, call.text_order())
                && document.order > order
                && document.lines.text() != lines.text()
            {
                // A newer text of the file came first.
                return Err(Interrupted::Cancelled.into());
            }
            let was_saved = known.is_some_and(|document| document.saved);
            let before = state.diagnostics.current(key, known);
            let tick = state.next_tick();
            let update = state.documents.put(path, lines, encoding, sync, tick);
            let mut lost = false;
            if update != Update::Nothing {
                // Opening a document with the text on disk changes nothing for other files.
                if update != Update::Open || !saved {
                    state.note_change_at(tick);
                }
                lost = state.diagnostics.current(key, state.documents.get(key)) != before;
            }
            if update == Update::Open {
                state.readiness.document_opened(Instant::now());
            }
            let document = state.documents.get_mut(key).expect("it was just put");
            document.pins += 1;
            document.saved = saved;
            document.order = call.text_order().unwrap_or(document.order).max(document.order);
            let version = document.version;
            let due = match update {
                Update::Change(_) => true,
                Update::Nothing => !was_saved,
                Update::Open => false,
            };
            let is_ready = state.is_ready(Instant::now());
            let include_text = (saved && (due || is_ready && state.diagnostics.disk.is_outdated()))
                .then(|| state.capabilities.wants_save(key, self.language(path)))
                .flatten();
            if include_text.is_some() {
                state.diagnostics.disk.note_save(tick, Instant::now());
            }
            let evicted = state.documents.evict();
            for document in &evicted {
                lost |= state.diagnostics.closed(document.path.as_str());
            }
            let open_close = state.capabilities.open_close;
            (update, version, evicted, lost, include_text, open_close, open_close && state.reopens())
        };
        let synced = Synced { client: self, path: path.clone(), version };
        let uri = path.uri().as_str();
        let mut frames = Frames::default();
        if update != Update::Nothing
            && let Some(barrier) = self.barrier_before_change(path)?
        {
            frames.0.extend_from_slice(&barrier);
        }
        match &update {
            Update::Nothing => {}
            Update::Open if open_close => frames.add(OPEN, &self.opened(path, lines, version))?,
            Update::Open => {}
            Update::Change(_) if reopens => {
                frames.add(CLOSE, &closed(path))?;
                frames.add(OPEN, &self.opened(path, lines, version))?;
            }
            Update::Change(changes) => {
                let change = json!({
                    "textDocument": { "uri": uri, "version": version }, "contentChanges": changes,
                });
                frames.add("textDocument/didChange", &change)?;
            }
        }
        if let Some(include_text) = include_text {
            let mut save = json!({ "textDocument": { "uri": uri } });
            if include_text {
                save["text"] = json!(&**lines.text());
            }
            frames.add("textDocument/didSave", &save)?;
        }
        for document in &evicted {
            frames.add(CLOSE, &closed(&document.path))?;
        }
        if let Some(frames) = frames.joined() {
            room.send(frames);
        }
        if lost {
            self.session.epoch().advance();
        }
        self.session.wake();
        Ok(synced)
    }

    /// Shows the text on disk again after a text that was only tried. The file was not saved meanwhile, so the server is not
    /// told that it was.
    pub(crate) async fn restore(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Result<(), RequestError> {
        drop(self.sync(call, path, lines, false).await?);
        if let Some(document) = self.session.state().documents.get_mut(path.as_str()) {
            document.saved = true;
        }
        Ok(())
    }

    /// Keeps a document open, if it is open.
    pub(crate) fn pin(&self, path: &WorkspacePath) -> Option<Synced<'_>> {
        let mut state = self.session.state();
        let document = state.documents.get_mut(path.as_str())?;
        document.pins += 1;
        Some(Synced { client: self, path: path.clone(), version: document.version })
    }

    /// Keeps exactly these of the open documents open, whatever else is opened.
    pub(crate) fn hold_only(&self, held: &BTreeSet<&str>) {
        self.session.state().documents.hold_only(held);
    }

    /// Closes and opens a document, so that a server that does not repeat empty lists publishes again, unless a wait has it
    /// pinned. The server drops diagnostics that it had not published yet.
    pub(crate) async fn reopen(&self, call: &CallContext, path: &WorkspacePath) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let room = self.connection.reserve(call).await?;
        let again = {
            let mut state = self.session.state();
            let tick = state.next_tick();
            let reopens = state.reopens() && state.capabilities.open_close;
            if reopens { state.documents.open_again(path.as_str(), tick) } else { None }
        };
        if let Some((version, lines)) = again {
            let mut frames = Frames::default();
            frames.add(CLOSE, &closed(path))?;
            frames.add(OPEN, &self.opened(path, &lines, version))?;
            room.send(frames.0);
            self.mark_when_seen(call, path).await?;
        }
        drop(turn);
        Ok(())
    }

    /// Makes the server report on a document again if other files changed since it was opened or changed: diagnostics that
    /// arrived since may still be about the old state.
    pub(super) async fn refresh(&self, call: &CallContext, path: &WorkspacePath) -> Result<(), RequestError> {
        let (reopens, rebuilds) = (self.session.state().reopens(), self.entry().rebuilds);
        if !reopens && !rebuilds {
            return Ok(());
        }
        let turn = call.bound(self.turns.lock()).await?;
        let room = self.connection.reserve(call).await?;
        let again = {
            let mut state = self.session.state();
            let is_old = |document: &Document| self.is_old(&state, document);
            match state.documents.get(path.as_str()).is_some_and(is_old) && state.capabilities.open_close {
                true => {
                    let tick = state.next_tick();
                    state.documents.show_again(path.as_str(), tick)
                }
                false => None,
            }
        };
        if let Some((version, lines)) = again {
            let mut frames = Frames::default();
            if reopens {
                frames.add(CLOSE, &closed(path))?;
                frames.add(OPEN, &self.opened(path, &lines, version))?;
            } else {
                let rebuild = json!({
                    "textDocument": { "uri": path.uri().as_str(), "version": version }, "contentChanges": [],
                    "forceRebuild": true, "wantDiagnostics": true,
                });
                frames.add("textDocument/didChange", &rebuild)?;
            }
            room.send(frames.0);
            self.session.wake();
            self.mark_when_seen(call, path).await?;
        }
        drop(turn);
        Ok(())
    }

    /// Whether the server may report on a state from before a change elsewhere until the document is shown again. Building a
    /// file again is slow, so only what the server cannot see makes it necessary.
    pub(super) fn is_old(&self, state: &SessionState, document: &Document) -> bool {
        match (state.reopens(), self.entry().rebuilds) {
            (true, _) => document.changed < state.change.tick,
            (false, true) => document.changed < state.disk_change,
            (false, false) => false,
        }
    }

    fn language(&self, path: &WorkspacePath) -> &str {
        self.entry().language_id(path.as_path()).unwrap_or("plaintext")
    }

    fn opened(&self, path: &WorkspacePath, lines: &LineIndex, version: i32) -> Value {
        json!({ "textDocument": {
            "uri": path.uri().as_str(), "languageId": self.language(path), "version": version, "text": &**lines.text(),
        }})
    }

    /// Closes a document if it is open. A check that waits for its diagnostics ends.
    pub(crate) async fn close(&self, call: &CallContext, key: &str) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        self.wait_for_searches(call).await?;
        let room = self.connection.reserve(call).await?;
        let (document, lost) = {
            let mut state = self.session.state();
            if state.documents.get(key).is_none() {
                return Ok(());
            }
            (state.documents.remove(key), state.diagnostics.closed(key))
        };
        if let Some(document) = document {
            room.send(message::notification(CLOSE, &closed(&document.path))?);
        }
        if lost {
            self.session.epoch().advance();
        }
        self.session.wake();
        drop(turn);
        Ok(())
    }

    /// The open documents with the text that the server sees.
    pub(crate) fn open_documents(&self) -> Vec<(WorkspacePath, LineIndex)> {
        self.session
            .state()
            .documents
            .iter()
            .map(|document| (document.path.clone(), document.lines.clone()))
            .collect()
    }

    /// The text that the server sees for a file, if it is open.
    pub(crate) fn open_text(&self, key: &str) -> Option<LineIndex> {
        let state = self.session.state();
        state.documents.get(key).map(|document| document.lines.clone())
    }

    /// The text that the server has of a document, and its version.
    pub(crate) fn open_version(&self, key: &str) -> Option<(LineIndex, i32)> {
        let state = self.session.state();
        state.documents.get(key).map(|document| (document.lines.clone(), document.version))
    }

    /// The text that the server has of a document, and its order.
    pub(crate) fn open_text_order(&self, key: &str) -> Option<(LineIndex, u64)> {
        let state = self.session.state();
        state.documents.get(key).map(|document| (document.lines.clone(), document.order))
    }

    /// Whether the server sees this change only, or sooner, if the file is open.
    pub(crate) fn needs_open(&self, change: &FileChange) -> bool {
        if change.kind == FileChangeKind::Deleted || !self.reads(change) {
            return false;
        }
        let lists_late = self.entry().opens_new_files && change.kind == FileChangeKind::Created;
        lists_late || !self.session.state().capabilities.watches(change.path.as_str())
    }

    /// Whether a changed file may affect the server's answers about other files.
    fn reads(&self, change: &FileChange) -> bool {
        self.entry().language_id(change.path.as_path()).is_some() && self.has(Capability::References)
    }

    /// Whether the server began to watch files that changed before.
    pub(crate) fn has_unsent_changes(&self) -> bool {
        self.session.state().unwatched.is_asked_again()
    }

    /// Files were created in a server that lists its files late. If they are not open, it is not ready until it has listed them.
    pub(crate) async fn note_new_files(
        &self,
        call: &CallContext,
        are_open: bool,
    ) -> Result<(), RequestError> {
        if !self.entry().opens_new_files {
            return Ok(());
        }
        self.session.state().readiness.lists_again(are_open, Instant::now());
        let session = Arc::clone(&self.session);
        let marked = move |_: &_| session.state().readiness.list_was_asked_for();
        self.connection.request_mark(call, "$/tenon/barrier", &NoParams, marked).await
    }

    /// Reports changed files to the server, those that it watches.
    pub(crate) async fn files_changed(
        &self,
        call: &CallContext,
        changes: &[FileChange],
    ) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        self.wait_for_searches(call).await?;
        let is_read = changes.iter().any(|change| self.reads(change));
        let events: Vec<Value> = {
            let mut state = self.session.state();
            let state = &mut *state;
            let told = state.unwatched.watched(&state.capabilities, changes);
            if !changes.is_empty() {
                state.any_disk_change = state.next_tick();
            }
            if !told.is_empty() || is_read {
                state.note_disk_change();
            }
            // Open documents are saved separately.
            if changes.iter().any(|change| {
                state.capabilities.watches(change.path.as_str())
                    && state.documents.get(change.path.as_str()).is_none()
            }) {
                let tick = state.tick;
                state.diagnostics.disk.note_disk_change(tick);
            }
            let event =
                |change: &FileChange| json!({ "uri": change.path.uri().as_str(), "type": change.kind as u8 });
            told.iter().map(event).collect()
        };
        if !events.is_empty() {
            let changes = json!({ "changes": events });
            self.connection.notify(call, "workspace/didChangeWatchedFiles", &changes).await?;
        }
        drop(turn);
        Ok(())
    }
}

const OPEN: &str = "textDocument/didOpen";
const CLOSE: &str = "textDocument/didClose";

fn closed(path: &WorkspacePath) -> Value {
    json!({ "textDocument": { "uri": path.uri().as_str() } })
}

/// Notifications that are sent together.
#[derive(Default)]
struct Frames(BytesMut);

impl Frames {
    fn add<P: Serialize + ?Sized>(&mut self, method: &str, params: &P) -> Result<(), RequestError> {
        self.0.extend_from_slice(&message::notification(method, params)?);
        Ok(())
    }

    fn joined(self) -> Option<Bytes> {
        (!self.0.is_empty()).then(|| self.0.freeze())
    }
}

/// A document in one version that stays open until this is dropped.
pub(crate) struct Synced<'a> {
    pub(super) client: &'a Client,
    pub(super) path: WorkspacePath,
    pub(super) version: i32,
}

impl Synced<'_> {
    pub(crate) fn path(&self) -> &WorkspacePath {
        &self.path
    }
}

impl Drop for Synced<'_> {
    fn drop(&mut self) {
        if let Some(document) = self.client.session.state().documents.get_mut(self.path.as_str()) {
            document.pins = document.pins.saturating_sub(1);
        }
    }
}

/// A kind of change on disk, with the protocol's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FileChangeKind {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl FileChangeKind {
    /// This change combined with an earlier one that was not reported yet.
    #[must_use]
    pub(crate) fn after(self, before: Option<Self>) -> Self {
        match (before, self) {
            (Some(Self::Created), Self::Changed) => Self::Created,
            (Some(Self::Deleted), Self::Created) => Self::Changed,
            (_, now) => now,
        }
    }
}

/// A file that changed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) path: WorkspacePath,
    pub(crate) kind: FileChangeKind,
}
