//! Python projects as pyright sees them: `include` and `exclude` below its root.

use camino::Utf8Path;
use serde_json::Value;

use super::globs::PathPatterns;
use super::{ProjectFiles, ProjectSearch, jsonc, normalised};

/// What pyright leaves out if nothing is configured.
const EXCLUDED: [&str; 3] = ["**/node_modules", "**/__pycache__", "**/.*"];

/// `tables` are where `pyproject.toml` may have the settings; the first that exists wins.
pub(super) fn find(search: &ProjectSearch<'_>, tables: &[&str]) -> ProjectFiles {
    let settings = settings(search, tables);
    let patterns = |key: &str| -> Option<Vec<String>> {
        let list = settings.get(key)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(|pattern| absolute(search.root, pattern)).collect())
    };
    let include = match patterns("include") {
        Some(include) if !include.is_empty() => include,
        _ => vec![search.root.to_string()],
    };
    let default = || EXCLUDED.iter().map(|pattern| absolute(search.root, pattern)).collect();
    let (include, exclude) = (
        PathPatterns::with_below(include),
        PathPatterns::with_below(patterns("exclude").unwrap_or_else(default)),
    );
    let outside = search
        .outside(|file| file.starts_with(search.root) && include.matches(file) && !exclude.matches(file));
    ProjectFiles { outside, ..ProjectFiles::default() }
}

fn absolute(root: &Utf8Path, pattern: &str) -> String {
    normalised(&root.join(pattern)).into_string()
}

/// The settings of the root; `pyrightconfig.json` wins.
fn settings(search: &ProjectSearch<'_>, tables: &[&str]) -> Value {
    if let Some(text) = (search.read)(&search.root.join("pyrightconfig.json")) {
        return jsonc::parse(&text).unwrap_or_default();
    }
    let text = (search.read)(&search.root.join("pyproject.toml")).unwrap_or_default();
    let parsed: Value = toml::from_str(&text).unwrap_or_default();
    tables.iter().find_map(|table| parsed.pointer(table)).cloned().unwrap_or_default()
}
