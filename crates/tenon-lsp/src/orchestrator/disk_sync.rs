//! Sends changes on disk to the servers: before a request, else soon after the change.
//!
//! Changes are queued for every server and sent to each one separately: a server that does not read delays no other, and no
//! server gets a request before its pending changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::epoch::Epoch;
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};
use tenon_servers::registry::ServerEntry;
use tokio::task::spawn_blocking;

use super::instance::ServerInstance;
use super::{Inner, Orchestrator, UnsavedTexts, dependents, lock, read_text};
use crate::call_context::{CallContext, Interrupted};
use crate::client::{Client, FileChangeKind, gap_reason};
use crate::model::GapReason;
use crate::transport::RequestError;
use crate::watch::{UNFINISHED_EDIT, Watch};

/// How long changes are collected before they are sent without a request. Epochs never wait for this.
const GATHER: Duration = Duration::from_millis(100);
/// How long sending may take without a waiting request. After a timeout the changes are sent with the next request.
const TELL: Duration = Duration::from_secs(2);
/// Up to this many changes are handled in place; more on a blocking thread.
const FEW: usize = 16;
/// The most changed files to open in a server that does not watch files.
const MAX_SHOWN: usize = 20;

impl Orchestrator {
    /// Waits until all earlier changes on disk are known: epochs have advanced, and every server gets the changes before its next
    /// request. `false` if the call ended first, or the disk cannot be watched.
    pub async fn catch_up(&self, call: &CallContext) -> bool {
        let Some(watch) = &self.0.watch else {
            return !self.0.cannot_watch;
        };
        if call.is_caught_up() {
            return true;
        }
        let flushed = watch.flush(call).await;
        let generation = watch.generation();
        if self.0.generation.swap(generation, Ordering::SeqCst) != generation {
            self.0.start_over();
        }
        let changed = self.0.dependency_folders.changed();
        for file in &changed {
            tracing::info!(file, "installed packages changed; restarting servers");
            self.0.end_servers(|entry| entry.language_id(Utf8Path::new(file)).is_some());
        }
        if !changed.is_empty() {
            // A package may be a server, or decide which one runs.
            self.refresh_servers().await;
        }
        self.0.note_changes(watch).await;
        flushed
    }

    /// The text of a file, after [`Orchestrator::catch_up`].
    pub(super) async fn read_now(
        &self,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Result<LineIndex, ReadError> {
        // Read the file while the watcher catches up.
        let (_, lines) = tokio::join!(self.catch_up(call), self.read(path));
        lines
    }
}

impl Inner {
    /// Another folder has taken the place of a root: ends all servers, which still have the old one, and forgets what is known
    /// about it. The next question starts new servers.
    fn start_over(self: &Arc<Self>) {
        tracing::warn!("the workspace root was replaced; starting over");
        self.end_servers(|_| true);
        lock(&self.passed).unsaved.clear();
        lock(&self.recent).clear();
        *lock(&self.users) = dependents::DependentsCache::default();
    }

    /// Ends servers; the next question starts them again.
    fn end_servers(self: &Arc<Self>, chosen: impl Fn(&ServerEntry) -> bool) {
        let (polite, grace) = (self.timeouts.polite, self.timeouts.grace);
        lock(&self.instances).retain(|_, instance| {
            let ends = chosen(&instance.entry);
            if ends {
                let instance = Arc::clone(instance);
                self.tasks.spawn(async move { instance.shutdown(polite, grace).await });
            }
            !ends
        });
        self.epochs.advance(Epoch::Text);
        self.epochs.advance(Epoch::Fs);
    }

    /// Ends servers that learn of a change only from open documents, after more changes than are opened. A new one reads the
    /// files again.
    fn end_servers_after(self: &Arc<Self>, changes: &BTreeMap<Utf8PathBuf, FileChangeKind>) {
        self.end_servers(|entry| {
            let read = changes.keys().filter(|path| entry.language_id(path).is_some());
            entry.rebuilds && read.count() > MAX_SHOWN
        });
    }

    /// Notes that servers see a different text than the disk, or the disk's text again. Both may change results without an event
    /// on disk.
    pub(super) fn note_unsaved(&self, path: &WorkspacePath, shown: Option<(u64, &LineIndex)>) {
        self.set_unsaved(&mut lock(&self.passed).unsaved, path, shown);
    }

    pub(super) fn set_unsaved(
        &self,
        unsaved: &mut UnsavedTexts,
        path: &WorkspacePath,
        shown: Option<(u64, &LineIndex)>,
    ) {
        let before = match shown {
            Some((order, lines)) => unsaved.insert(path.clone(), (order, Arc::clone(lines.text()))),
            None if unsaved.is_empty() => return,
            None => unsaved.remove(path),
        };
        if before.as_ref().map(|(_, text)| text) != shown.map(|(_, lines)| lines.text()) {
            self.epochs.advance(Epoch::Text);
            lock(&self.journal).file_changed(path);
            lock(&self.users).changed(path);
            lock(&self.baselines).note_change(path);
        }
    }

    /// Sends changes to the servers in the background, until the workspace is closed.
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
        // Another task is already sending, or a text is tried. What is not sent then is sent with the next request.
        if instance.sending_changes.try_lock().is_err() {
            return;
        }
        let Ok(_texts) = instance.texts.try_read() else {
            return;
        };
        let mut call = CallContext::within(TELL);
        call.cancel = self.closing.clone();
        // On a timeout the changes are sent with the next request; those that are being checked, by their check.
        let held = self.in_flight.without(&[]);
        let _ = self.send_changes_but(&held, &instance, &client, &call).await;
    }

