//! Reads of the syntax index for callers that show source to people: names, outlines and highlighted text.

use std::sync::Arc;

use serde::Serialize;
use tenon_index::{HighlightedLine, SourceLanguage, SymbolFilter, SymbolQuery, SyntaxIndex, View, highlight};
use tenon_lsp::CallContext;

use super::Explorer;

/// The index at one moment.
pub struct IndexReader {
    view: View,
    /// Whether all files are known.
    pub is_current: bool,
}

/// A declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundSymbol {
    pub name: String,
    /// The name with its containers' names.
    pub name_path: String,
    pub kind: &'static str,
    pub signature: String,
    pub path: String,
    pub line: u32,
    pub last_line: u32,
    pub depth: usize,
}

impl Explorer {
    /// The index, brought up to date.
    pub async fn index_reader(&self, call: &CallContext) -> IndexReader {
        let is_current = self.refresh(call).await;
        let index: &Arc<SyntaxIndex> = self.index();
        IndexReader { view: index.view(), is_current }
    }
}

impl IndexReader {
    /// How many files there are.
    pub fn files(&self) -> usize {
        self.view.files().len()
    }

    /// How many declarations there are.
    pub fn symbols(&self) -> usize {
        self.view.files().map(|file| file.symbols().len()).sum()
    }

    /// The best matches for a name, and how many there are.
    pub fn find(&self, name: &str, at_most: usize) -> (Vec<FoundSymbol>, usize) {
        let Ok(query) = SymbolQuery::parse(name) else { return (Vec::new(), 0) };
        let matches = self.view.find(&query, &SymbolFilter::default());
        (matches.symbols.iter().take(at_most).map(|one| found(*one)).collect(), matches.total)
    }

    /// Whether a declaration has exactly this name.
    pub fn declares(&self, name: &str) -> bool {
        self.view.declares(name)
    }

    /// The declarations of a file, in their order, and how many there are.
    pub fn outline(&self, path: &str, at_most: usize) -> Option<(Vec<FoundSymbol>, usize)> {
        let file = self.view.file(path)?;
        Some((file.symbols().take(at_most).map(found).collect(), file.symbols().len()))
    }

    /// The files and folders directly below a folder; the root is the empty path. Folders first, with a trailing slash.
    pub fn folder(&self, folder: &str, at_most: usize) -> (Vec<String>, usize) {
        let prefix =
            if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let mut folders: Vec<String> = Vec::new();
        let mut files = Vec::new();
        for file in self.view.below(folder) {
            let Some(rest) = file.path().strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((name, _)) => {
                    let name = format!("{name}/");
                    if folders.last() != Some(&name) {
                        folders.push(name);
                    }
                }
                None => files.push(rest.to_owned()),
            }
        }
        folders.sort();
        folders.dedup();
        let total = folders.len() + files.len();
        folders.extend(files);
        folders.truncate(at_most);
        (folders, total)
    }
}

fn found(symbol: tenon_index::SymbolRef<'_>) -> FoundSymbol {
    FoundSymbol {
        name: symbol.name().to_owned(),
        name_path: symbol.name_path(),
        kind: symbol.kind().as_str(),
        signature: symbol.signature().to_owned(),
        path: symbol.path().to_owned(),
        line: symbol.name_position().line,
        last_line: symbol.range().last_line,
        depth: symbol.depth(),
    }
}

/// The lines of a text, split into spans of one kind. A text of an unknown language has one plain span per line.
pub fn highlighted(path: &str, text: &str) -> Vec<HighlightedLine> {
    highlight(SourceLanguage::of_path(path), text)
}
