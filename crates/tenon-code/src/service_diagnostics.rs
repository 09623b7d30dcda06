//! The diagnostics that a host of the language-server service got after a write, in the form that [`crate::DiagnosticsText`] shows.

use tenon_lsp::diagnostic_line::DiagnosticLine;
use tenon_lsp::service::{Files, ServiceDiagnostic};

/// The diagnostics of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiagnosticLines {
    /// Relative to the workspace.
    pub file: String,
    /// By position.
    pub diagnostics: Vec<DiagnosticLine>,
}

/// All diagnostics after a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceDiagnostics {
    /// The written file.
    pub changed: Vec<FileDiagnosticLines>,
    /// All other files with diagnostics, by name.
    pub others: Vec<FileDiagnosticLines>,
}

impl ServiceDiagnostics {
    /// What the service returned for `file` (`checked`) and for all files (`all`).
    pub fn new(file: &str, checked: Vec<ServiceDiagnostic>, mut all: Files) -> Self {
        // The same text after a longer wait.
        let own = all.remove(file).unwrap_or(checked);
        let lines = |(file, items): (String, Vec<ServiceDiagnostic>)| FileDiagnosticLines {
            file,
            diagnostics: items.into_iter().map(DiagnosticLine::from).collect(),
        };
        Self { changed: vec![lines((file.to_owned(), own))], others: all.into_iter().map(lines).collect() }
    }
}
