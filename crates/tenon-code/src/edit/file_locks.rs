//! The order of edits of one file: they are written one after the other, and shown to the language servers in the same order.
//!
//! A new edit ends the wait of the one before it, since diagnostics of a replaced text help no caller. So ten quick edits
//! cost one wait, and no server ever sees an older text after a newer one (decision 0402).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tenon_contract::root::WorkspacePath;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// The locks of one file.
#[derive(Debug, Default)]
pub(super) struct FileLock {
    writing: Arc<tokio::sync::Mutex<()>>,
    showing: Arc<tokio::sync::Mutex<()>>,
    /// Ends the current wait for diagnostics.
    superseded: Mutex<CancellationToken>,
}

/// The locks of all files that are being edited.
#[derive(Debug, Default)]
pub(super) struct FileLocks(Mutex<BTreeMap<WorkspacePath, Weak<FileLock>>>);

/// The right to show a text, until it is dropped.
pub(super) struct ShowGuard {
    /// Cancelled when a newer edit of the file was written.
    pub(super) superseded: CancellationToken,
    _showing: OwnedMutexGuard<()>,
    /// Keeps the file in [`FileLocks`], so that the next edit finds this one.
    _lock: Arc<FileLock>,
}

impl FileLocks {
    pub(super) fn of(&self, path: &WorkspacePath) -> Arc<FileLock> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(path).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(FileLock::default());
        locks.insert(path.clone(), Arc::downgrade(&lock));
        lock
    }
}

impl FileLock {
    /// The right to read and write the file.
    pub(super) async fn lock_for_write(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.writing).lock_owned().await
    }

    /// The right to show what was written, once the edit before it has stopped. Holds the write lock until then.
    pub(super) async fn lock_for_show(self: Arc<Self>, _writing: OwnedMutexGuard<()>) -> ShowGuard {
        let superseded = CancellationToken::new();
        let before = std::mem::replace(
            &mut *self.superseded.lock().unwrap_or_else(PoisonError::into_inner),
            superseded.clone(),
        );
        before.cancel();
        let showing = Arc::clone(&self.showing).lock_owned().await;
        ShowGuard { superseded, _showing: showing, _lock: self }
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;

    #[tokio::test]
    async fn newer_edit_supersedes_the_shown_one_and_waits_for_its_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a").unwrap();
        let locks = FileLocks::default();
        let show = async || {
            let lock = locks.of(&path);
            let writing = lock.lock_for_write().await;
            lock.lock_for_show(writing).await
        };
        let first = show().await;
        assert!(!first.superseded.is_cancelled());
        let second = show();
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert!(first.superseded.is_cancelled());
        drop(first);
        assert!(!second.await.superseded.is_cancelled());
    }
}
