//! Results as text, one per line, for clients that show their model only text: `src/a.ts:11:5`.
//!
//! Lines and columns count from one, as in compiler output; paths are relative to the first root.

use tenon_contract::position::Position;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::model::SymbolKind;

use crate::canonical::{Diagnostic, DocumentSymbol, FileDiagnostics, Location, WorkspaceSymbol};

/// A result that can be listed.
pub(crate) trait Listed {
    fn lines(&self, gate: &RootGate) -> Vec<String>;
}

impl Listed for Location {
    fn lines(&self, gate: &RootGate) -> Vec<String> {
        vec![place(gate, &self.path, self.range.start)]
    }
}

impl Listed for WorkspaceSymbol {
    fn lines(&self, gate: &RootGate) -> Vec<String> {
        let place = place(gate, &self.location.path, self.name_at);
        vec![format!("{place} {}", named(self.kind, &self.name, self.container_name.as_deref()))]
    }
}

impl Listed for FileDiagnostics {
    fn lines(&self, gate: &RootGate) -> Vec<String> {
        self.diagnostics.iter().map(|one| diagnostic(gate, &self.path, one)).collect()
    }
}

/// A symbol of a document.
pub(crate) fn document_symbol(gate: &RootGate, path: &WorkspacePath, symbol: &DocumentSymbol) -> String {
    let place = place(gate, path, symbol.selection_range.start);
    format!("{place} {}", named(symbol.kind, &symbol.name, symbol.container_name.as_deref()))
}

/// A diagnostic of a document.
pub(crate) fn diagnostic(gate: &RootGate, path: &WorkspacePath, diagnostic: &Diagnostic) -> String {
    let severity = severity(diagnostic.severity);
    let code = diagnostic.code.as_ref().map(|code| format!(" ({})", one_line(code))).unwrap_or_default();
    let place = place(gate, path, diagnostic.range.start);
    format!("{place} {severity}: {}{code}", one_line(&diagnostic.message))
}

/// The name of the protocol's number; error if it is missing.
fn severity(number: Option<u32>) -> &'static str {
    match number {
        None | Some(1) => "error",
        Some(2) => "warning",
        Some(4) => "hint",
        Some(_) => "info",
    }
}

fn named(kind: u32, name: &str, container: Option<&str>) -> String {
    let inside = container.map(|container| format!(" in {}", one_line(container))).unwrap_or_default();
    format!("{} {}{inside}", SymbolKind(kind).name(), one_line(name))
}

fn place(gate: &RootGate, path: &WorkspacePath, at: Position) -> String {
    format!("{}:{}:{}", one_line(&gate.display(path)), u64::from(at.line) + 1, u64::from(at.character) + 1)
}

/// Replaces line breaks and runs of white space by one space.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
