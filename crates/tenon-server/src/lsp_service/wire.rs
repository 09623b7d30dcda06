//! What the service's host reads: diagnostics and states in the contract's shapes.

use serde_json::{Map, Value, json};
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::orchestrator::ServerStatus;

/// One diagnostic: the path relative with `/`, positions counted from 1.
fn diagnostic(file: &str, diagnostic: &Diagnostic) -> Value {
    let start = diagnostic.range.start;
    let mut value = json!({
        "file": file,
        "line": u64::from(start.line) + 1,
        "character": u64::from(start.character) + 1,
        "severity": diagnostic.severity().as_str(),
        "message": diagnostic.message,
    });
    if let Some(code) = &diagnostic.code {
        value["code"] = Value::String(code.clone());
    }
    if let Some(source) = &diagnostic.source {
        value["source"] = Value::String(source.clone());
    }
    value
}

/// The diagnostics of one file, those of other severities left out.
pub(super) fn file(
    gate: &RootGate,
    path: &WorkspacePath,
    items: &[Diagnostic],
    severities: &[Severity],
) -> Vec<Value> {
    let name = gate.display(path);
    items
        .iter()
        .filter(|one| severities.contains(&one.severity()))
        .map(|one| diagnostic(&name, one))
        .collect()
}

/// The diagnostics of many files, by relative path in byte order; files with nothing to show are left out.
pub(super) fn files<'a>(
    gate: &RootGate,
    files: impl IntoIterator<Item = (&'a WorkspacePath, &'a Vec<Diagnostic>)>,
    severities: &[Severity],
) -> Value {
    let mut shown: Vec<(String, Vec<Value>)> = files
        .into_iter()
        .map(|(path, items)| (gate.display(path), file(gate, path, items, severities)))
        .filter(|(_, items)| !items.is_empty())
        .collect();
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    let map: Map<String, Value> =
        shown.into_iter().map(|(name, items)| (name, Value::Array(items))).collect();
    Value::Object(map)
}

pub(super) fn status(status: &ServerStatus) -> Value {
    let mut value = json!({ "id": status.id, "status": status.state.as_str(), "language": status.language });
    if let Some(pid) = status.pid {
        value["serverPid"] = json!(pid);
    }
    if let Some(detail) = &status.detail {
        value["detail"] = json!(detail);
    }
    value
}
