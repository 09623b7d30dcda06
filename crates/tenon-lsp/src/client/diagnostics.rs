//! The diagnostics of one server, and the text that they belong to.
//!
//! Invariant: a list counts for an open document only while it belongs to the document's current text. A push belongs to its
//! version; without one, the document's [`SeenProof`](super::barrier::SeenProof) decides. A pulled list belongs to the
//! version that it was pulled for.
//!
//! A server decides for which files it publishes and how much, so what is kept is bounded. One that sends more for closed
//! files is ended: an incomplete list must not look complete.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::barrier::Belongs;
use super::disk_check::DiskCheck;
use super::documents::Document;
use crate::model::Diagnostic;

/// The number of closed files whose lists are kept.
const MAX_FILES: usize = 100_000;

/// The size of all lists up to which those of closed files are kept, in bytes.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// What a stored diagnostic or file costs besides its texts, about.
const OVERHEAD_BYTES: usize = 256;

#[derive(Debug)]
struct Pushed {
    version: Option<i32>,
    items: Vec<Diagnostic>,
    at: Instant,
    tick: u64,
}

#[derive(Debug)]
struct Pulled {
    version: i32,
    items: Vec<Diagnostic>,
    /// The tick of the request; later changes of other files are not included.
    asked: u64,
}

#[derive(Debug, Default)]
struct Held {
    pushed: Option<Pushed>,
    pulled: Option<Pulled>,
}

/// The last thing that may change diagnostics: a text, an opened or closed document, a file on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastChange {
    pub(crate) tick: u64,
    pub(crate) at: Instant,
}

/// Whether the stored diagnostics belong to a document's current text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Freshness {
    Fresh,
    /// Fresh if nothing else arrives until then.
    NotBefore(Instant),
    Waiting,
}

/// All diagnostics that a server has sent, by file.
#[derive(Debug)]
pub(crate) struct Store {
    files: BTreeMap<String, Held>,
    /// The size of `files`.
    bytes: usize,
    limits: StoreLimits,
    /// Whether a list was not kept because of the limits.
    pub(crate) overflowed: bool,
    /// How long after one publish another one for the same text may follow.
    settle: Duration,
    /// The checks of the files on disk.
    pub(crate) disk: DiskCheck,
}

#[derive(Debug, Clone, Copy)]
struct StoreLimits {
    files: usize,
    bytes: usize,
}

impl Pushed {
    fn belongs(&self, document: Option<&Document>) -> Belongs {
        match (document, self.version) {
            (None, _) => Belongs::Yes,
            (Some(document), Some(version)) if version >= document.version => Belongs::Yes,
            (Some(_), Some(_)) => Belongs::No,
            (Some(document), None) => document.proof.belongs(self.tick),
        }
    }
}

impl Held {
    fn bytes(&self, key: &str) -> usize {
        let pulled = self.pulled.iter().flat_map(|pulled| &pulled.items);
        let items = pulled.chain(self.pushed.iter().flat_map(|pushed| &pushed.items));
        OVERHEAD_BYTES + key.len() + items.map(size).sum::<usize>()
    }

    /// The push, if it may belong to the document's text.
    fn possible_push(&self, document: Option<&Document>) -> Option<&Pushed> {
        self.pushed.as_ref().filter(|pushed| pushed.belongs(document) != Belongs::No)
    }

    /// The push, if it belongs to the document's text.
    fn current_push(&self, document: Option<&Document>, settle: Duration) -> Option<&Pushed> {
        self.pushed.as_ref().filter(|pushed| match pushed.belongs(document) {
            Belongs::Yes => true,
            Belongs::OnceSettled => pushed.at + settle <= Instant::now(),
            Belongs::No => false,
        })
    }

    fn current_pull(&self, document: Option<&Document>) -> Option<&Pulled> {
        self.pulled
            .as_ref()
            .filter(|pulled| document.is_some_and(|document| pulled.version == document.version))
    }

    /// The diagnostics that may belong to the document's text, with a push that has not settled.
    fn possible(&self, document: Option<&Document>) -> impl Iterator<Item = &Diagnostic> {
        let pulled = self.current_pull(document).map(|pulled| &pulled.items);
        let pushed = self.possible_push(document).map(|pushed| &pushed.items);
        pulled.into_iter().chain(pushed).flatten()
    }
}

