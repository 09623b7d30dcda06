//! Records which files changed, for callers that keep results per file.
//!
//! A caller remembers the number of the last entry that it has processed and asks for the files since. Changes that cannot be
//! attributed to files, such as a restarted server, count as a change of everything.

use std::collections::{BTreeMap, BTreeSet};

use tenon_contract::root::WorkspacePath;

use super::{Orchestrator, lock};

/// The most files that are remembered; more count as a change of everything.
const MAX_FILES: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct ChangeJournal {
    last: u64,
    /// The last change of each file.
    files: BTreeMap<WorkspacePath, u64>,
    /// The last change of everything.
    everything: u64,
}

/// What changed since an entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalChanges {
    /// The last entry.
    pub last: u64,
    /// `None` if everything may have changed.
    pub files: Option<BTreeSet<WorkspacePath>>,
}

impl ChangeJournal {
    pub(super) fn file_changed(&mut self, path: &WorkspacePath) {
        self.last += 1;
        self.files.insert(path.clone(), self.last);
        if self.files.len() > MAX_FILES {
            self.everything_changed();
        }
    }

    pub(super) fn everything_changed(&mut self) {
        self.last += 1;
        self.everything = self.last;
        self.files.clear();
    }

    fn since(&self, entry: u64) -> JournalChanges {
        let files = self.files.iter().filter(|(_, at)| **at > entry).map(|(path, _)| path.clone());
        JournalChanges { last: self.last, files: (self.everything <= entry).then(|| files.collect()) }
    }
}

impl Orchestrator {
    /// The files whose text, for servers or on disk, changed since an entry of the journal; 0 is before the first. Complete
    /// after [`Orchestrator::catch_up`].
    pub fn changes_since(&self, entry: u64) -> JournalChanges {
        lock(&self.0.journal).since(entry)
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::root::RootGate;

    use super::*;

    #[test]
    fn changes_since_an_entry_are_the_later_ones() {
        let folder = tempfile::tempdir().unwrap();
        let gate = RootGate::new([folder.path()]).unwrap();
        let [a, b] = ["a", "b"].map(|name| gate.admit_target(gate.roots()[0].join(name)).unwrap());
        let mut journal = ChangeJournal::default();
        journal.file_changed(&a);
        let first = journal.since(0);
        assert_eq!(first.files, Some([a.clone()].into()));
        journal.file_changed(&b);
        assert_eq!(journal.since(first.last).files, Some([b].into()));
        journal.everything_changed();
        assert_eq!(journal.since(first.last).files, None);
        let last = journal.since(0).last;
        journal.file_changed(&a);
        assert_eq!(journal.since(last).files, Some([a].into()));
    }
}
