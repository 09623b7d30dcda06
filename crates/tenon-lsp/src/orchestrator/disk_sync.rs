//! Keeps servers in step with the disk: what changed there is told to them, at once when someone asks, else soon.
//!
//! Changes are noted for every server and told to each on its own: one that does not listen keeps nobody else waiting, and
//! none is asked before it has been told.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use tenon_contract::epoch::Epoch;
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};
use tokio::task::spawn_blocking;

use super::instance::ServerInstance;
use super::{Inner, Orchestrator, lock, read_text};
use crate::call_context::CallContext;
use crate::client::{Client, FileChangeKind, gap_reason};
use crate::model::GapReason;
use crate::transport::RequestError;
use crate::watch::{UNFINISHED_EDIT, Watch};

/// How long changes are gathered before servers hear of them by themselves. Epochs never wait for this.
const GATHER: Duration = Duration::from_millis(100);
/// How long a server may take to listen when nobody waits for it. It hears of the changes again when it is asked.
const TELL: Duration = Duration::from_secs(2);
/// Changes up to this many are looked at where they are noted; a checkout's are handed to a thread that may block.
const FEW: usize = 16;
/// Changed files that are shown to a server which does not want to hear of changes.
const MAX_SHOWN: usize = 20;

impl Orchestrator {
    /// Waits until everything that happened on disk before this call is known: epochs have moved, and no server answers a
    /// question any more before it is told. `false` when the call ended first.
    pub async fn catch_up(&self, call: &CallContext) -> bool {
        let Some(watch) = &self.0.watch else {
            return true;
        };
        if call.is_caught_up() {
            return true;
        }
        let flushed = watch.flush(call).await;
        self.0.note_changes(watch).await;
        flushed
    }

    /// The text of a file, with everything else that happened on disk before this call known.
    pub(super) async fn read_now(
        &self,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LineIndex, ReadError> {
        // The file is read while the watch's thread does its part.
        let (_, lines) = tokio::join!(self.catch_up(call), self.read(path));
        lines
    }
}

impl Inner {
    /// Takes note of a text that servers are shown instead of the one on disk, or that they see the disk's again: both
    /// change what follows from the code, and no event on disk says so.
    pub(super) fn note_unsaved(&self, path: &WorkspacePath, shown: Option<&LineIndex>) {
        let mut unsaved = lock(&self.unsaved);
        let before = match shown {
            Some(lines) => unsaved.insert(path.clone(), Arc::clone(lines.text())),
            None if unsaved.is_empty() => return,
            None => unsaved.remove(path),
        };
        if before.as_ref() != shown.map(LineIndex::text) {
            self.epochs.advance(Epoch::Text);
            lock(&self.users).changed(path);
        }
    }

    /// Tells servers of changes that nobody asked about, until the workspace is closed.
    pub(super) async fn sync_with_disk(self: Arc<Self>) {
        let Some(watch) = &self.watch else {
            return;
        };
        let gathered = async {
            loop {
                watch.changed().await;
                tokio::time::sleep(GATHER).await;
                self.note_changes(watch).await;
                let instances: Vec<Arc<ServerInstance>> = lock(&self.instances).values().cloned().collect();
                for instance in instances {
                    self.tasks.spawn(Arc::clone(&self).send_changes_soon(instance));
                }
            }
        };
        tokio::select! {
            () = gathered => {}
            () = self.closing.cancelled() => {}
        }
    }

    async fn send_changes_soon(self: Arc<Self>, instance: Arc<ServerInstance>) {
        let Some(client) = instance.live() else {
            return;
        };
        // Who is telling it already goes on until all is told.
        if instance.sending_changes.try_lock().is_err() {
            return;
        }
        let mut call = CallContext::within(TELL);
        call.cancel = self.closing.clone();
        // A server that does not listen hears of it when it is asked.
        let _ = self.send_changes(&instance, &client, &call).await;
    }

    /// Takes what changed on disk and notes it for every server, also those that are still starting: they may have looked
    /// before.
    async fn note_changes(self: &Arc<Self>, watch: &Watch) {
        // One at a time: who comes second finds all noted.
        let turn = Arc::clone(&self.noting).lock_owned().await;
        let changes = watch.take_changes();
        if changes.is_empty() {
            return;
        }
        let few = changes.len() <= FEW;
        let inner = Arc::clone(self);
        let note = move || {
            let unfinished =
                |path: &Utf8PathBuf| path.file_name().is_some_and(|name| name.starts_with(UNFINISHED_EDIT));
            for (path, kind) in changes.into_iter().filter(|(path, _)| !unfinished(path)) {
                if let Ok(path) = inner.gate.admit_target(path) {
                    inner.note_change(&path, kind);
                }
            }
            drop(turn);
        };
        if few {
            note();
        } else {
            // Goes on when nobody waits for it any more: what has been taken must be noted.
            let _ = spawn_blocking(note).await;
        }
    }

    fn note_change(&self, path: &WorkspacePath, kind: FileChangeKind) {
        // Whoever wrote the file knew better than who passed a text for it before.
        self.note_unsaved(path, None);
        lock(&self.users).changed(path);
        for instance in lock(&self.instances).values().filter(|instance| !instance.is_broken()) {
            lock(&instance.pending_changes).note(path, kind);
        }
    }

    /// Tells a server what changed since it was told last. What it does not take stays pending_changes.
    pub(super) async fn send_changes(
        &self,
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), GapReason> {
        if lock(&instance.pending_changes).is_empty() {
            return Ok(());
        }
        let turn = call.bound(instance.sending_changes.lock()).await.map_err(|_| GapReason::Pending)?;
        while !lock(&instance.pending_changes).is_empty() {
            self.send_batch(instance, client, call).await.map_err(|error| gap_reason(&error))?;
        }
        drop(turn);
        Ok(())
    }

    async fn send_batch(
        &self,
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), RequestError> {
        let changes = lock(&instance.pending_changes).begin();
        client.files_changed(call, &changes).await?;
        let mut shown = 0;
        for change in &changes {
            if client.open_text(change.path.as_str()).is_none() {
                // Without a word from us it would notice by itself, but too late.
                if shown == MAX_SHOWN || !client.misses_change(change) {
                    continue;
                }
                shown += 1;
            }
            let unsaved = lock(&self.unsaved).get(&change.path).cloned();
            let saved = unsaved.is_none();
            let (gate, path) = (self.gate.clone(), change.path.clone());
            let lines = match unsaved {
                Some(text) => Some(LineIndex::new(text)),
                None => spawn_blocking(move || read_text(&gate, &path, None).ok()).await.unwrap_or_default(),
            };
            match lines {
                Some(lines) => drop(client.sync(call, &change.path, &lines, saved).await?),
                // Gone, or no text any more.
                None => client.close(call, change.path.as_str()).await?,
            }
        }
        lock(&instance.pending_changes).mark_sent();
        Ok(())
    }
}
