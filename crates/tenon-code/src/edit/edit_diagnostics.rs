//! What a change did to the diagnostics of the changed files and of the files that depend on them.
//!
//! The servers report on the texts before and after; here both lists are compared. A list that is not known is never taken for
//! an empty one: it is said which part is missing, and the result is then not complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use tenon_contract::position::Range;
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::diagnostic_line::DiagnosticLine;
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::orchestrator::{ChangeCheck, ChangedText, FileCheck, ServerCheck};
use tenon_servers::registry::ServerId;

use super::text::Lines;
use super::told_findings::{Repeated, ToldFindings};
use crate::deleted_modules::DeletedModules;
use crate::delta::{Delta, TextMap};

/// The most bytes of a server's reason.
const MAX_REASON: usize = 200;

/// A diagnostic of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDiagnostic {
    /// Relative to the workspace.
    pub file: String,
    pub line: DiagnosticLine,
    /// The symbols around it, from the outermost: `Class.method`. `None` if they are not known or there are none.
    pub symbol: Option<String>,
    /// Whether the file was not changed, and the project's configuration leaves it out.
    pub is_outside: bool,
}

/// As one flat object.
impl Serialize for FoundDiagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            file: &'a str,
            line: u32,
            character: u32,
            severity: Severity,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            source: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            symbol: Option<&'a str>,
        }
        let DiagnosticLine { line, character, severity, message, code, source } = &self.line;
        let flat = Flat {
            file: &self.file,
            line: *line,
            character: *character,
            severity: *severity,
            message,
            code: code.as_deref(),
            source: source.as_deref(),
            symbol: self.symbol.as_deref(),
        };
        flat.serialize(serializer)
    }
}

/// What happened to a changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedFile {
    /// Relative to the workspace.
    pub file: String,
    pub kind: EditKind,
    pub state: FileState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKind {
    Created(Lines),
    /// With the changed lines of the text after, if the text before is known.
    Edited(Option<Lines>),
    /// Not written, with the lines that would change.
    Tried(Option<Lines>),
    Unchanged,
    Deleted,
}

/// How far a changed file was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// At least one server reported on both texts.
    Compared,
    /// Servers reported on the text after only.
    NoBaseline,
    /// No server reported on the text after.
    Unanswered,
    /// No language server is configured for such files.
    Unserved,
    /// Language servers are configured for such files, and none can run.
    Unavailable,
    /// Not UTF-8 text, or too large.
    Unreadable,
}

/// The delta of a change. By default nothing was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditDiagnostics {
    /// The changed files, in the order given.
    pub edited: Vec<EditedFile>,
    /// The diagnostics that the change caused: of the changed files in the order given, then of others by name, last those of
    /// files that the project's configuration leaves out.
    pub new: Vec<FoundDiagnostic>,
    /// Those that it removed, in the same order.
    pub gone: Vec<FoundDiagnostic>,
    /// How many of the changed files are the same.
    pub unchanged: usize,
    /// Diagnostics of changed files without a baseline: they may be older than the change. Those in changed lines come first.
    pub undated: Vec<FoundDiagnostic>,
    /// Whether every available server reported on the texts before and after, and on all files that depend on the change.
    pub complete: bool,
    /// The servers that did not finish in time.
    pub pending: Vec<String>,
    /// The servers that serve a changed file, did not report on it and are not pending, with the reason if they gave one.
    pub unanswered: Vec<String>,
    /// Files that may depend on the change and were not compared.
    pub unchecked: usize,
    /// Whether a newer edit of the file ended the wait.
    pub superseded: bool,
    /// The changed files that some server has not reported on yet; the next report on them adds what is missing.
    pub unfinished: Vec<WorkspacePath>,
    /// What servers do not support in the configuration of the projects.
    pub notes: Vec<String>,
}

/// What is compared.
pub(super) struct Comparison<'a> {
    pub(super) check: &'a ChangeCheck,
    pub(super) changed: &'a [ChangedText],
    /// The texts of other files with diagnostics.
    pub(super) other_texts: &'a BTreeMap<WorkspacePath, Arc<str>>,
    /// What was reported already.
    pub(super) told: &'a ToldFindings,
    pub(super) severities: &'a BTreeSet<Severity>,
    pub(super) gate: &'a RootGate,
}

impl EditedFile {
    /// Whether a server reported on the text after.
    fn is_checked(&self) -> bool {
        matches!(self.state, FileState::Compared | FileState::NoBaseline)
    }
}

