//! The files that a registration is about: the patterns of watched files, and document selectors.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;
use tenon_contract::root::WorkspacePath;

use super::capabilities::Capabilities;
use super::sync::{FileChange, FileChangeKind};
use crate::from_protocol::file_key;

/// The patterns of one registration.
#[derive(Debug)]
pub(crate) struct Globs {
    root: String,
    /// Matched against the path below the root, and the absolute one, since servers send both kinds of pattern.
    anywhere: GlobSet,
    /// Patterns relative to a folder of their own.
    based: Vec<(String, GlobSet)>,
}

impl Globs {
    pub(crate) fn new(options: &Value, root: &str) -> Self {
        let mut anywhere = GlobSetBuilder::new();
        let mut based = Vec::new();
        for watcher in options.get("watchers").and_then(Value::as_array).into_iter().flatten() {
            match watcher.get("globPattern") {
                Some(Value::String(pattern)) => {
                    if let Some(glob) = glob(pattern) {
                        anywhere.add(glob);
                    }
                }
                Some(Value::Object(relative)) => {
                    let base = relative
                        .get("baseUri")
                        .and_then(|base| base.as_str().or_else(|| base.get("uri")?.as_str()));
                    let pattern = relative.get("pattern").and_then(Value::as_str);
                    if let (Some(base), Some(glob)) = (base, pattern.and_then(glob)) {
                        let mut set = GlobSetBuilder::new();
                        set.add(glob);
                        let base = file_key(base).trim_end_matches('/').to_owned();
                        based.push((base, set.build().unwrap_or_default()));
                    }
                }
                _ => {}
            }
        }
        Self { root: root.to_owned(), anywhere: anywhere.build().unwrap_or_default(), based }
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.anywhere.is_match(path)
            || below(path, &self.root).is_some_and(|below| self.anywhere.is_match(below))
            || self
                .based
                .iter()
                .any(|(base, globs)| below(path, base).is_some_and(|below| globs.is_match(below)))
    }
}

/// Changes of files that the server does not watch, at most [`UnwatchedChanges::LIMIT`].
#[derive(Debug, Default)]
pub(crate) struct UnwatchedChanges {
    changes: BTreeMap<WorkspacePath, FileChangeKind>,
    /// Whether the server watches other files than before.
    asked_again: bool,
}

impl UnwatchedChanges {
    const LIMIT: usize = 4096;

    /// The server registered again.
    pub(crate) fn ask_again(&mut self) {
        self.asked_again = !self.changes.is_empty();
    }

    pub(crate) fn is_asked_again(&self) -> bool {
        self.asked_again
    }

    /// What the server is to be told: these changes and earlier ones, those that it watches now.
    pub(crate) fn watched(&mut self, capabilities: &Capabilities, changes: &[FileChange]) -> Vec<FileChange> {
        for change in changes {
            let before = self.changes.get(&change.path).copied();
            self.changes.insert(change.path.clone(), change.kind.after(before));
        }
        let is_watched = |path: &WorkspacePath| capabilities.watches(path.as_str());
        let told: Vec<FileChange> = if std::mem::take(&mut self.asked_again) {
            let all = self.changes.iter().filter(|(path, _)| is_watched(path));
            all.map(|(path, kind)| FileChange { path: path.clone(), kind: *kind }).collect()
        } else {
            let new = changes.iter().filter(|change| is_watched(&change.path));
            new.map(|change| FileChange { kind: self.changes[&change.path], ..change.clone() }).collect()
        };
        for change in &told {
            self.changes.remove(&change.path);
        }
        while self.changes.len() > Self::LIMIT {
            self.changes.pop_first();
        }
        told
    }
}

/// The documents that a registration is about: those that match a filter.
#[derive(Debug)]
pub(crate) struct DocumentSelector(Option<Vec<DocumentFilter>>);

#[derive(Debug)]
struct DocumentFilter {
    language: Option<String>,
    pattern: Option<Globs>,
}

impl DocumentSelector {
    /// From the options of a registration. Without a selector all documents match.
    pub(crate) fn new(options: &Value, root: &str) -> Self {
        let filters = options.get("documentSelector").and_then(Value::as_array);
        let filter = |filter: &Value| {
            let is_file = filter.get("scheme").and_then(Value::as_str).is_none_or(|scheme| scheme == "file");
            is_file.then(|| DocumentFilter {
                language: filter.get("language").and_then(Value::as_str).map(str::to_owned),
                pattern: filter.get("pattern").map(|pattern| {
                    Globs::new(&serde_json::json!({ "watchers": [{ "globPattern": pattern }] }), root)
                }),
            })
        };
        Self(filters.map(|filters| filters.iter().filter_map(filter).collect()))
    }

    pub(crate) fn matches(&self, path: &str, language: &str) -> bool {
        let Some(filters) = &self.0 else {
            return true;
        };
        filters.iter().any(|filter| {
            filter.language.as_ref().is_none_or(|one| one == language)
                && filter.pattern.as_ref().is_none_or(|globs| globs.matches(path))
        })
    }
}

fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// `None` for an invalid pattern.
fn glob(pattern: &str) -> Option<globset::Glob> {
    GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(pattern: Value, path: &str) -> bool {
        Globs::new(&json!({ "watchers": [{ "globPattern": pattern }] }), "/r").matches(path)
    }

    #[test]
    fn patterns_are_relative_absolute_or_based() {
        assert!(matches(json!("**/*.{ts,js}"), "/r/src/a.ts"));
        assert!(matches(json!("**"), "/r/src/a.py"));
        assert!(matches(json!("/r/pyproject.toml"), "/r/pyproject.toml"));
        assert!(matches(json!({ "baseUri": "file:///r/a%20b", "pattern": "*.toml" }), "/r/a b/x.toml"));
        assert!(matches(
            json!({ "baseUri": { "uri": "file:///r/", "name": "r" }, "pattern": "**/*.toml" }),
            "/r/x.toml"
        ));
        assert!(!matches(json!("*.ts"), "/r/src/a.ts"));
        assert!(!matches(json!({ "baseUri": "file:///r/a", "pattern": "*.toml" }), "/r/ab/x.toml"));
        assert!(!matches(json!("[x"), "/r/x"));
        assert!(!matches(json!(null), "/r/x"));
    }
}
