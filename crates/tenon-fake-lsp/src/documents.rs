//! The documents that a client opened, updated as a real server updates them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tenon_contract::position::{Encoding, LineIndex, Position};

/// A text with its version.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) version: i64,
    pub(crate) lines: LineIndex,
}

#[derive(Debug, Default)]
pub(crate) struct Documents(BTreeMap<String, Document>);

impl Documents {
    pub(crate) fn get(&self, uri: &str) -> Option<&Document> {
        self.0.get(uri)
    }

    /// Applies a notification about a document and ignores all others.
    pub(crate) fn apply(&mut self, method: &str, params: &Value, encoding: Encoding) {
        let document = &params["textDocument"];
        let Some(uri) = document["uri"].as_str() else {
            return;
        };
        match method {
            "textDocument/didOpen" => {
                let text = document["text"].as_str().unwrap_or_default();
                let version = document["version"].as_i64().unwrap_or_default();
                self.0.insert(uri.to_owned(), Document { version, lines: LineIndex::new(text) });
            }
            "textDocument/didChange" => {
                let Some(open) = self.0.get_mut(uri) else {
                    return;
                };
                open.version = document["version"].as_i64().unwrap_or_default();
                for change in params["contentChanges"].as_array().into_iter().flatten() {
                    open.lines = LineIndex::new(changed(&open.lines, change, encoding));
                }
            }
            "textDocument/didClose" => {
                self.0.remove(uri);
            }
            _ => {}
        }
    }
}

fn changed(lines: &LineIndex, change: &Value, encoding: Encoding) -> String {
    let text = change["text"].as_str().unwrap_or_default();
    let at = |key: &str| {
        let position: Position = serde_json::from_value(change["range"][key].clone()).ok()?;
        lines.offset(position, encoding).ok()
    };
    match (at("start"), at("end")) {
        (Some(start), Some(end)) => format!("{}{text}{}", &lines.text()[..start], &lines.text()[end..]),
        _ => text.to_owned(),
    }
}

/// The ranges of a word in a file, with the version of the document if it is open.
pub(crate) fn mentions(
    documents: &Documents,
    uri: &str,
    name: &str,
    encoding: Encoding,
) -> (Option<i64>, Vec<Value>) {
    let (version, lines) = match documents.get(uri) {
        Some(open) => (Some(open.version), open.lines.clone()),
        None => {
            let path = uri.strip_prefix("file://").unwrap_or(uri);
            (None, LineIndex::new(std::fs::read_to_string(path).unwrap_or_default()))
        }
    };
    let text = lines.text();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_alone =
        |at: usize| !text[..at].ends_with(is_word) && !text[at + name.len()..].starts_with(is_word);
    let places = text.match_indices(name).map(|(at, _)| at).filter(|at| !name.is_empty() && is_alone(*at));
    let range = |at: usize| json!({ "start": lines.position_clamped(at, encoding), "end": lines.position_clamped(at + name.len(), encoding) });
    (version, places.map(range).collect())
}

/// One error for each `bad` in a document, and for each import whose file is missing or has an error itself. Like a real
/// server, it reads files that are not open from disk.
pub(crate) fn bad_imports(documents: &Documents, uri: &str, encoding: Encoding) -> Vec<Value> {
    let Some(document) = documents.get(uri) else {
        return Vec::new();
    };
    let mut errors = lint(&document.lines, encoding);
    for (line, text) in document.lines.text().lines().enumerate() {
        if let Some(name) = text.strip_prefix("import ")
            && let Some(why) = bad_import(documents, uri, name, &mut BTreeSet::from([uri.to_owned()]))
        {
            let at = |character| json!({ "line": line, "character": character });
            errors.push(json!({ "range": { "start": at(0), "end": at(text.len()) }, "message": why }));
        }
    }
    errors
}

fn bad_import(
    documents: &Documents,
    importer: &str,
    name: &str,
    seen: &mut BTreeSet<String>,
) -> Option<String> {
    let (folder, file) = importer.rsplit_once('/')?;
    let (_, extension) = file.rsplit_once('.')?;
    let uri = format!("{folder}/{name}.{extension}");
    if !seen.insert(uri.clone()) {
        return None;
    }
    let text = match documents.get(&uri) {
        Some(open) => Some(open.lines.text().to_string()),
        None => std::fs::read_to_string(uri.strip_prefix("file://")?).ok(),
    };
    let Some(text) = text else {
        return Some(format!("{name} is missing"));
    };
    if text.contains("bad") {
        return Some(format!("{name} is bad"));
    }
    let mut imports = text.lines().filter_map(|line| line.strip_prefix("import "));
    imports.find_map(|further| bad_import(documents, &uri, further, seen))
}

/// One error for each `bad` in a text.
pub(crate) fn lint(lines: &LineIndex, encoding: Encoding) -> Vec<Value> {
    lines
        .text()
        .match_indices("bad")
        .map(|(at, found)| {
            let range = json!({
                "start": lines.position_clamped(at, encoding),
                "end": lines.position_clamped(at + found.len(), encoding),
            });
            json!({ "range": range, "severity": 1, "source": "fake", "message": "this is bad" })
        })
        .collect()
}

/// The word around a position.
pub(crate) fn word(lines: &LineIndex, position: Position, encoding: Encoding) -> String {
    let Ok(at) = lines.offset(position, encoding) else {
        return "(no such position)".to_owned();
    };
    let text = lines.text();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let start = text[..at]
        .rfind(|c| !is_word(c))
        .map_or(0, |before| before + text[before..].chars().next().map_or(0, char::len_utf8));
    let end = text[at..].find(|c| !is_word(c)).map_or(text.len(), |after| at + after);
    text[start..end].to_owned()
}
