//! The diagnostics of one server, and the text that they belong to.
//!
//! Invariant: a list counts for an open document only while it belongs to the document's current text. A push belongs to its
//! version; without one, it counts if it arrived after the answer to a request sent after the change. A pulled list belongs
//! to the version that it was pulled for.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::documents::Document;
use crate::model::Diagnostic;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// Fresh if nothing else arrives until then.
    NotBefore(Instant),
    Waiting,
}

/// All diagnostics that a server has sent, by file.
#[derive(Debug, Default)]
pub(crate) struct Store {
    files: BTreeMap<String, Held>,
}

impl Held {
    fn current_push(&self, document: Option<&Document>) -> Option<&Pushed> {
        let pushed = self.pushed.as_ref()?;
        let counts = match (document, pushed.version) {
            (None, _) => true,
            (Some(document), Some(version)) => version >= document.version,
            (Some(document), None) => document.seen.is_some_and(|seen| pushed.tick > seen),
        };
        counts.then_some(pushed)
    }

    fn current_pull(&self, document: Option<&Document>) -> Option<&Pulled> {
        self.pulled
            .as_ref()
            .filter(|pulled| document.is_some_and(|document| pulled.version == document.version))
    }

    fn current(&self, document: Option<&Document>) -> impl Iterator<Item = &Diagnostic> {
        let pulled = self.current_pull(document).map(|pulled| &pulled.items);
        let pushed = self.current_push(document).map(|pushed| &pushed.items);
        pulled.into_iter().chain(pushed).flatten()
    }
}

impl Store {
    /// The diagnostics of a file's current text, in the server's encoding.
    pub(crate) fn current(&self, key: &str, document: Option<&Document>) -> Vec<Diagnostic> {
        self.files.get(key).map(|held| held.current(document).cloned().collect()).unwrap_or_default()
    }

    /// The same without pushes from before `change`, and whether that left any out.
    pub(crate) fn since(
        &self,
        key: &str,
        document: Option<&Document>,
        change: LastChange,
    ) -> (Vec<Diagnostic>, bool) {
        let Some(held) = self.files.get(key) else {
            return Default::default();
        };
        let pulled = held.current_pull(document).map(|pulled| pulled.items.clone()).unwrap_or_default();
        match held.current_push(document) {
            Some(pushed) if pushed.tick > change.tick => ([pulled, pushed.items.clone()].concat(), false),
            old => (pulled, old.is_some_and(|pushed| !pushed.items.is_empty())),
        }
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
        let before = self.current(key, document);
        let held = self.files.entry(key.to_owned()).or_default();
        change(held);
        !held.current(document).eq(&before)
    }

    /// Removes the pulled diagnostics of a closed document. Returns whether there were any.
    pub(crate) fn closed(&mut self, key: &str) -> bool {
        let Some(held) = self.files.get_mut(key) else {
            return false;
        };
        let had = held.pulled.take().is_some_and(|pulled| !pulled.items.is_empty());
        if held.pushed.is_none() {
            self.files.remove(key);
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
    pub(crate) fn is_answered(&self, document: &Document, change: LastChange) -> bool {
        let Some(held) = self.files.get(document.path.as_str()) else {
            return false;
        };
        self.is_pulled(document, change)
            || held
                .current_push(Some(document))
                .is_some_and(|pushed| pushed.tick > change.tick.max(document.changed))
    }

    /// How fresh the pushed list of a document is. Another publish may follow within `settle` of the last one, of the server
    /// becoming ready, or of a change elsewhere.
    pub(crate) fn push_freshness(
        &self,
        document: &Document,
        settle: Duration,
        ready_since: Instant,
        change: LastChange,
        now: Instant,
    ) -> Freshness {
        let held = self.files.get(document.path.as_str());
        let Some(pushed) = held.and_then(|held| held.current_push(Some(document))) else {
            return Freshness::Waiting;
        };
        let since = pushed.at.max(ready_since);
        let since = if change.tick > pushed.tick { since.max(change.at) } else { since };
        if now >= since + settle { Freshness::Fresh } else { Freshness::NotBefore(since + settle) }
    }
}
