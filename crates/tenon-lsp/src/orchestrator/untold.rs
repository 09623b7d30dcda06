//! What changed on disk and one server has not been told yet.
//!
//! A change leaves only when the server has taken it: telling that fails, or that nobody waits for any more, loses nothing,
//! and whoever finds nothing here may ask.

use std::collections::BTreeMap;

use tenon_contract::root::WorkspacePath;

use crate::client::{FileChange, FileChangeKind};

type Changes = BTreeMap<WorkspacePath, FileChangeKind>;

#[derive(Debug, Default)]
pub(super) struct Untold {
    /// Being told, or left from a telling that failed.
    sending: Changes,
    /// Noted since that began.
    waiting: Changes,
}

impl Untold {
    pub(super) fn is_empty(&self) -> bool {
        self.sending.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn note(&mut self, path: &WorkspacePath, kind: FileChangeKind) {
        note(&mut self.waiting, path.clone(), kind);
    }

    /// All that is to be told. One telling at a time: ask only when the last has ended.
    pub(super) fn begin(&mut self) -> Vec<FileChange> {
        for (path, kind) in std::mem::take(&mut self.waiting) {
            note(&mut self.sending, path, kind);
        }
        self.sending.iter().map(|(path, kind)| FileChange { path: path.clone(), kind: *kind }).collect()
    }

    /// The server has taken what the last [`Untold::begin`] gave.
    pub(super) fn taken(&mut self) {
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
    fn what_was_not_taken_is_told_again_as_one_with_what_came_after() {
        use FileChangeKind::{Changed, Created, Deleted};

        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a").unwrap();
        let kinds = |untold: &mut Untold| untold.begin().iter().map(|one| one.kind).collect::<Vec<_>>();

        let mut untold = Untold::default();
        untold.note(&path, Created);
        assert_eq!(kinds(&mut untold), [Created]);
        untold.note(&path, Changed);
        assert_eq!(
            kinds(&mut untold),
            [Created],
            "the first telling failed: the file is still new to the server"
        );
        untold.note(&path, Changed);
        untold.taken();
        assert!(!untold.is_empty());
        assert_eq!(kinds(&mut untold), [Changed], "it knows of the file now");
        untold.taken();
        assert!(untold.is_empty());

        untold.note(&path, Deleted);
        untold.note(&path, Created);
        assert_eq!(kinds(&mut untold), [Changed], "it never heard that the file was gone");
        untold.note(&path, Deleted);
        untold.taken();
        assert_eq!(kinds(&mut untold), [Deleted]);
    }
}
