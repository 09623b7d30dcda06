//! The documents that one server has open, and what to send when their text changes.
//!
//! Versions count from 1 and only grow while a document stays open. Time is counted in ticks of one counter, which advances
//! with every publish and everything that may change diagnostics, so "since" is always exact.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex};
use tenon_contract::root::WorkspacePath;

use super::barrier::SeenProof;
use super::capabilities::Sync;
use crate::identifiers;

/// The most open documents per server. Each costs memory here and there; for closed files servers read the disk.
pub(crate) const OPEN_LIMIT: usize = 128;

/// The most removed identifiers that are remembered of one edit.
const MAX_DROPPED: usize = 8;

/// An open document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: WorkspacePath,
    pub(crate) version: i32,
    pub(crate) lines: LineIndex,
    /// The tick of the last text change.
    pub(crate) changed: u64,
    /// Which publishes without a version belong to the current text.
    pub(crate) proof: SeenProof,
    /// Whether this text is on disk.
    pub(crate) saved: bool,
    /// When a caller passed this text, compared with other texts of the file.
    pub(crate) order: u64,
    /// The last change.
    pub(crate) edit: LastEdit,
    used: u64,
    /// How many waits need it open.
    pub(crate) pins: u32,
    /// Whether it stays open whatever else is opened: a project stays loaded while a file in it is open.
    pub(crate) held: bool,
}

/// The last change of a text. Opening a document counts as a change of the whole text.
#[derive(Debug, Clone)]
pub(crate) struct LastEdit {
    /// The changed lines of the new text.
    pub(crate) lines: RangeInclusive<u32>,
    /// Identifiers that the text no longer contains: old names of what was renamed or removed.
    pub(crate) dropped: Vec<String>,
    /// Whether an import or export line changed.
    pub(crate) imports: bool,
}

/// What to send to update a server's text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// The server already has this text.
    Nothing,
    Open,
    Change(Vec<Value>),
}

#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, Document>,
    uses: u64,
    /// The documents that were closed last: a publish about the closed text may still arrive.
    closed: VecDeque<String>,
}

