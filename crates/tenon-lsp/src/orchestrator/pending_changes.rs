//! What changed on disk and one server has not been told yet.
//!
//! A change is removed only after it was sent: a failed or abandoned send loses nothing. If this is empty, the server is up to
//! date.

use std::collections::BTreeMap;

use tenon_contract::root::WorkspacePath;

use crate::client::{FileChange, FileChangeKind};

type Changes = BTreeMap<WorkspacePath, FileChangeKind>;

#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// Being told, or left from a telling that failed.
    sending: Changes,
    /// Queued since that began.
    waiting: Changes,
}

impl PendingChanges {
    /// Whether only changes of these files are pending.
    pub(super) fn is_empty_without(&self, held: &[WorkspacePath]) -> bool {
        self.sending.keys().chain(self.waiting.keys()).all(|path| held.contains(path))
    }

    pub(super) fn note(&mut self, path: &WorkspacePath, kind: FileChangeKind) {
        note(&mut self.waiting, path.clone(), kind);
    }

    /// All pending changes but those of the held files, to be sent now. Call again only after that send has ended.
    pub(super) fn begin(&mut self, held: &[WorkspacePath]) -> Vec<FileChange> {
        for (path, kind) in std::mem::take(&mut self.waiting) {
            note(&mut self.sending, path, kind);
        }
        for path in held {
            if let Some(kind) = self.sending.remove(path) {
                self.waiting.insert(path.clone(), kind);
            }
        }
        self.sending.iter().map(|(path, kind)| FileChange { path: path.clone(), kind: *kind }).collect()
    }

    /// The changes of the last [`PendingChanges::begin`] were sent.
    pub(super) fn mark_sent(&mut self) {
        self.sending.clear();
    }
}

fn note(changes: &mut Changes, path: WorkspacePath, kind: FileChangeKind) {
    let before = changes.get(&path).copied();
    changes.insert(path, kind.after(before));
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;

    #[test]
    fn unsent_changes_are_merged_with_later_ones() {
        use FileChangeKind::{Changed, Created, Deleted};

        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a").unwrap();
        let kinds = |pending_changes: &mut PendingChanges| {
            pending_changes.begin(&[]).iter().map(|one| one.kind).collect::<Vec<_>>()
        };

        let mut pending_changes = PendingChanges::default();
        pending_changes.note(&path, Created);
        assert_eq!(kinds(&mut pending_changes), [Created]);
        pending_changes.note(&path, Changed);
        assert_eq!(
            kinds(&mut pending_changes),
            [Created],
            "the first send failed, so the file is still new to the server"
        );
        pending_changes.note(&path, Changed);
        pending_changes.mark_sent();
        assert!(!pending_changes.is_empty_without(&[]));
        assert_eq!(kinds(&mut pending_changes), [Changed], "the server knows the file now");
        pending_changes.mark_sent();
        assert!(pending_changes.is_empty_without(&[]));

        pending_changes.note(&path, Deleted);
        pending_changes.note(&path, Created);
        assert_eq!(kinds(&mut pending_changes), [Changed], "the deletion was never sent");
        pending_changes.note(&path, Deleted);
        pending_changes.mark_sent();
        assert_eq!(kinds(&mut pending_changes), [Deleted]);
    }
}