impl EditDiagnostics {
    /// Compares what the servers reported, as far as it has one of the severities. Also returns what is told with that.
    pub(super) fn new(comparison: &Comparison<'_>) -> (Self, ToldFindings) {
        let Comparison { check, changed, other_texts, told, severities, gate } = *comparison;
        let mut found = Self {
            complete: check.complete,
            pending: check.pending.iter().map(ToString::to_string).collect(),
            unchecked: check.unchecked,
            notes: check.notes.clone(),
            ..Self::default()
        };
        let mut next = ToldFindings::default();
        for (file, text) in check.changed.iter().zip(changed) {
            let name = gate.display(&file.path);
            let map = match (&text.before, &text.after) {
                (Some(before), Some(after)) => TextMap::new(before, after),
                _ => TextMap::default(),
            };
            let after: Arc<str> = text.after.as_deref().unwrap_or_default().into();
            let lists = FileLists::new(file, severities, &map, &after, told);
            lists.tell(&mut next, file, &after);
            found.add(&name, &lists);
            found.unchanged += lists.unchanged;
            let missing = file.servers.iter().filter(|one| one.after.is_none());
            let missing = missing.filter(|one| text.after.is_some() && !check.pending.contains(&one.server));
            found.unanswered.extend(missing.map(|one| named(&one.server, check)));
            // Those in changed lines are most likely new, and come first.
            let (near, far): (Vec<_>, Vec<_>) =
                lists.undated.iter().partition(|one| map.is_changed(one.range.start.line));
            found.undated.extend(near.into_iter().chain(far).map(|one| shown(&name, one)));
            found.complete &= !file.servers.is_empty();
            found.edited.push(EditedFile { kind: kind(text, &map), state: state(file), file: name });
        }
        let deleted = DeletedModules::new(changed);
        for file in &check.others {
            let file = &deleted.remove_from(file);
            let text = other_texts.get(&file.path).cloned().unwrap_or_default();
            let lists = FileLists::new(file, severities, &TextMap::default(), &text, told);
            lists.tell(&mut next, file, &text);
            // What was there before is not known, so nothing can be called new or gone.
            if file.servers.iter().any(|one| one.before.is_none() || one.after.is_none()) {
                found.unchecked += 1;
                found.complete = false;
            }
            let others = found.new.len();
            found.add(&gate.display(&file.path), &lists);
            found.new[others..].iter_mut().for_each(|one| one.is_outside = file.is_outside);
        }
        // A stable sort.
        found.new.sort_by_key(|one| one.is_outside);
        found.unanswered.sort_unstable();
        found.unanswered.dedup();
        (found, next)
    }

    fn add(&mut self, file: &str, lists: &FileLists<'_>) {
        self.new.extend(lists.new.iter().map(|one| shown(file, one)));
        self.gone.extend(lists.gone.iter().map(|one| shown(file, one)));
    }

    /// No server that serves these files can run.
    pub(super) fn mark_unavailable(&mut self, files: &[String]) {
        for file in self.edited.iter_mut().filter(|file| files.contains(&file.file)) {
            file.state = FileState::Unavailable;
        }
    }

    /// These files are not text, or too large.
    pub(super) fn add_unreadable(&mut self, files: Vec<String>) {
        self.complete &= files.is_empty();
        let unreadable =
            |file| EditedFile { file, kind: EditKind::Edited(None), state: FileState::Unreadable };
        self.edited.extend(files.into_iter().map(unreadable));
    }

    /// Whether a server reported on both texts of a changed file, so that the counts mean something.
    pub fn is_compared(&self) -> bool {
        self.edited.iter().any(|file| file.state == FileState::Compared) || !self.new.is_empty()
    }

    /// Whether there is nothing to tell after an edit by another program: nothing changed, and nothing is missing except
    /// files that no server is meant for.
    pub fn is_silent(&self) -> bool {
        let served: Vec<&EditedFile> =
            self.edited.iter().filter(|file| file.state != FileState::Unserved).collect();
        let all_clear = served.is_empty()
            || (served.iter().all(|file| file.is_checked())
                && (self.complete || served.len() < self.edited.len()));
        let missing = self.unchecked > 0 || !self.pending.is_empty() || !self.unanswered.is_empty();
        let nothing = self.new.is_empty() && self.gone.is_empty() && self.undated.is_empty();
        nothing && all_clear && !missing && !self.superseded
    }
}

/// A server that did not check, with the first line of the reason if it gave one.
fn named(server: &ServerId, check: &ChangeCheck) -> String {
    let why = check.refused.get(server).and_then(|why| why.lines().next());
    why.map_or(server.to_string(), |why| {
        format!("{server} ({})", &why[..why.floor_char_boundary(MAX_REASON)])
    })
}

fn shown(file: &str, found: &Diagnostic) -> FoundDiagnostic {
    FoundDiagnostic {
        file: file.to_owned(),
        line: DiagnosticLine::from(found),
        symbol: None,
        is_outside: false,
    }
}

/// The lists of one file, of all servers. If several servers report the same message for the same range, the first one counts.
#[derive(Default)]
struct FileLists<'a> {
    new: Vec<&'a Diagnostic>,
    gone: Vec<&'a Diagnostic>,
    unchanged: usize,
    undated: Vec<&'a Diagnostic>,
    /// By server: the findings that are reported now or were before.
    told: Vec<(usize, Vec<&'a Diagnostic>)>,
}