impl Store {
    pub(crate) fn new(settle: Duration, disk: DiskCheck) -> Self {
        let limits = StoreLimits { files: MAX_FILES, bytes: MAX_BYTES };
        Self { files: BTreeMap::new(), bytes: 0, limits, overflowed: false, settle, disk }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
        self.bytes = 0;
    }

    /// The diagnostics of a file's current text, in the server's encoding.
    pub(crate) fn current(&self, key: &str, document: Option<&Document>) -> Vec<Diagnostic> {
        let Some(held) = self.files.get(key) else {
            return Vec::new();
        };
        let pulled = held.current_pull(document).map(|pulled| &pulled.items);
        let pushed = self.counted(held, document).map(|(_, item)| item);
        pulled.into_iter().flatten().chain(pushed).cloned().collect()
    }

    /// The pushed diagnostics that belong to a document's text.
    fn counted<'a>(
        &'a self,
        held: &'a Held,
        document: Option<&'a Document>,
    ) -> impl Iterator<Item = (&'a Pushed, &'a Diagnostic)> {
        let current = held.current_push(document, self.settle).is_some();
        let saved = document.is_none_or(|document| document.saved);
        let checked = document.is_none() || self.disk_freshness(Instant::now()) == Freshness::Fresh;
        let counts = move |item: &Diagnostic| match (self.disk.made(item), self.disk.has_progress()) {
            (true, true) => saved && checked,
            (true, false) => saved && current,
            (false, _) => current,
        };
        let pushed =
            held.pushed.iter().flat_map(|pushed| pushed.items.iter().map(move |item| (pushed, item)));
        pushed.filter(move |(_, item)| counts(item))
    }

    /// What the last check of the saved files found in a file.
    pub(crate) fn made_from_disk(&self, key: &str) -> Vec<Diagnostic> {
        let pushed = self.files.get(key).and_then(|held| held.pushed.as_ref());
        let items = pushed.into_iter().flat_map(|pushed| &pushed.items);
        items.filter(|item| self.disk.made(item)).cloned().collect()
    }

    /// What the last check of the saved files found, by file.
    pub(crate) fn all_made_from_disk(&self) -> BTreeMap<String, Vec<Diagnostic>> {
        let found = self.files.keys().map(|key| (key.clone(), self.made_from_disk(key)));
        found.filter(|(_, items)| !items.is_empty()).collect()
    }

    /// Whether the diagnostics of the files on disk are up to date.
    pub(crate) fn disk_freshness(&self, now: Instant) -> Freshness {
        self.disk.freshness(self.settle, now)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Stores a publish. Returns whether the file's diagnostics changed.
    pub(crate) fn push(
        &mut self,
        key: &str,
        version: Option<i32>,
        items: Vec<Diagnostic>,
        document: Option<&Document>,
        tick: u64,
        at: Instant,
    ) -> bool {
        if let (Some(version), Some(document)) = (version, document)
            && version < document.version
            && !self.disk.has_progress()
        {
            return false;
        }
        self.replace(key, document, |held| {
            held.pushed = Some(Pushed { version, items, at, tick });
        })
    }

    /// Stores the answer to a pull. Returns whether the file's diagnostics changed.
    pub(crate) fn pull(
        &mut self,
        document: &Document,
        items: Vec<Diagnostic>,
        version: i32,
        asked: u64,
    ) -> bool {
        self.replace(document.path.as_str(), Some(document), |held| {
            held.pulled = Some(Pulled { version, items, asked });
        })
    }

    fn replace(&mut self, key: &str, document: Option<&Document>, change: impl FnOnce(&mut Held)) -> bool {
        let mut held = self.remove(key).unwrap_or_default();
        let before: Vec<Diagnostic> = held.possible(document).cloned().collect();
        change(&mut held);
        let bytes = self.bytes + held.bytes(key);
        // The number of open documents is bounded elsewhere.
        if document.is_none() && (bytes > self.limits.bytes || self.files.len() >= self.limits.files) {
            self.overflowed = true;
            return !before.is_empty();
        }
        let changed = !held.possible(document).eq(&before);
        self.bytes = bytes;
        self.files.insert(key.to_owned(), held);
        changed
    }

    fn remove(&mut self, key: &str) -> Option<Held> {
        let held = self.files.remove(key)?;
        self.bytes -= held.bytes(key);
        Some(held)
    }

    /// Removes the pulled diagnostics of a closed document. Returns whether there were any.
    pub(crate) fn closed(&mut self, key: &str) -> bool {
        let Some(mut held) = self.remove(key) else {
            return false;
        };
        let had = held.pulled.take().is_some_and(|pulled| !pulled.items.is_empty());
        if held.pushed.is_some() {
            self.bytes += held.bytes(key);
            self.files.insert(key.to_owned(), held);
        }
        had
    }

    /// Whether the document's current text was pulled since `change`.
    pub(crate) fn is_pulled(&self, document: &Document, change: LastChange) -> bool {
        self.files
            .get(document.path.as_str())
            .and_then(|held| held.current_pull(Some(document)))
            .is_some_and(|pulled| pulled.asked >= change.tick)
    }

    /// Whether there were diagnostics, even empty ones, for the document's current text since `change`.
    pub(crate) fn answered(&self, document: &Document, change: LastChange, now: Instant) -> Freshness {
        if self.is_pulled(document, change) {
            return Freshness::Fresh;
        }
        let held = self.files.get(document.path.as_str());
        let since = change.tick.max(document.changed);
        match held.and_then(|held| held.possible_push(Some(document))).filter(|pushed| pushed.tick > since) {
            None => Freshness::Waiting,
            Some(pushed) => match pushed.belongs(Some(document)) {
                Belongs::OnceSettled if now < pushed.at + self.settle => {
                    Freshness::NotBefore(pushed.at + self.settle)
                }
                _ => Freshness::Fresh,
            },
        }
    }

    /// How fresh the pushed list of a document is. Another publish may follow within the settle time of the last one, of the
    /// server becoming ready, or of a change elsewhere.
    pub(crate) fn push_freshness(
        &self,
        document: &Document,
        ready_since: Instant,
        change: LastChange,
        now: Instant,
    ) -> Freshness {
        let held = self.files.get(document.path.as_str());
        let Some(pushed) = held.and_then(|held| held.possible_push(Some(document))) else {
            return Freshness::Waiting;
        };
        let since = pushed.at.max(ready_since);
        let since = if change.tick > pushed.tick { since.max(change.at) } else { since };
        let settled = since + self.settle;
        if now >= settled { Freshness::Fresh } else { Freshness::NotBefore(settled) }
    }
}

