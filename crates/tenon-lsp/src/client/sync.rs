//! Keeping a server's documents in step: opened, changed, saved, closed, and told of files that changed on disk.

use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::Client;
use super::documents::Update;
use crate::call::Call;
use crate::registry::Capability;
use crate::transport::{Closed, RequestError};

impl Client {
    /// Makes the server know a file's text. The returned pin keeps the document open.
    pub async fn sync(
        &self,
        call: &Call,
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
        call: &Call,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
    ) -> Result<Synced<'_>, RequestError> {
        let key = path.as_str();
        let (update, version, evicted, lost, save, open_close) = {
            let mut known = self.session.known();
            let known = &mut *known;
            if known.ended {
                return Err(Closed::EndOfStream.into());
            }
            let (encoding, sync) = (known.capabilities.encoding, known.capabilities.sync);
            let before = known.diagnostics.current(key, known.documents.get(key));
            let tick = known.next_tick();
            let update = known.documents.put(path, lines, encoding, sync, tick);
            let mut lost = false;
            if update != Update::Nothing {
                // A document that says what the disk says changes nothing for others.
                if update != Update::Open || !saved {
                    known.note_change_at(tick);
                }
                lost = known.diagnostics.current(key, known.documents.get(key)) != before;
            }
            if update == Update::Open {
                known.readiness.document_opened(Instant::now());
            }
            let document = known.documents.get_mut(key).expect("it was just put");
            document.pins += 1;
            let version = document.version;
            let evicted = known.documents.evict();
            for document in &evicted {
                lost |= known.diagnostics.closed(document.path.as_str());
            }
            let capabilities = &known.capabilities;
            (update, version, evicted, lost, capabilities.save, capabilities.open_close)
        };
        let synced = Synced { client: self, path: path.clone(), version };
        if lost {
            self.session.epoch().advance();
        }
        self.session.wake();
        let uri = path.uri().as_str();
        match &update {
            Update::Nothing => {}
            Update::Open if open_close => self.send_open(call, path, lines, version).await?,
            Update::Open => {}
            Update::Change(_) if open_close && self.entry().reopens => {
                self.send_close(call, path).await?;
                self.send_open(call, path, lines, version).await?;
            }
            Update::Change(changes) => {
                let change = json!({
                    "textDocument": { "uri": uri, "version": version }, "contentChanges": changes,
                });
                self.connection.notify(call, "textDocument/didChange", &change).await?;
            }
        }
        if saved && save && matches!(update, Update::Change(_)) {
            let document = json!({ "textDocument": { "uri": uri } });
            self.connection.notify(call, "textDocument/didSave", &document).await?;
        }
        for document in &evicted {
            self.send_close(call, &document.path).await?;
        }
        Ok(synced)
    }

    /// Makes a server that does not repeat empty lists speak again about a document that had nothing wrong, unless someone
    /// waits for it anyway.
    pub(crate) async fn reopen_clean(&self, call: &Call, path: &WorkspacePath) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let again = {
            let mut known = self.session.known();
            let clean =
                known.diagnostics.current(path.as_str(), known.documents.get(path.as_str())).is_empty();
            let tick = known.next_tick();
            let reopens = self.entry().reopens && known.capabilities.open_close && clean;
            if reopens { known.documents.open_again(path.as_str(), tick) } else { None }
        };
        if let Some((version, lines)) = again {
            self.send_close(call, path).await?;
            self.send_open(call, path, &lines, version).await?;
            self.mark_when_seen(call, path).await?;
        }
        drop(turn);
        Ok(())
    }

    async fn send_open(
        &self,
        call: &Call,
        path: &WorkspacePath,
        lines: &LineIndex,
        version: i32,
    ) -> Result<(), RequestError> {
        let language = self.entry().language_id(path.as_path()).unwrap_or("plaintext");
        let document = json!({ "textDocument": {
            "uri": path.uri().as_str(), "languageId": language, "version": version, "text": &**lines.text(),
        }});
        self.connection.notify(call, "textDocument/didOpen", &document).await
    }

    async fn send_close(&self, call: &Call, path: &WorkspacePath) -> Result<(), RequestError> {
        let closed = json!({ "textDocument": { "uri": path.uri().as_str() } });
        self.connection.notify(call, "textDocument/didClose", &closed).await
    }

    /// Closes a document, if it is open and no wait needs it.
    pub async fn close(&self, call: &Call, key: &str) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let (document, lost) = {
            let mut known = self.session.known();
            if known.documents.get(key).is_none_or(|document| document.pins > 0) {
                return Ok(());
            }
            (known.documents.remove(key), known.diagnostics.closed(key))
        };
        if lost {
            self.session.epoch().advance();
        }
        self.session.wake();
        if let Some(document) = document {
            self.send_close(call, &document.path).await?;
        }
        drop(turn);
        Ok(())
    }

    /// The documents that are open, with the text that the server sees.
    pub fn open_documents(&self) -> Vec<(WorkspacePath, LineIndex)> {
        self.session
            .known()
            .documents
            .iter()
            .map(|document| (document.path.clone(), document.lines.clone()))
            .collect()
    }

    /// The text that the server sees for a file, if it is open.
    pub fn open_text(&self, key: &str) -> Option<LineIndex> {
        let known = self.session.known();
        known.documents.get(key).map(|document| document.lines.clone())
    }

    /// Whether a file that changed on disk concerns the server, but its change was not told. Counts as a change then: the
    /// file is about to be shown.
    pub(crate) fn is_blind_to(&self, change: &FileChange) -> bool {
        let concerned =
            self.entry().language_id(change.path.as_path()).is_some() && self.has(Capability::References);
        let mut known = self.session.known();
        let blind = concerned
            && change.kind != FileChangeKind::Deleted
            && !known.capabilities.watches(change.path.as_str());
        if blind {
            known.note_change();
        }
        blind
    }

    /// Tells the server which files changed on disk, those that it asked to hear about.
    pub async fn files_changed(&self, call: &Call, changes: &[FileChange]) -> Result<(), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let events: Vec<Value> = {
            let mut known = self.session.known();
            let events: Vec<Value> = changes
                .iter()
                .filter(|change| known.capabilities.watches(change.path.as_str()))
                .map(|change| json!({ "uri": change.path.uri().as_str(), "type": change.kind as u8 }))
                .collect();
            if !events.is_empty() {
                known.note_change();
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

/// A document that a server knows in one version, kept open as long as this lives.
pub struct Synced<'a> {
    pub(super) client: &'a Client,
    pub(super) path: WorkspacePath,
    pub(super) version: i32,
}

impl Drop for Synced<'_> {
    fn drop(&mut self) {
        if let Some(document) = self.client.session.known().documents.get_mut(self.path.as_str()) {
            document.pins = document.pins.saturating_sub(1);
        }
    }
}

/// What happened to a file on disk, by the protocol's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FileChangeKind {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl FileChangeKind {
    /// What this comes to after something that nobody has heard of yet.
    #[must_use]
    pub fn after(self, before: Option<Self>) -> Self {
        match (before, self) {
            (Some(Self::Created), Self::Changed) => Self::Created,
            (Some(Self::Deleted), Self::Created) => Self::Changed,
            (_, now) => now,
        }
    }
}

/// A file that changed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: WorkspacePath,
    pub kind: FileChangeKind,
}