impl<'a> FileLists<'a> {
    fn new(
        file: &'a FileCheck,
        severities: &BTreeSet<Severity>,
        map: &TextMap,
        text: &str,
        told: &'a ToldFindings,
    ) -> Self {
        let mut lists = Self::default();
        let (mut said, mut said_before) = (Said::default(), Said::default());
        for (index, ServerCheck { server, before, after }) in file.servers.iter().enumerate() {
            let wanted = |list: &'a Option<Vec<Diagnostic>>| {
                let list = list.as_ref()?.iter();
                Some(list.filter(|one| severities.contains(&one.severity())).collect::<Vec<_>>())
            };
            let Some(after) = wanted(after) else {
                continue;
            };
            let repeated = told.compare(&file.path, server, text, &after);
            let mut server_told: Vec<_> = after.iter().copied().filter(|one| repeated.has(one)).collect();
            match wanted(before) {
                Some(before) => {
                    let delta = Delta::new(before, after, map);
                    let (again, new): (Vec<_>, Vec<_>) =
                        delta.new.into_iter().partition(|one| repeated.has(one));
                    server_told.extend(&new);
                    lists.new.extend(new.into_iter().filter(|one| said.first(index, one)));
                    let unchanged = delta.unchanged.into_iter().chain(again);
                    lists.unchanged += unchanged.filter(|one| said.first(index, one)).count();
                    let gone = delta.gone.iter().copied().chain(not_among(&repeated, &delta.gone));
                    lists.gone.extend(gone.filter(|one| said_before.first(index, one)));
                }
                None => {
                    let (again, undated): (Vec<_>, Vec<_>) =
                        after.into_iter().partition(|one| repeated.has(one));
                    server_told.extend(&undated);
                    lists.undated.extend(undated.into_iter().filter(|one| said.first(index, one)));
                    lists.unchanged += again.into_iter().filter(|one| said.first(index, one)).count();
                    lists.gone.extend(repeated.gone.iter().filter(|one| said_before.first(index, one)));
                }
            }
            lists.told.push((index, server_told));
        }
        for list in [&mut lists.new, &mut lists.gone, &mut lists.undated] {
            list.sort_by(|a, b| a.compare(b));
        }
        lists
    }

    /// Takes note of what is reported.
    fn tell(&self, told: &mut ToldFindings, file: &FileCheck, text: &Arc<str>) {
        for (index, findings) in &self.told {
            let findings = findings.iter().copied().cloned().collect();
            told.put(&file.path, &file.servers[*index].server, text, findings);
        }
    }
}

/// The reported findings that are gone, unless the comparison with the text before has them too.
fn not_among<'a>(repeated: &Repeated<'a>, gone: &[&Diagnostic]) -> Vec<&'a Diagnostic> {
    let name = |one: &Diagnostic| (one.message.clone(), one.code.clone(), one.source.clone());
    let mut counted: BTreeMap<_, usize> = BTreeMap::new();
    gone.iter().for_each(|one| *counted.entry(name(one)).or_default() += 1);
    let is_counted = |one: &&&'a Diagnostic| match counted.get_mut(&name(one)) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    repeated.gone.iter().filter(is_counted).copied().collect()
}

/// Which server reported a message for a range first.
#[derive(Default)]
struct Said<'a>(BTreeMap<(Range, &'a str), usize>);

impl<'a> Said<'a> {
    fn first(&mut self, server: usize, one: &'a Diagnostic) -> bool {
        *self.0.entry((one.range, one.message.as_str())).or_insert(server) == server
    }
}

fn kind(text: &ChangedText, map: &TextMap) -> EditKind {
    match (&text.before, &text.after) {
        (_, None) => EditKind::Deleted,
        (Some(before), Some(after)) if before == after => EditKind::Unchanged,
        (Some(_), Some(after)) => {
            // The line that follows removed ones may not exist.
            let end = u32::try_from(after.lines().count().max(1)).unwrap_or(u32::MAX);
            let lines =
                |(first, last): (u32, u32)| Lines { first: (first + 1).min(end), last: (last + 1).min(end) };
            EditKind::Edited(map.changed_lines().map(lines))
        }
        (None, Some(_)) => EditKind::Edited(None),
    }
}

fn state(file: &FileCheck) -> FileState {
    let compared = file.servers.iter().any(|one| one.before.is_some() && one.after.is_some());
    let answered = file.servers.iter().any(|one| one.after.is_some());
    match (compared, answered, file.servers.is_empty()) {
        (true, ..) => FileState::Compared,
        (_, true, _) => FileState::NoBaseline,
        (.., true) => FileState::Unserved,
        _ => FileState::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_did_not_check_is_named_with_a_short_reason() {
        let server = ServerId::new("rust-analyzer").unwrap();
        let mut check = ChangeCheck::default();
        assert_eq!(named(&server, &check), "rust-analyzer");
        check.refused.insert(server.clone(), format!("cargo check failed: {}\nmore", "ß".repeat(200)));
        let text = named(&server, &check);
        assert!(text.starts_with("rust-analyzer (cargo check failed: ßß") && text.ends_with("ß)"), "{text}");
        assert!(text.len() < 230);
    }
}