fn size(item: &Diagnostic) -> usize {
    let texts = [item.code.as_deref(), item.source.as_deref(), Some(item.message.as_str())];
    OVERHEAD_BYTES + texts.into_iter().flatten().map(str::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FixData;

    fn store(limits: StoreLimits) -> Store {
        Store { limits, ..Store::new(Duration::ZERO, DiskCheck::new(None)) }
    }

    fn items(count: usize) -> Vec<Diagnostic> {
        let item = Diagnostic {
            range: Default::default(),
            severity: None,
            code: None,
            source: None,
            message: "x".repeat(100),
            fix_data: FixData::default(),
        };
        vec![item; count]
    }

    fn push(store: &mut Store, key: &str, count: usize) -> bool {
        store.push(key, None, items(count), None, 1, Instant::now())
    }

    #[tokio::test]
    async fn lists_of_ever_new_files_are_bounded() {
        let limits = StoreLimits { files: 10, bytes: 1 << 20 };
        let mut store = store(limits);
        for number in 0..1000 {
            push(&mut store, &format!("/r/{number}"), 1);
        }
        assert_eq!(store.keys().count(), 10);
        assert!(store.overflowed);
        assert!(push(&mut store, "/r/3", 0), "a kept file is still updated");
        assert!(store.current("/r/3", None).is_empty());
    }

    #[tokio::test]
    async fn size_of_all_lists_is_bounded_and_counted_back() {
        let limits = StoreLimits { files: 1000, bytes: 100_000 };
        let mut store = store(limits);
        for number in 0..500 {
            push(&mut store, &format!("/r/{number}"), 10);
        }
        assert!(store.bytes <= limits.bytes && store.bytes > limits.bytes / 2, "{}", store.bytes);
        assert_eq!(store.current("/r/0", None).len(), 10, "a list is kept whole or not at all");
        let keys: Vec<String> = store.keys().map(str::to_owned).collect();
        for key in &keys {
            push(&mut store, key, 0);
            store.remove(key);
        }
        assert_eq!(store.bytes, 0);
    }
}
