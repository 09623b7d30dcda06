//! Keeps servers in step with the disk: what changed there is told to them, at once when someone asks, else soon.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::epoch::Epoch;
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};

use super::{Inner, Orchestrator, lock, read_text};
use crate::call::Call;
use crate::client::{Client, FileChange, FileChangeKind};

/// How long changes are gathered before servers hear of them by themselves. Epochs never wait for this.
const GATHER: Duration = Duration::from_millis(100);
/// How long telling may take when nobody waits for it.
const TELL: Duration = Duration::from_secs(30);

impl Orchestrator {
    /// Waits until everything that happened on disk before this call is known to us and told to the servers. `false` when
    /// the call ended first.
    pub async fn catch_up(&self, call: &Call) -> bool {
        let Some(watch) = &self.0.watch else {
            return true;
        };
        watch.flush(call).await && self.0.tell(call).await
    }
}

impl Orchestrator {
    /// The text of a file, with everything else that happened on disk before this call known to the servers.
    pub(super) async fn read_now(&self, path: &WorkspacePath, call: &Call) -> Result<LineIndex, ReadError> {
        let (lines, _) = tokio::join!(self.read(path), self.catch_up(call));
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
        }
    }

    /// Tells servers of changes that nobody asked about, until the workspace is closed.
    pub(super) async fn follow(self: Arc<Self>) {
        let Some(watch) = &self.watch else {
            return;
        };
        let gathered = async {
            loop {
                watch.changed().await;
                tokio::time::sleep(GATHER).await;
                self.tell(&Call::within(TELL)).await;
            }
        };
        tokio::select! {
            () = gathered => {}
            () = self.closing.cancelled() => {}
        }
    }

    /// Tells the servers what changed. One at a time: who comes second finds all told.
    async fn tell(&self, call: &Call) -> bool {
        let Ok(_turn) = call.bound(self.telling.lock()).await else {
            return false;
        };
        let changes = match &self.watch {
            Some(watch) => watch.take_changes(),
            None => return true,
        };
        if changes.is_empty() {
            return true;
        }
        let changes: Vec<FileChange> = changes
            .into_iter()
            .filter_map(|(path, kind)| {
                let target = self.gate.admit_target(&path).ok()?;
                Some(FileChange { path: target, kind })
            })
            .collect();
        join_all(self.live().iter().map(|client| self.tell_one(client, &changes, call))).await;
        true
    }

    /// A server that does not listen in time hears of it when it is asked the next time: documents are compared with the
    /// disk then.
    async fn tell_one(&self, client: &Client, changes: &[FileChange], call: &Call) {
        let _ = client.files_changed(call, changes).await;
        for change in changes {
            if client.open_text(change.path.as_str()).is_none() {
                continue;
            }
            if change.kind == FileChangeKind::Deleted {
                let _ = client.close(call, change.path.as_str()).await;
            } else if let Ok(lines) = read_on_blocking_thread(self, &change.path).await {
                let _ = client.sync(call, &change.path, &lines, true).await;
            }
        }
    }
}

async fn read_on_blocking_thread(inner: &Inner, path: &WorkspacePath) -> Result<LineIndex, ()> {
    let (gate, path) = (inner.gate.clone(), path.clone());
    match tokio::task::spawn_blocking(move || read_text(&gate, &path)).await {
        Ok(Ok(lines)) => Ok(lines),
        _ => Err(()),
    }
}
