//! The diagnostics that follow a change: in the changed files and in all others.
//!
//! The steps are the same for every change: note the epoch, show the servers the new texts and collect what they report on
//! them, then wait for the dependents. A report counts only for the text that the server has seen: if a newer text supersedes
//! a change, the result is what was known for its own text, and is not complete.

use std::time::Duration;

use futures::future::join_all;
use tenon_contract::root::WorkspacePath;
use tenon_lsp::CallContext;
use tenon_lsp::diagnostic_line::DiagnosticLine;
use tenon_lsp::model::{Diagnostic, Gap, GapReason};
use tenon_lsp::orchestrator::Orchestrator;
use tenon_lsp::service::{self, Files};

/// A file that was changed.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    pub path: WorkspacePath,
    /// The new text; `None` means the text on disk.
    pub text: Option<String>,
    /// The text before, if it is known. Without it, a file that a server does not know counts as changed everywhere.
    pub before: Option<String>,
}

/// The diagnostics of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiagnosticLines {
    /// Relative to the workspace.
    pub file: String,
    /// By position.
    pub diagnostics: Vec<DiagnosticLine>,
}

/// The diagnostics after a change. By default nothing is known, and no server is pending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditDiagnostics {
    /// The changed files, in the order given.
    pub changed: Vec<FileDiagnosticLines>,
    /// All other files with diagnostics, by name.
    pub others: Vec<FileDiagnosticLines>,
    /// Whether every running server reported on exactly these texts.
    pub complete: bool,
    /// The servers that did not finish in time, by name.
    pub pending: Vec<String>,
}

impl EditDiagnostics {
    /// Shows changed files to their servers and collects the diagnostics that follow; those of other files may take up to
    /// `wait`.
    pub async fn collect(
        servers: &Orchestrator,
        changed: &[ChangedFile],
        wait: Duration,
        call: &CallContext,
    ) -> Self {
        let before = servers.epoch();
        let checks = changed.iter().map(|file| {
            servers.check_with_dependents(&file.path, file.text.clone(), file.before.clone(), wait, call)
        });
        let mut found = Self { complete: true, ..Self::default() };
        let mut own: Vec<Vec<Diagnostic>> = Vec::new();
        let mut served = false;
        for checked in join_all(checks).await {
            // A file that can no longer be read has no diagnostics, and no server is pending for it.
            let Ok(answer) = checked else {
                found.complete = false;
                own.push(Vec::new());
                continue;
            };
            found.complete &= answer.is_complete();
            found.pending.extend(answer.pending().map(ToString::to_string));
            let absent = |gap: &&Gap| matches!(gap.why, GapReason::Unavailable(_) | GapReason::Broken);
            served |= answer.servers.len() > answer.gaps.iter().filter(absent).count();
            own.push(answer.value);
        }
        if served && !call.cancel.is_cancelled() {
            let versions = |file: &ChangedFile| servers.open_versions(&file.path, file.text.as_deref());
            let seen: Vec<_> = changed.iter().map(versions).collect();
            let settled = servers.settled_diagnostics(before, wait, call).await;
            for ((file, known), seen) in changed.iter().zip(&mut own).zip(seen) {
                if seen.is_none() || seen != versions(file) {
                    found.complete = false;
                } else if !settled.unanswered.contains(file.path.as_str()) {
                    // The same text after a longer wait.
                    *known = settled.files.get(&file.path).cloned().unwrap_or_default();
                }
            }
            let gate = servers.gate();
            let others =
                settled.files.iter().filter(|(path, _)| changed.iter().all(|file| file.path != **path));
            found.others = others.map(|(path, items)| lines(gate.display(path), items)).collect();
            found.others.sort_by(|a, b| a.file.cmp(&b.file));
            found.complete &= settled.pending.is_empty();
            found.pending.extend(settled.pending.iter().map(ToString::to_string));
        }
        let own = changed.iter().zip(own);
        found.changed = own.map(|(file, items)| lines(servers.gate().display(&file.path), &items)).collect();
        found.pending.sort_unstable();
        found.pending.dedup();
        found
    }

    /// The diagnostics that a host of the language-server service got for `file` (`checked`) and for all files (`all`).
    pub fn from_service(file: &str, checked: Vec<service::ServiceDiagnostic>, mut all: Files) -> Self {
        // The same text after a longer wait.
        let own = all.remove(file).unwrap_or(checked);
        let lines = |(file, items): (String, Vec<service::ServiceDiagnostic>)| FileDiagnosticLines {
            file,
            diagnostics: items.into_iter().map(DiagnosticLine::from).collect(),
        };
        Self {
            changed: vec![lines((file.to_owned(), own))],
            others: all.into_iter().map(lines).collect(),
            ..Self::default()
        }
    }
}

fn lines(file: String, items: &[Diagnostic]) -> FileDiagnosticLines {
    FileDiagnosticLines { file, diagnostics: items.iter().map(DiagnosticLine::from).collect() }
}