impl Documents {
    pub(crate) fn get(&self, key: &str) -> Option<&Document> {
        self.open.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Document> {
        self.open.get_mut(key)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Document> {
        self.open.values_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Document> {
        self.open.values()
    }

    /// Stores a text and returns what to send. `tick` is the time of the change, if there is one.
    pub(crate) fn put(
        &mut self,
        path: &WorkspacePath,
        lines: &LineIndex,
        encoding: Encoding,
        sync: Sync,
        tick: u64,
    ) -> Update {
        self.uses += 1;
        let used = self.uses;
        let Some(document) = self.open.get_mut(path.as_str()) else {
            let document = Document {
                path: path.clone(),
                version: 1,
                lines: lines.clone(),
                changed: tick,
                proof: match self.closed.iter().any(|closed| closed == path.as_str()) {
                    true => SeenProof::changed(),
                    false => SeenProof::opened(tick),
                },
                saved: false,
                order: 0,
                edit: LastEdit { lines: 0..=lines.line_count() - 1, dropped: Vec::new(), imports: false },
                used,
                pins: 0,
                held: false,
            };
            self.open.insert(path.as_str().to_owned(), document);
            return Update::Open;
        };
        document.used = used;
        if document.lines.text() == lines.text() {
            return Update::Nothing;
        }
        let edit = Edit::between(document.lines.text(), lines.text());
        let change = match sync {
            Sync::Incremental => json!({
                "range": {
                    "start": document.lines.position_clamped(edit.start, encoding),
                    "end": document.lines.position_clamped(edit.old_end, encoding),
                },
                "text": &lines.text()[edit.start..edit.new_end],
            }),
            Sync::Full | Sync::None => json!({ "text": &**lines.text() }),
        };
        let line = |offset| lines.position_clamped(offset, Encoding::Utf8).line;
        document.edit = LastEdit {
            lines: line(edit.start)..=line(edit.new_end),
            dropped: edit.dropped_words(document.lines.text(), lines.text()),
            imports: edit.touches_imports(document.lines.text()),
        };
        document.version = document.version.wrapping_add(1).max(1);
        document.lines = lines.clone();
        document.changed = tick;
        document.proof = SeenProof::changed();
        Update::Change(vec![change])
    }

    /// Notes that a document is about to be reopened with the same text, unless a wait has it pinned.
    pub(crate) fn open_again(&mut self, key: &str, tick: u64) -> Option<(i32, LineIndex)> {
        self.open.get(key).filter(|document| document.pins == 0)?;
        self.show_again(key, tick)
    }

    /// Starts a new version of a document with the same text, even if it is pinned.
    pub(crate) fn show_again(&mut self, key: &str, tick: u64) -> Option<(i32, LineIndex)> {
        let document = self.open.get_mut(key)?;
        document.version = document.version.wrapping_add(1).max(1);
        document.changed = tick;
        document.proof = SeenProof::changed();
        Some((document.version, document.lines.clone()))
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Document> {
        let document = self.open.remove(key)?;
        self.closed.retain(|closed| closed != key);
        if self.closed.len() == OPEN_LIMIT {
            self.closed.pop_front();
        }
        self.closed.push_back(key.to_owned());
        Some(document)
    }

    /// Holds exactly these of the open documents.
    pub(crate) fn hold_only(&mut self, held: &BTreeSet<&str>) {
        for (key, document) in &mut self.open {
            document.held = held.contains(key.as_str());
        }
    }

    /// Removes documents beyond the limit, which does not count held ones: least recently used first, never pinned ones.
    pub(crate) fn evict(&mut self) -> Vec<Document> {
        let mut evicted = Vec::new();
        let held = self.open.values().filter(|document| document.held).count();
        while self.open.len() - held > OPEN_LIMIT {
            let oldest = self
                .open
                .iter()
                .filter(|(_, document)| document.pins == 0 && !document.held)
                .min_by_key(|(_, document)| document.used)
                .map(|(key, _)| key.clone());
            match oldest.and_then(|key| self.remove(&key)) {
                Some(document) => evicted.push(document),
                None => break,
            }
        }
        evicted
    }
}

/// The smallest single edit between two texts, in byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edit {
    start: usize,
    old_end: usize,
    new_end: usize,
}

impl Edit {
    fn between(old: &str, new: &str) -> Self {
        let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
        let mut start = old_bytes.iter().zip(new_bytes).take_while(|(old, new)| old == new).count();
        // Not inside a character or a CRLF, which positions cannot address.
        while !old.is_char_boundary(start) || !new.is_char_boundary(start) || old[..start].ends_with('\r') {
            start -= 1;
        }
        let longest = (old.len() - start).min(new.len() - start);
        let mut tail = old_bytes
            .iter()
            .rev()
            .zip(new_bytes.iter().rev())
            .take(longest)
            .take_while(|(old, new)| old == new)
            .count();
        let splits = |text: &str, tail: usize| {
            let at = text.len() - tail;
            !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
        };
        while splits(old, tail) || splits(new, tail) {
            tail -= 1;
        }
        Self { start, old_end: old.len() - tail, new_end: new.len() - tail }
    }

    /// Whether a replaced line starts like an import or export.
    fn touches_imports(self, old: &str) -> bool {
        let start = old[..self.start].rfind('\n').map_or(0, |before| before + 1);
        let end = old[self.old_end..].find('\n').map_or(old.len(), |after| self.old_end + after);
        let first_word =
            |line: &str| identifiers::of(line.trim_start_matches("pub ")).next().map(str::to_owned);
        let mut firsts = old[start..end].lines().filter_map(first_word);
        firsts.any(|word| ["import", "from", "export", "use", "include", "require"].contains(&word.as_str()))
    }

    /// The identifiers of the replaced part that the new text no longer contains.
    fn dropped_words(self, old: &str, new: &str) -> Vec<String> {
        let start = old[..self.start]
            .rfind(|c| !identifiers::is_part(c))
            .map_or(0, |before| old.ceil_char_boundary(before + 1));
        let end = old[self.old_end..]
            .find(|c| !identifiers::is_part(c))
            .map_or(old.len(), |after| self.old_end + after);
        let mut dropped = Vec::new();
        for word in identifiers::of(&old[start..end]) {
            if dropped.len() == MAX_DROPPED {
                break;
            }
            if !dropped.iter().any(|one| one == word) && !identifiers::contains(new, word) {
                dropped.push(word.to_owned());
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenon_contract::position::Position;
    use tenon_contract::root::RootGate;

    use super::*;

    fn path() -> (tempfile::TempDir, WorkspacePath) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let gate = RootGate::new([folder.path()]).unwrap();
        let path = gate.admit_path("a").unwrap();
        (folder, path)
    }

    /// Applies a change as a server does.
    fn apply(old: &str, change: &Value, encoding: Encoding) -> String {
        let lines = LineIndex::new(old);
        let at = |key: &str| {
            let position: Position = serde_json::from_value(change["range"][key].clone()).unwrap();
            lines.offset(position, encoding).unwrap()
        };
        let text = change["text"].as_str().unwrap();
        if change.get("range").is_none() {
            return text.to_owned();
        }
        format!("{}{}{}", &old[..at("start")], text, &old[at("end")..])
    }

    #[test]
    fn small_edit_sends_only_the_changed_range() {
        let (_folder, path) = path();
        let mut documents = Documents::default();
        let put = |documents: &mut Documents, text: &str| {
            documents.put(&path, &LineIndex::new(text), Encoding::Utf16, Sync::Incremental, 1)
        };
        assert_eq!(put(&mut documents, "one\n😀two\nthree\n"), Update::Open);
        assert_eq!(put(&mut documents, "one\n😀two\nthree\n"), Update::Nothing);
        let Update::Change(changes) = put(&mut documents, "one\n😀toxo\nthree\n") else {
            panic!("a change")
        };
        assert_eq!(
            changes,
            [
                json!({ "range": { "start": { "line": 1, "character": 3 }, "end": { "line": 1, "character": 4 } }, "text": "ox" })
            ]
        );
        assert_eq!(documents.get(path.as_str()).unwrap().version, 2);
        let edit = &documents.get(path.as_str()).unwrap().edit;
        assert_eq!(edit.lines, 1..=1);
        assert_eq!(edit.dropped, ["two"]);
    }

    #[test]
    fn held_document_is_not_evicted() {
        let folder = tempfile::tempdir().unwrap();
        let gate = RootGate::new([folder.path()]).unwrap();
        let mut documents = Documents::default();
        let paths: Vec<WorkspacePath> = (0..OPEN_LIMIT + 3)
            .map(|number| {
                let file = folder.path().join(format!("{number:03}"));
                std::fs::write(&file, "").unwrap();
                gate.admit_path(&file).unwrap()
            })
            .collect();
        for path in &paths {
            documents.put(path, &LineIndex::new(""), Encoding::Utf16, Sync::Full, 1);
        }
        documents.hold_only(&BTreeSet::from([paths[0].as_str()]));
        let evicted: Vec<&str> = paths[1..3].iter().map(WorkspacePath::as_str).collect();
        let gone = documents.evict();
        assert_eq!(gone.iter().map(|document| document.path.as_str()).collect::<Vec<_>>(), evicted);
        assert!(documents.get(paths[0].as_str()).is_some_and(|document| document.held));
    }

    proptest! {
        #[test]
        fn incremental_change_produces_the_new_text(
            old in "(a|b|é|😀|\r|\n|\r\n| ){0,20}",
            new in "(a|b|é|😀|\r|\n|\r\n| ){0,20}",
        ) {
            let (_folder, path) = path();
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let mut documents = Documents::default();
                documents.put(&path, &LineIndex::new(old.as_str()), encoding, Sync::Incremental, 1);
                match documents.put(&path, &LineIndex::new(new.as_str()), encoding, Sync::Incremental, 2) {
                    Update::Change(changes) => prop_assert_eq!(apply(&old, &changes[0], encoding), new.clone()),
                    other => { prop_assert_eq!(other, Update::Nothing); prop_assert_eq!(&old, &new); }
                }
            }
        }
    }
}
