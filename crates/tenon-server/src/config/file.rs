//! Reads one TOML text into settings, or reports every problem with its position.
//!
//! The text is walked against the list of keys rather than decoded into a struct: this finds all problems of a file at
//! once, each with its span, and lets an unknown key suggest the closest known one.

use std::ops::Range;

use camino::Utf8Path;
use toml::de::{DeTable, DeValue};

use super::key::{self, Key};
use super::problem::{ConfigLocation, ConfigProblem, SourceText};
use super::value::{self, Anchors};
use super::{Entry, SettingOrigin};

/// Which of the two configuration files a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    User,
    Workspace,
}

/// Reads `source`; relative paths in the workspace's file start at `root`.
pub(super) fn read(
    source: &SourceText,
    kind: FileKind,
    root: &Utf8Path,
    home: Option<&Utf8Path>,
) -> Result<Vec<Entry>, Vec<ConfigProblem>> {
    let base = (kind == FileKind::Workspace).then_some(root);
    let mut walk = Walk { source, kind, anchors: Anchors { base, home }, entries: vec![], problems: vec![] };
    match DeTable::parse(&source.text) {
        Ok(document) => walk.table("", document.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..source.text.len());
            walk.problem(span, error.message().lines().next().unwrap_or("invalid TOML").to_owned(), None);
        }
    }
    if walk.problems.is_empty() {
        return Ok(walk.entries);
    }
    walk.problems.sort_by_key(|problem| match &problem.location {
        ConfigLocation::Text { span, .. } => span.start,
        ConfigLocation::Variable(_) | ConfigLocation::Flag(_) => 0,
    });
    Err(walk.problems)
}

struct Walk<'a> {
    source: &'a SourceText,
    kind: FileKind,
    anchors: Anchors<'a>,
    entries: Vec<Entry>,
    problems: Vec<ConfigProblem>,
}

impl Walk<'_> {
    fn table(&mut self, above: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let text = name.get_ref();
            let path = if above.is_empty() { text.to_string() } else { format!("{above}.{text}") };
            if text.contains('.') || text.is_empty() {
                // Otherwise two different tables would have the same path.
                let message = format!("`{text}` is not a valid name: it is empty or contains a dot");
                self.problem(name.span(), message, None);
            } else if let Some(key) = key::find(&path) {
                self.leaf(key, path, value.get_ref(), value.span());
            } else if key::names_below(&path).is_empty() {
                self.unknown(above, text, &path, name.span());
            } else if let DeValue::Table(below) = value.get_ref() {
                self.table(&path, below);
            } else {
                self.problem(value.span(), format!("`{path}` must be a table"), None);
            }
        }
    }

    fn leaf(&mut self, key: &'static Key, path: String, value: &DeValue<'_>, span: Range<usize>) {
        match value::from_toml(key.kind, value, self.anchors) {
            Ok(reading) => {
                let line = self.source.line_of(span.start);
                let origin = SettingOrigin::File { kind: self.kind, path: self.source.path.clone(), line };
                self.entries.push(Entry { key, path, value: reading.value, note: reading.note, origin });
            }
            Err(misfit) => self.problem(span, format!("`{path}` {misfit}"), None),
        }
    }

    fn unknown(&mut self, above: &str, name: &str, path: &str, span: Range<usize>) {
        let known = key::names_below(above);
        let hint = match key::nearest(above, name) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if above.is_empty() => format!("the tables are {}", quoted(&known)),
            None => format!("`{above}` has {}", quoted(&known)),
        };
        self.problem(span, format!("unknown key `{path}`"), Some(hint));
    }

    fn problem(&mut self, span: Range<usize>, message: String, hint: Option<String>) {
        let location = ConfigLocation::Text { source: self.source.clone(), span };
        self.problems.push(ConfigProblem { message, hint, location });
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let source = SourceText::new("tenon.toml", text);
        let problems = read(&source, FileKind::Workspace, Utf8Path::new("/w"), None).unwrap_err();
        let lines = problems.iter().map(|problem| match &problem.hint {
            Some(hint) => format!("{problem}: {hint}"),
            None => problem.to_string(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let text = "[limit]\nx = 1\n[limits]\npage_size = 9\nmax_page_size = \"9\"\n[servers.pyright]\nlanguage_id = 1\n\
                    [mcp]\nsurfaces = [\"cod\"]\nzebra = 1\n";
        insta::assert_snapshot!(problems(text), @"
        unknown key `limit` (tenon.toml:1): did you mean `limits`?
        unknown key `limits.page_size` (tenon.toml:4): did you mean `limits.max_page_size`?
        `limits.max_page_size` must be a whole number from 1 to 200, not a string (tenon.toml:5)
        unknown key `servers.pyright.language_id` (tenon.toml:7): did you mean `servers.pyright.languageId`?
        `mcp.surfaces` must be `explore`, `code`, `nav`, `edit`, `context`, `work`, `tasks`, `memory` or `workspace`, not `cod` (tenon.toml:9)
        unknown key `mcp.zebra` (tenon.toml:10): `mcp` has `surfaces`, `content`, `tool_names`
        ");
    }

    #[test]
    fn invalid_toml_is_reported_with_its_line() {
        insta::assert_snapshot!(problems("[mcp]\ncontent = \n"), @"string values must be quoted, expected literal string (tenon.toml:2)");
        insta::assert_snapshot!(problems("mcp = 3\n"), @"`mcp` must be a table (tenon.toml:1)");
        insta::assert_snapshot!(problems("[servers.\"a.b\"]\ncommand = \"x\"\n"), @"`a.b` is not a valid name: it is empty or contains a dot (tenon.toml:1)");
    }

    #[test]
    fn relative_paths_are_allowed_in_the_workspace_file_only() {
        let source = SourceText::new("tenon.toml", "[context]\ncache_root = \"caches\"\n");
        let entries = read(&source, FileKind::Workspace, Utf8Path::new("/w"), None).unwrap();
        assert_eq!(entries[0].value, serde_json::json!("/w/caches"));
        assert!(read(&source, FileKind::User, Utf8Path::new("/w"), None).is_err());
    }
}
