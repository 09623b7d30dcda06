//! Edits of one file take turns: written one after the other, and shown to the language servers in the same order.
//!
//! Who writes next ends the wait of who wrote before: what servers think of a text that is gone helps nobody. So ten quick
//! edits cost one wait, and no server is ever shown an older text after a newer one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenon_contract::root::WorkspacePath;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// The turns of one file.
#[derive(Debug, Default)]
pub(super) struct FileLock {
    writing: Arc<tokio::sync::Mutex<()>>,
    showing: Arc<tokio::sync::Mutex<()>>,
    /// Ends the showing that is under way.
    superseded: Mutex<CancellationToken>,
}

/// The turns of all files that are being edited.
#[derive(Debug, Default)]
pub(super) struct FileLocks(Mutex<BTreeMap<WorkspacePath, Weak<FileLock>>>);

/// The right to show a text, for as long as it lives.
pub(super) struct ShowGuard {
    pub(super) superseded: CancellationToken,
    _turn: OwnedMutexGuard<()>,
}

impl FileLocks {
    pub(super) fn of(&self, path: &WorkspacePath) -> Arc<FileLock> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(FileLock::default());
        turns.insert(path.clone(), Arc::downgrade(&turn));
        turn
    }
}

impl FileLock {
    /// The right to read and write the file.
    pub(super) async fn write(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.writing).lock_owned().await
    }

    /// The right to show what was written, once whoever showed the text before has stopped.
    pub(super) async fn show(&self, _written: OwnedMutexGuard<()>) -> ShowGuard {
        let superseded = CancellationToken::new();
        let before = std::mem::replace(
            &mut *self.superseded.lock().unwrap_or_else(PoisonError::into_inner),
            superseded.clone(),
        );
        before.cancel();
        ShowGuard { superseded, _turn: Arc::clone(&self.showing).lock_owned().await }
    }
}
