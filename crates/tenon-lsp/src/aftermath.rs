//! What an edit broke: in the files it touched and in others.
//!
//! The order is that of every edit: take the epoch, make the servers know the new text and collect what they say about
//! it, then give what follows from it elsewhere time to show. A server's word counts only for the text that it has seen:
//! when a newer text overtakes an edit, its answer is what was known for its own text and says that it is not complete.

use std::time::Duration;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tenon_contract::root::WorkspacePath;

use crate::call_context::CallContext;
use crate::diagnostic_line::DiagnosticLine;
use crate::model::{Diagnostic, Gap, GapReason};
use crate::orchestrator::Orchestrator;

/// How the names of files begin that an edit writes first and renames then. Nobody hears of them.
pub const UNFINISHED: &str = ".tenon-edit-";

/// A file that was changed.
#[derive(Debug, Clone)]
pub struct Touched {
    pub path: WorkspacePath,
    /// What it was changed to; else whatever is on disk.
    pub text: Option<String>,
    /// What it was before, if that is known: without it, all of a file that a server does not know counts as changed.
    pub before: Option<String>,
}

/// The findings of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiagnosticLines {
    /// Relative to the workspace.
    pub file: String,
    /// By place.
    pub diagnostics: Vec<DiagnosticLine>,
}

/// What an edit led to. The default is that nothing is known, nor expected from anyone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aftermath {
    /// The touched files, in the order given.
    pub touched: Vec<FileDiagnosticLines>,
    /// All other files that a server complains about, by name.
    pub others: Vec<FileDiagnosticLines>,
    /// Whether every server that is there had its say about exactly these texts.
    pub complete: bool,
    /// The servers that were not done in time, by name.
    pub pending: Vec<String>,
}

impl Aftermath {
    /// Shows files to their servers and collects what follows. What follows elsewhere may take `wait` to show.
    pub async fn of(
        orchestrator: &Orchestrator,
        touched: &[Touched],
        wait: Duration,
        call: &CallContext,
    ) -> Self {
        let before = orchestrator.epoch();
        let checks = touched.iter().map(|one| {
            orchestrator.check_and_look(&one.path, one.text.clone(), one.before.clone(), wait, call)
        });
        let mut found = Self { complete: true, ..Self::default() };
        let mut here: Vec<Vec<Diagnostic>> = Vec::new();
        let mut served = false;
        for checked in join_all(checks).await {
            // A file that cannot be read any more has nothing to say, and nobody is late.
            let Ok(answer) = checked else {
                found.complete = false;
                here.push(Vec::new());
                continue;
            };
            found.complete &= answer.is_complete();
            found.pending.extend(answer.pending().map(ToString::to_string));
            let absent = |gap: &&Gap| matches!(gap.why, GapReason::Unavailable(_) | GapReason::Broken);
            served |= answer.servers.len() > answer.gaps.iter().filter(absent).count();
            here.push(answer.value);
        }
        if served && !call.cancel.is_cancelled() {
            let versions = |one: &Touched| orchestrator.versions(&one.path, one.text.as_deref());
            let seen: Vec<_> = touched.iter().map(versions).collect();
            let elsewhere = orchestrator.settled_diagnostics(before, wait, call).await;
            for ((one, known), seen) in touched.iter().zip(&mut here).zip(seen) {
                if seen.is_none() || seen != versions(one) {
                    found.complete = false;
                } else if !elsewhere.unanswered.contains(one.path.as_str()) {
                    // The same text, looked at longer.
                    *known = elsewhere.files.get(&one.path).cloned().unwrap_or_default();
                }
            }
            let gate = orchestrator.gate();
            let others =
                elsewhere.files.iter().filter(|(path, _)| touched.iter().all(|one| one.path != **path));
            found.others = others.map(|(path, items)| findings(gate.display(path), items)).collect();
            found.others.sort_by(|a, b| a.file.cmp(&b.file));
            found.complete &= elsewhere.pending.is_empty();
            found.pending.extend(elsewhere.pending.iter().map(ToString::to_string));
        }
        let shown = |(one, known): (&Touched, Vec<Diagnostic>)| {
            findings(orchestrator.gate().display(&one.path), &known)
        };
        found.touched = touched.iter().zip(here).map(shown).collect();
        found.pending.sort_unstable();
        found.pending.dedup();
        found
    }
}

fn findings(file: String, items: &[Diagnostic]) -> FileDiagnosticLines {
    FileDiagnosticLines { file, diagnostics: items.iter().map(DiagnosticLine::from).collect() }
}
