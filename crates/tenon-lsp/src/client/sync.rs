//! Keeps a server's documents in sync: opens, changes, saves and closes them, and reports files that changed on disk.
//!
//! Invariant: our state of a server matches what was queued for it. A place in the queue is reserved first; then the state
//! changes and the frames are sent without a wait in between, so that a cancelled call cannot separate the two. Nothing is
//! sent while the server runs a search that is never cancelled (decision 0321).

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::Client;
use super::documents::Update;
use crate::call_context::CallContext;
use crate::message;
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
        let (update, version, evicted, lost, save, open_close) = {
            let mut state = self.session.state();
            let state = &mut *state;
            if state.ended {
                return Err(Closed::EndOfStream.into());
            }
            let (encoding, sync) = (state.capabilities.encoding, state.capabilities.sync);
            let before = state.diagnostics.current(key, state.documents.get(key));
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
            let version = document.version;
            let evicted = state.documents.evict();
            for document in &evicted {
                lost |= state.diagnostics.closed(document.path.as_str());
            }
            let capabilities = &state.capabilities;
            (update, version, evicted, lost, capabilities.save, capabilities.open_close)
        };
        let synced = Synced { client: self, path: path.clone(), version };
        let uri = path.uri().as_str();
        let mut frames = Frames::default();
        match &update {
            Update::Nothing => {}
            Update::Open if open_close => frames.add(OPEN, &self.opened(path, lines, version))?,
            Update::Open => {}
            Update::Change(_) if open_close && self.entry().reopens => {
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
        if saved && save && matches!(update, Update::Change(_)) {
            frames.add("textDocument/didSave", &json!({ "textDocument": { "uri": uri } }))?;
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

    /// Closes and opens a document, so that a server that does not repeat empty lists publishes again, unless a wait has it
    /// pinned. The server drops diagnostics that it had not published yet.
    pub(crate) async fn reopen(&self, call: &CallContext, path: &WorkspacePath) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let room = self.connection.reserve(call).await?;
        let again = {
            let mut state = self.session.state();
            let tick = state.next_tick();
            let reopens = self.entry().reopens && state.capabilities.open_close;
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

    fn opened(&self, path: &WorkspacePath, lines: &LineIndex, version: i32) -> Value {
        let language = self.entry().language_id(path.as_path()).unwrap_or("plaintext");
        json!({ "textDocument": {
            "uri": path.uri().as_str(), "languageId": language, "version": version, "text": &**lines.text(),
        }})
    }

    /// Closes a document if it is open and not pinned.
    pub(crate) async fn close(&self, call: &CallContext, key: &str) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        self.wait_for_searches(call).await?;
        let room = self.connection.reserve(call).await?;
        let (document, lost) = {
            let mut state = self.session.state();
            if state.documents.get(key).is_none_or(|document| document.pins > 0) {
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

    /// Whether a changed file concerns the server but is not watched by it. Such a file counts as changed, since the caller opens
    /// it next.
    pub(crate) fn misses_change(&self, change: &FileChange) -> bool {
        let concerned =
            self.entry().language_id(change.path.as_path()).is_some() && self.has(Capability::References);
        let mut state = self.session.state();
        let blind = concerned
            && change.kind != FileChangeKind::Deleted
            && !state.capabilities.watches(change.path.as_str());
        if blind {
            state.note_change();
        }
        blind
    }

    /// Reports changed files to the server, those that it watches.
    pub(crate) async fn files_changed(
        &self,
        call: &CallContext,
        changes: &[FileChange],
    ) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        self.wait_for_searches(call).await?;
        let events: Vec<Value> = {
            let mut state = self.session.state();
            let events: Vec<Value> = changes
                .iter()
                .filter(|change| state.capabilities.watches(change.path.as_str()))
                .map(|change| json!({ "uri": change.path.uri().as_str(), "type": change.kind as u8 }))
                .collect();
            if !events.is_empty() {
                state.note_change();
            }
            events
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
