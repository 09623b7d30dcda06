//! The last complete diagnostics of each file, by server, so that the state before an edit is known without a request.
//!
//! Diagnostics depend on other files, too. So an entry counts only for exactly its text, and only as long as every later change
//! was checked together with its dependents. Any other change drops the entries from before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::change_check::ChangedText;
use super::{Orchestrator, lines_of, lock};
use crate::model::Diagnostic;

/// The most memory for texts and diagnostics, roughly.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The memory of one diagnostic without its strings, roughly.
const DIAGNOSTIC_BYTES: usize = 160;
/// Up to this many files that changed on disk are compared with the texts known here.
const MAX_COMPARED: usize = 16;

/// The order of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct ChangeNumber(u64);

struct Baseline {
    text: LineIndex,
    diagnostics: Arc<Vec<Diagnostic>>,
    number: ChangeNumber,
    bytes: usize,
    used: u64,
}

/// The stored diagnostics, by server process and file.
#[derive(Default)]
pub(super) struct Baselines {
    entries: BTreeMap<(u32, WorkspacePath), Baseline>,
    /// Files that changed since the last edit began.
    changed: BTreeSet<WorkspacePath>,
    number: ChangeNumber,
    /// Diagnostics that were collected before this change do not count any more.
    oldest: ChangeNumber,
    bytes: usize,
    uses: u64,
}

impl Baselines {
    /// A file changed on disk, or servers see another text of it.
    pub(super) fn note_change(&mut self, path: &WorkspacePath) {
        if !self.entries.is_empty() {
            self.changed.insert(path.clone());
        }
    }

    /// Files that changed since the last edit began.
    fn take_changed(&mut self) -> BTreeSet<WorkspacePath> {
        std::mem::take(&mut self.changed)
    }

    /// The next change. `unchecked`: something else has changed since the last one.
    fn begin(&mut self, unchecked: bool) -> ChangeNumber {
        self.number.0 += 1;
        if unchecked {
            self.drop_before(self.number);
        }
        self.number
    }

    /// The end of a change on these servers. Other files keep their diagnostics only if all dependents were checked.
    pub(super) fn finish(&mut self, number: ChangeNumber, servers: &BTreeSet<u32>, complete: bool) {
        if !complete {
            self.drop_before(number);
        }
        self.retain(|(server, _), entry| entry.number >= number || servers.contains(server));
    }

    fn drop_before(&mut self, number: ChangeNumber) {
        self.oldest = self.oldest.max(number);
        self.retain(|_, entry| entry.number >= number);
    }

    fn retain(&mut self, keep: impl Fn(&(u32, WorkspacePath), &Baseline) -> bool) {
        self.entries.retain(|key, entry| keep(key, entry));
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
    }

    /// The diagnostics of exactly this text.
    pub(super) fn get(
        &mut self,
        server: u32,
        path: &WorkspacePath,
        text: &LineIndex,
    ) -> Option<Arc<Vec<Diagnostic>>> {
        self.uses += 1;
        let entry = self.entries.get_mut(&(server, path.clone()))?;
        if entry.text.text() != text.text() {
            return None;
        }
        entry.used = self.uses;
        Some(Arc::clone(&entry.diagnostics))
    }

    /// Stores complete diagnostics.
    pub(super) fn put(
        &mut self,
        server: u32,
        path: &WorkspacePath,
        text: &LineIndex,
        diagnostics: &[Diagnostic],
        number: ChangeNumber,
    ) {
        let key = (server, path.clone());
        if number < self.oldest || self.entries.get(&key).is_some_and(|entry| entry.number > number) {
            return;
        }
        let strings = |one: &Diagnostic| one.message.len() + one.source.as_ref().map_or(0, String::len);
        let listed: usize = diagnostics.iter().map(|one| DIAGNOSTIC_BYTES + strings(one)).sum();
        let bytes = text.text().len() + listed;
        self.uses += 1;
        let diagnostics = Arc::new(diagnostics.to_vec());
        let entry = Baseline { text: text.clone(), diagnostics, number, bytes, used: self.uses };
        let before = self.entries.insert(key, entry);
        self.bytes = self.bytes + bytes - before.map_or(0, |before| before.bytes);
        while self.bytes > MAX_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(evicted) = oldest.and_then(|key| self.entries.remove(&key)) else {
                break;
            };
            self.bytes -= evicted.bytes;
        }
    }

    /// The last text of a file that was checked completely.
    pub(super) fn last_text(&self, path: &WorkspacePath) -> Option<LineIndex> {
        let entries = self.entries.iter().filter(|((_, owner), _)| owner == path);
        entries.max_by_key(|(_, entry)| (entry.number, entry.used)).map(|(_, entry)| entry.text.clone())
    }

    /// The number of the last change, for diagnostics that are collected now.
    pub(super) fn number(&self) -> ChangeNumber {
        self.number
    }
}

impl Orchestrator {
    /// The last text of a file whose diagnostics were collected completely, without a byte order mark.
    pub fn last_checked_text(&self, path: &WorkspacePath) -> Option<Arc<str>> {
        lock(&self.0.baselines).last_text(path).map(|lines| Arc::clone(lines.text()))
    }

    /// Begins a change of these files. Stored diagnostics are dropped if something else has changed since the last one: another
    /// file, or one of these before it got the text that this change begins with.
    pub(super) async fn begin_change(&self, changing: &[ChangedText]) -> ChangeNumber {
        let mut changed = lock(&self.0.baselines).take_changed();
        let mut unchecked = self.0.watch.is_none();
        for file in changing {
            let reported = changed.remove(&file.path);
            let Some(before) = &file.before else { continue };
            unchecked |= match lock(&self.0.baselines).last_text(&file.path) {
                Some(known) => known.text() != lines_of(before.clone()).text(),
                None => reported && !before.is_empty(),
            };
        }
        unchecked |= changed.len() > MAX_COMPARED;
        for path in changed {
            if unchecked {
                break;
            }
            let known = lock(&self.0.baselines).last_text(&path);
            let shown = lock(&self.0.passed).unsaved.get(&path).map(|(_, text)| Arc::clone(text));
            let now = match shown {
                Some(text) => Some(LineIndex::new(text)),
                None => self.read(&path).await.ok(),
            };
            // An edit that was checked before also arrives as a change on disk.
            unchecked =
                known.is_none() || known.as_ref().map(LineIndex::text) != now.as_ref().map(LineIndex::text);
        }
        lock(&self.0.baselines).begin(unchecked)
    }
}
