//! Diagnostics for the service's host, filtered by severity, in the contract's format.

use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::model::{self, Severity};
use tenon_lsp::service::{Files, ServiceDiagnostic};

/// The diagnostics of one file with one of these severities.
pub(super) fn file(
    gate: &RootGate,
    path: &WorkspacePath,
    items: &[model::Diagnostic],
    severities: &[Severity],
) -> Vec<ServiceDiagnostic> {
    let name = gate.display(path);
    let wanted = items.iter().filter(|one| severities.contains(&one.severity()));
    wanted.map(|one| ServiceDiagnostic::new(&name, one)).collect()
}

/// The diagnostics of many files; files without any are left out.
pub(super) fn files<'a>(
    gate: &RootGate,
    files: impl IntoIterator<Item = (&'a WorkspacePath, &'a Vec<model::Diagnostic>)>,
    severities: &[Severity],
) -> Files {
    let shown =
        files.into_iter().map(|(path, items)| (gate.display(path), file(gate, path, items, severities)));
    shown.filter(|(_, items)| !items.is_empty()).collect()
}
