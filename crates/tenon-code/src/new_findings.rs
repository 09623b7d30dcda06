//! What the working files introduced since a revision: the new diagnostics of changed files and of the files that use them.

use std::collections::BTreeSet;
use std::time::Duration;

use tenon_contract::position::LineIndex;
use tenon_contract::root::ReadError;
use tenon_lsp::CallContext;
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::orchestrator::{ChangeCheck, ChangedText, FileCheck, Orchestrator, ServerCheck};
use tenon_lsp::workspace_check::{CheckReport, CheckedFile, Compared, MissingCheck};

use crate::changed_files;
use crate::deleted_modules::DeletedModules;
use crate::delta::{Delta, TextMap};
use crate::git::{GitError, GitRepository};
use crate::report_log::ReportedFiles;

/// How long one git command may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The diagnostics that are new since a revision, in all files that changed and in those that use them.
pub async fn since(
    orchestrator: &Orchestrator,
    files: &ReportedFiles,
    revision: &str,
    severities: &BTreeSet<Severity>,
    call: &CallContext,
) -> Result<CheckReport, GitError> {
    let ReportedFiles { gate, walk, registry, search } = files;
    let repository = GitRepository::open(walk.root(), search, GIT_TIMEOUT).await?;
    let revision = repository.revision(revision).await?;
    let changed = changed_files::since(&repository, &revision, walk, gate, registry).await?;
    let blobs: Vec<_> = changed.iter().filter_map(|file| file.before.clone()).collect();
    let mut texts = repository.texts(&blobs).await?.into_iter();
    let mut report = CheckReport { compared: Some(Compared::default()), ..CheckReport::default() };
    let mut changes = Vec::new();
    for file in changed {
        let before = match file.before {
            Some(_) => texts.next().flatten(),
            None => Some(String::new()),
        };
        let after = match orchestrator.read(&file.path).await {
            Ok(lines) => Some(lines.text().to_string()),
            Err(ReadError::Gone) => None,
            Err(error) => {
                let missing = MissingCheck { server: None, why: error.to_string() };
                report.files.push(checked(gate.display(&file.path), vec![missing]));
                continue;
            }
        };
        let before = before.map(|before| with_line_ends_of(before, after.as_deref()));
        changes.push(ChangedText { path: file.path, before, after });
    }
    let check = match changes.is_empty() {
        true => ChangeCheck::default(),
        false => orchestrator.check_change(&changes, call.remaining(), call).await,
    };
    for (file, change) in check.changed.iter().zip(&changes) {
        let map = match (&change.before, &change.after) {
            (Some(before), Some(after)) => TextMap::new(before, after),
            _ => TextMap::default(),
        };
        let lines = change.after.clone().map(LineIndex::new);
        add(&mut report, gate.display(&file.path), file, &map, lines, severities);
    }
    let deleted = DeletedModules::new(&changes);
    for file in &check.others {
        let lines = orchestrator.read(&file.path).await.ok();
        let file = &deleted.remove_from(file);
        add(&mut report, gate.display(&file.path), file, &TextMap::default(), lines, severities);
    }
    if let Some(compared) = &mut report.compared {
        compared.unchecked = check.unchecked;
    }
    report.files.sort_by(|a, b| a.file.cmp(&b.file));
    report.notes = check.notes;
    Ok(report)
}

/// Adds a file with the diagnostics that are new in it. `lines` is `None` for a deleted file.
fn add(
    report: &mut CheckReport,
    name: String,
    file: &FileCheck,
    map: &TextMap,
    lines: Option<LineIndex>,
    severities: &BTreeSet<Severity>,
) {
    let mut one = checked(name, Vec::new());
    let wanted = |list: &[Diagnostic]| -> Vec<Diagnostic> {
        list.iter().filter(|found| severities.contains(&found.severity())).cloned().collect()
    };
    for ServerCheck { server, before, after } in &file.servers {
        let missing = |why: &str| MissingCheck { server: Some(server.clone()), why: why.to_owned() };
        match (before, after) {
            (Some(before), Some(after)) => {
                let (before, after) = (wanted(before), wanted(after));
                let delta = Delta::new(&before, &after, map);
                one.diagnostics.extend(delta.new.into_iter().cloned());
                if let Some(compared) = &mut report.compared {
                    compared.gone += delta.gone.len();
                    compared.unchanged += delta.unchanged.len();
                }
            }
            _ if lines.is_none() => {}
            (_, None) => one.missing.push(missing("did not finish in time")),
            (None, Some(_)) => one.missing.push(missing("did not report on the text before")),
        }
    }
    one.diagnostics.sort_by(|a, b| a.compare(b));
    // Several servers may say the same.
    one.diagnostics.dedup_by(|a, b| a.range == b.range && a.message == b.message);
    report.checked += usize::from(file.servers.iter().any(|server| server.after.is_some()));
    one.lines = lines.filter(|_| !one.diagnostics.is_empty());
    report.files.push(one);
}

fn checked(file: String, missing: Vec<MissingCheck>) -> CheckedFile {
    CheckedFile { file, lines: None, diagnostics: Vec::new(), missing }
}

/// A text of the repository with the line ends of the working file, which git may have converted.
fn with_line_ends_of(before: String, after: Option<&str>) -> String {
    match after.is_some_and(|after| after.contains("\r\n")) && !before.contains("\r\n") {
        true => before.replace('\n', "\r\n"),
        false => before,
    }
}
