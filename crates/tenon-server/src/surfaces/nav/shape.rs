//! The result shapes of the `nav` contract: relative paths with `/`, numbers from 1, kinds and severities by name.

use serde_json::{Map, Value};
use tenon_contract::position::Position;
use tenon_contract::root::RootGate;
use tenon_lsp::diagnostic_line::{MAX_MESSAGE, one_line};
use tenon_lsp::model::{Diagnostic, Location, Symbol};
use tenon_lsp::orchestrator::CheckedFiles;

fn one_based(position: Position) -> (u64, u64) {
    (u64::from(position.line) + 1, u64::from(position.character) + 1)
}

/// How much of the workspace the diagnostics cover.
pub(super) fn coverage_line(covered: CheckedFiles) -> String {
    let CheckedFiles { checked, pending, served } = covered;
    let unknown = served.saturating_sub(checked + pending);
    let mut parts = vec![format!("{checked} of {served} files checked")];
    if pending > 0 {
        parts.push(format!("{pending} being checked"));
    }
    if unknown > 0 {
        parts.push(format!("{unknown} unknown"));
    }
    let hint = if pending + unknown > 0 { "; `tenon check` checks all" } else { "" };
    format!("({}{hint})", parts.join(", "))
}

/// An object of these values. The `json!` macro would copy them, and collecting a map sorts them.
pub(super) fn object<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    let mut fields = Map::new();
    for (key, value) in pairs {
        fields.insert(key.to_owned(), value);
    }
    Value::Object(fields)
}

pub(super) fn location(gate: &RootGate, location: &Location) -> Value {
    let (line, character) = one_based(location.range.start);
    let file = gate.display(&location.path);
    object([("file", file.into()), ("line", line.into()), ("character", character.into())])
}

pub(super) fn location_line(gate: &RootGate, location: &Location) -> String {
    let (line, character) = one_based(location.range.start);
    format!("{}:{line}:{character}", gate.display(&location.path))
}

pub(super) fn symbol(gate: &RootGate, symbol: &Symbol, with_file: bool) -> Value {
    let (start_line, start_char) = one_based(symbol.range.start);
    let (end_line, end_char) = one_based(symbol.range.end);
    let range = object([
        ("startLine", start_line.into()),
        ("startChar", start_char.into()),
        ("endLine", end_line.into()),
        ("endChar", end_char.into()),
    ]);
    let (name, kind) = (symbol.name.as_str().into(), symbol.kind.name().into());
    if with_file {
        let file = gate.display(&symbol.path).into();
        return object([("name", name), ("kind", kind), ("file", file), ("range", range)]);
    }
    object([("name", name), ("kind", kind), ("range", range)])
}

/// The position is that of the name.
pub(super) fn symbol_line(gate: &RootGate, symbol: &Symbol, with_file: bool) -> String {
    let (line, character) = one_based(symbol.selection.start);
    let (name, kind) = (&symbol.name, symbol.kind.name());
    if with_file {
        format!("{kind} {name} {}:{line}:{character}", gate.display(&symbol.path))
    } else {
        let indent = "  ".repeat(symbol.depth as usize);
        format!("{indent}{kind} {name} {line}:{character}")
    }
}

pub(super) fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let (line, character) = one_based(diagnostic.range.start);
    let mut value = object([
        ("line", line.into()),
        ("character", character.into()),
        ("severity", diagnostic.severity().as_str().into()),
        ("message", diagnostic.message.as_str().into()),
    ]);
    if let Some(code) = &diagnostic.code {
        value["code"] = Value::String(code.clone());
    }
    value
}

pub(super) fn diagnostic_line(file: &str, diagnostic: &Diagnostic) -> String {
    let (line, character) = one_based(diagnostic.range.start);
    let message = one_line(&diagnostic.message, MAX_MESSAGE);
    format!("{file}:{line}:{character} {}: {message}", diagnostic.severity().as_str())
}
