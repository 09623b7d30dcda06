//! The files that a server watches: the glob patterns of `workspace/didChangeWatchedFiles`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

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