    /// Queues the changes on disk for every server, also for those that are still starting: they may have read files already.
    async fn note_changes(self: &Arc<Self>, watch: &Watch) {
        // One at a time, so that a second caller finds all changes queued.
        let turn = Arc::clone(&self.noting).lock_owned().await;
        let changes = watch.take_changes();
        if changes.is_empty() {
            return;
        }
        if changes.len() > MAX_SHOWN {
            self.end_servers_after(&changes);
        }
        let reconfigures = |entry: &ServerEntry| changes.keys().any(|path| entry.is_configured_by(path));
        if lock(&self.instances).values().any(|one| one.entry.filters_database && reconfigures(&one.entry)) {
            // It would notice within seconds, and reads a copy before trust, which is made when it starts.
            self.end_servers(|entry| entry.filters_database && reconfigures(entry));
        }
        let few = changes.len() <= FEW;
        let inner = Arc::clone(self);
        let note = move || {
            let unfinished =
                |path: &Utf8PathBuf| path.file_name().is_some_and(|name| name.starts_with(UNFINISHED_EDIT));
            for (path, kind) in changes.into_iter().filter(|(path, _)| !unfinished(path)) {
                if let Ok(path) = inner.gate.admit_changed(path) {
                    inner.note_change(&path, kind);
                }
            }
            drop(turn);
        };
        if few {
            note();
        } else {
            // Continues even if the caller leaves: changes that were taken must be queued.
            let _ = spawn_blocking(note).await;
        }
    }

    fn note_change(&self, path: &WorkspacePath, kind: FileChangeKind) {
        // A write to the file replaces a text that was passed before.
        self.note_unsaved(path, None);
        lock(&self.journal).file_changed(path);
        lock(&self.users).changed(path);
        lock(&self.baselines).note_change(path);
        self.note_configuration_change(path);
        for instance in lock(&self.instances).values().filter(|instance| !instance.is_broken()) {
            lock(&instance.pending_changes).note(path, kind);
        }
    }

    /// Sends all pending changes to a server. Changes that were not sent stay pending.
    pub(super) async fn send_changes(
        &self,
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), GapReason> {
        self.send_changes_but(&[], instance, client, call).await
    }

    /// Sends all pending changes but those of the held files, which stay pending.
    pub(super) async fn send_changes_but(
        &self,
        held: &[WorkspacePath],
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), GapReason> {
        if lock(&instance.pending_changes).is_empty_without(held) && !client.has_unsent_changes() {
            return Ok(());
        }
        let turn = call.bound(instance.sending_changes.lock()).await.map_err(|_| GapReason::Pending)?;
        self.send_changes_without(held, instance, client, call).await?;
        drop(turn);
        Ok(())
    }

    /// Sends all changes that are pending now, but those of the held files. The caller holds `sending_changes`.
    pub(super) async fn send_changes_without(
        &self,
        held: &[WorkspacePath],
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), GapReason> {
        // Once more for what the server asked to watch meanwhile, not until nothing is pending: a program that keeps
        // changing files would keep the call waiting.
        for _ in 0..2 {
            if lock(&instance.pending_changes).is_empty_without(held) && !client.has_unsent_changes() {
                break;
            }
            self.send_batch(held, instance, client, call).await.map_err(|error| gap_reason(&error))?;
        }
        Ok(())
    }

    async fn send_batch(
        &self,
        held: &[WorkspacePath],
        instance: &ServerInstance,
        client: &Client,
        call: &CallContext,
    ) -> Result<(), RequestError> {
        let changes = lock(&instance.pending_changes).begin(held);
        // First, since servers do not look for a file that is open.
        for change in changes.iter().filter(|change| change.kind == FileChangeKind::Deleted) {
            client.forget(call, &change.path).await?;
        }
        client.files_changed(call, &changes).await?;
        let (mut opened, mut not_opened) = (0, 0);
        for change in &changes {
            if client.open_text(change.path.as_str()).is_none() {
                // The server would notice the change by itself, but too late.
                if !client.needs_open(change) {
                    continue;
                }
                if opened == MAX_SHOWN {
                    not_opened += 1;
                    continue;
                }
                opened += 1;
            }
            let unsaved = lock(&self.passed).unsaved.get(&change.path).cloned();
            let saved = unsaved.is_none();
            // The order is that of the text, so that it never replaces one that was passed meanwhile.
            let ordered = match &unsaved {
                Some((order, _)) => call.clone().with_text_order(*order),
                None => call.clone().in_order(),
            };
            let (gate, path) = (self.gate.clone(), change.path.clone());
            let lines = match unsaved {
                Some((_, text)) => Some(LineIndex::new(text)),
                None => spawn_blocking(move || read_text(&gate, &path, None).ok()).await.unwrap_or_default(),
            };
            match lines {
                Some(lines) => match client.sync(&ordered, &change.path, &lines, saved).await {
                    Err(RequestError::Interrupted(Interrupted::Cancelled)) => call.check()?,
                    synced => {
                        drop(synced?);
                        client.note_shown(&change.path);
                    }
                },
                // Removed, or not text any more.
                None => client.close(call, change.path.as_str()).await?,
            }
        }
        if opened > 0 {
            client.note_new_files(call, not_opened == 0).await?;
        }
        lock(&instance.pending_changes).mark_sent();
        Ok(())
    }
}
