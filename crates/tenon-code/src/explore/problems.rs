//! `problems`: the diagnostics of changed files, a path, a symbol or the whole workspace, new ones first.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tenon_contract::root::WorkspacePath;
use tenon_index::SourceRange;
use tenon_lsp::CallContext;
use tenon_lsp::diagnostic_line::{DiagnosticLine, MAX_MESSAGE, one_line};
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::workspace_check::{self, CheckReport, Compared, files::of_paths};

use super::answer::{Answer, Continuation, Line, View};
use super::notes::Notes;
use super::outline::Place;
use super::{ExploreError, Explorer, NamedSymbol, allowed, hit_list};
use crate::error::{CodeError, IndexingProgress};
use crate::git::GitError;
use crate::new_findings;
use crate::report_log::ReportedFiles;
use crate::summary::count;
use crate::symbol_edit::ListedFix;

/// The most files whose fixes are listed.
const MAX_FIXED_FILES: usize = 20;

/// The arguments of `problems`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problems {
    pub scope: Option<String>,
    pub since: Option<String>,
    #[serde(default)]
    pub fixes: bool,
    pub cursor: Option<String>,
    pub max_bytes: Option<usize>,
}

/// Reports what changed since the last report to the agent.
pub type SinceReport = Box<dyn Fn(CallContext) -> BoxFuture<'static, Result<String, GitError>> + Send + Sync>;

/// A diagnostic of a file.
struct Problem {
    /// Relative to the root.
    path: String,
    line: DiagnosticLine,
    /// How to apply fixes, and what they do.
    fixes: Vec<String>,
}

/// What was checked.
struct Checked {
    problems: Vec<Problem>,
    /// How many files.
    files: usize,
    /// Set if only new ones are listed.
    compared: Option<Compared>,
}

impl Explorer {
    pub(super) async fn problems(
        &self,
        input: Problems,
        mut notes: Notes,
        call: &CallContext,
    ) -> Result<String, ExploreError> {
        let Problems { scope, since, fixes, cursor, max_bytes } = input;
        let scope = scope.as_deref().unwrap_or("changed");
        if since.as_deref() == Some("edit") {
            let text = (self.options.since_report)(call.clone()).await?;
            let text = match text.is_empty() {
                true => "no new problems since the last report".to_owned(),
                false => text,
            };
            let notes = notes.into_lines().into_iter().map(|note| format!("\nnote: {note}"));
            return Ok(text + &notes.collect::<String>());
        }
        let mut checked = match (scope, since.as_deref()) {
            ("all", None) => self.all_problems(&mut notes, call).await?,
            ("changed", None) => match self.new_problems("HEAD", None, &mut notes, call).await {
                Err(ExploreError::Git(
                    GitError::NoGit | GitError::NotARepository | GitError::UnknownRevision(_),
                )) => {
                    notes.add("no git commit to compare with; these are all problems");
                    self.all_problems(&mut notes, call).await?
                }
                checked => checked?,
            },
            ("changed" | "all", Some(revision)) => {
                self.new_problems(revision, None, &mut notes, call).await?
            }
            (scope, since) => {
                let (files, range) = match self.problem_scope(scope, &notes, max_bytes)? {
                    Scope::Files(files) => (files, None),
                    Scope::Symbol(file, range) => (vec![file], Some(range)),
                    Scope::Listed(text) => return Ok(text),
                };
                let mut checked = match since {
                    Some(revision) => self.new_problems(revision, Some(&files), &mut notes, call).await?,
                    None => self.problems_of(&files, &mut notes, call).await,
                };
                if let Some(SourceRange { first_line, last_line, .. }) = range {
                    checked.problems.retain(|one| (first_line..=last_line).contains(&one.line.line));
                }
                checked
            }
        };
        if fixes {
            self.add_fixes(&mut checked, &mut notes, call).await;
        }
        let answer = self.problem_list(checked, cursor.as_deref())?;
        Ok(answer.with_notes(notes.into_lines()).fit(allowed(max_bytes)))
    }

    /// The files or the symbol that a scope names.
    fn problem_scope(
        &self,
        scope: &str,
        notes: &Notes,
        max_bytes: Option<usize>,
    ) -> Result<Scope, ExploreError> {
        let gate = self.servers().gate();
        let admit = |path: &str| gate.admit_path(path).ok();
        match self.locate(scope) {
            Ok(Place::File(path)) => return Ok(Scope::Files(admit(&path).into_iter().collect())),
            Ok(Place::Folder(folder)) => return Ok(Scope::Files(self.files_below(&folder)?)),
            Err(_) => {}
        }
        if scope.contains(['*', '?', '{']) {
            let filter = self.path_filter(scope)?;
            let mut files = self.files_below("")?;
            files.retain(|path| filter.matches(&gate.display(path)));
            return Ok(Scope::Files(files));
        }
        Ok(match self.named_symbol(scope, notes, max_bytes)? {
            NamedSymbol::Listed(text) => Scope::Listed(text),
            NamedSymbol::One(symbol) => {
                let declaration = symbol.main();
                Scope::Symbol(self.admit(&declaration.path)?, declaration.range)
            }
        })
    }

    /// The files below a folder that some server checks.
    fn files_below(&self, folder: &str) -> Result<Vec<WorkspacePath>, ExploreError> {
        let reported = self.reported()?;
        let folder = reported.walk.root().join(folder);
        of_paths(&[folder], &reported.walk, &reported.gate, &reported.registry)
            .map_err(|error| ExploreError::Arguments(error.to_string()))
    }

    fn reported(&self) -> Result<&ReportedFiles, ExploreError> {
        let invalid =
            || ExploreError::Arguments("the settings for files are invalid; run `tenon doctor`".to_owned());
        self.options.reported.as_ref().ok_or_else(invalid)
    }

    async fn problems_of(&self, files: &[WorkspacePath], notes: &mut Notes, call: &CallContext) -> Checked {
        let severities = &self.options.severities;
        let report = workspace_check::run(self.servers(), files, severities, call, &mut |_| {}).await;
        checked(report, notes)
    }

    /// The problems that are new since a revision.
    async fn new_problems(
        &self,
        revision: &str,
        files: Option<&[WorkspacePath]>,
        notes: &mut Notes,
        call: &CallContext,
    ) -> Result<Checked, ExploreError> {
        let (reported, severities) = (self.reported()?, &self.options.severities);
        let mut report = new_findings::since(self.servers(), reported, revision, severities, call).await?;
        if let Some(files) = files {
            let gate = self.servers().gate();
            let wanted: BTreeSet<String> = files.iter().map(|path| gate.display(path)).collect();
            report.files.retain(|file| wanted.contains(&file.file));
        }
        Ok(checked(report, notes))
    }

    /// Adds the fixes that servers offer, file by file.
    async fn add_fixes(&self, checked: &mut Checked, notes: &mut Notes, call: &CallContext) {
        let files: BTreeSet<String> = checked.problems.iter().map(|one| one.path.clone()).collect();
        if files.len() > MAX_FIXED_FILES {
            let left = count(files.len() - MAX_FIXED_FILES, "file");
            notes.add(format!("fixes of {left} are not listed; name a path"));
        }
        for file in files.into_iter().take(MAX_FIXED_FILES) {
            let Ok(path) = self.admit(&file) else { continue };
            let Ok(answer) = ListedFix::of(self.servers(), &path, None, call).await else { continue };
            notes.add_gaps(&answer);
            for fix in answer.value {
                let is_its = |one: &&mut Problem| {
                    one.path == file && one.line.line == fix.line && one.line.message == fix.message
                };
                if let Some(problem) = checked.problems.iter_mut().find(is_its) {
                    problem.fixes.push(format!("  fix {}: {}", fix.id, one_line(&fix.title, MAX_MESSAGE)));
                }
            }
        }
    }

    /// The problems of the whole workspace.
    async fn all_problems(&self, notes: &mut Notes, call: &CallContext) -> Result<Checked, ExploreError> {
        let found = match self.code.workspace_findings(call).await {
            Ok(found) => found,
            Err(CodeError::Indexing { progress: Some(progress), .. }) => {
                let IndexingProgress { done, total, .. } = progress;
                notes.add(format!("still checking, {done} of {total} files; ask again, or name a path"));
                return Ok(Checked { problems: Vec::new(), files: 0, compared: None });
            }
            Err(error) => return Err(ExploreError::Arguments(error.to_string())),
        };
        let gate = self.servers().gate();
        let severities = &self.options.severities;
        let mut problems = Vec::new();
        for (path, diagnostics) in &found.value.files {
            let wanted = diagnostics.iter().filter(|one| severities.contains(&one.severity()));
            problems.extend(wanted.map(|one| problem(gate.display(path), one)));
        }
        for file in &found.value.unchecked {
            notes.add(format!("not checked: {} ({})", file.file, file.why));
        }
        for server in &found.unavailable {
            notes.add(format!("{server} is not available; its files were not checked by it"));
        }
        for note in self.servers().configuration_notes().await {
            notes.add(note);
        }
        Ok(Checked { problems, files: found.value.checked, compared: None })
    }
}

/// What a check of files found, for callers that act on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProblemGate {
    /// One line per problem.
    pub findings: Vec<String>,
    /// Why some files may have problems that are not listed.
    pub gaps: Vec<String>,
    /// How many files were checked.
    pub files: usize,
}

impl Explorer {
    /// The problems of the files that a path or glob names; of all files if it is empty.
    ///
    /// # Errors
    /// When the scope names nothing.
    pub async fn problem_gate(&self, scope: &str, call: &CallContext) -> Result<ProblemGate, ExploreError> {
        let notes = self.refreshed(call).await;
        let files = match scope {
            "" | "all" | "*" | "**" | "." => self.files_below("")?,
            scope => match self.problem_scope(scope, &notes, None)? {
                Scope::Files(files) => files,
                Scope::Symbol(file, _) => vec![file],
                Scope::Listed(text) => return Err(ExploreError::Arguments(text)),
            },
        };
        let severities = &self.options.severities;
        let report = workspace_check::run(self.servers(), &files, severities, call, &mut |_| {}).await;
        let mut gaps = Vec::new();
        for file in &report.files {
            gaps.extend(file.missing.iter().map(|missing| format!("not checked: {}: {missing}", file.file)));
        }
        for (server, absent) in &report.absent {
            gaps.push(format!("{server} is not available ({})", absent.why));
        }
        if report.checked == 0 {
            gaps.push(format!("no language server checks a file of `{scope}`"));
        }
        let findings = report.findings();
        let findings = findings.map(|(file, one)| problem(file.file.clone(), one).text(None)).collect();
        Ok(ProblemGate { findings, gaps, files: report.checked })
    }
}

/// What a scope names.
enum Scope {
    Files(Vec<WorkspacePath>),
    /// A declaration in a file.
    Symbol(WorkspacePath, SourceRange),
    /// An answer: the candidates for an ambiguous name.
    Listed(String),
}

impl Explorer {
    fn problem_list(&self, checked: Checked, cursor: Option<&str>) -> Result<Answer, ExploreError> {
        let Checked { mut problems, files, compared } = checked;
        let heading = heading(&problems, files, compared);
        if let Some(cursor) = cursor {
            let (path, line) = hit_list::place(cursor)?;
            problems.retain(|one| (one.path.as_str(), one.line.line) > (path, line));
        }
        let mark = if compared.is_some() { "NEW " } else { "" };
        let lines = problems.iter().flat_map(|one| {
            let within = self.enclosing_name(&one.path, one.line.line);
            let place = format!("{}:{}", one.path, one.line.line);
            let problem = Line::item(format!("{mark}{}", one.text(within)), place);
            std::iter::once(problem).chain(one.fixes.iter().map(Line::heading))
        });
        let lines = std::iter::once(Line::heading(heading)).chain(lines).collect();
        Ok(Answer::new(vec![View::new(lines)]).continued_by(Continuation::Cursor))
    }
}

impl Problem {
    /// `error src/a.py:1481:9 in QuerySet.filter: message (code)`.
    fn text(&self, within: Option<String>) -> String {
        let DiagnosticLine { line, character, severity, message, code, .. } = &self.line;
        let within = within.map(|within| format!(" in {within}")).unwrap_or_default();
        let code = code.as_ref().map(|code| format!(" ({})", one_line(code, MAX_MESSAGE)));
        let (path, message) = (one_line(&self.path, usize::MAX), one_line(message, MAX_MESSAGE));
        let code = code.unwrap_or_default();
        format!("{} {path}:{line}:{character}{within}: {message}{code}", severity.as_str())
    }
}

fn heading(problems: &[Problem], files: usize, compared: Option<Compared>) -> String {
    if let Some(Compared { gone, unchanged, .. }) = compared {
        return format!("{} new, {gone} gone, {unchanged} unchanged", problems.len());
    }
    let of = |severity: Severity| problems.iter().filter(|one| one.line.severity == severity).count();
    let counts = [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint].into_iter();
    let counts: Vec<String> = counts
        .map(|severity| (of(severity), severity))
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| match count {
            1 => format!("1 {}", severity.as_str()),
            many => format!("{many} {}", tenon_lsp::diagnostic_line::plural(severity)),
        })
        .collect();
    match (counts.is_empty(), files) {
        (true, 0) => "no results".to_owned(),
        (true, files) => format!("no problems in {}", count(files, "file")),
        (false, files) => format!("{} in {}", counts.join(", "), count(files, "file")),
    }
}

fn problem(path: String, found: &Diagnostic) -> Problem {
    Problem { path, line: DiagnosticLine::from(found), fixes: Vec::new() }
}

/// The problems of a report; what is missing in it becomes notes.
fn checked(report: CheckReport, notes: &mut Notes) -> Checked {
    let problems = report.findings().map(|(file, one)| problem(file.file.clone(), one)).collect();
    for file in &report.files {
        for missing in &file.missing {
            notes.add(format!("not checked: {}: {missing}", file.file));
        }
    }
    for note in &report.notes {
        notes.add(note);
    }
    for (server, absent) in &report.absent {
        notes.add(format!(
            "{server} is not available ({}); {} not checked by it",
            absent.why,
            count(absent.files, "file")
        ));
    }
    if let Some(Compared { unchecked, .. }) = report.compared
        && unchecked > 0
    {
        notes.add(format!("not checked: {} that may depend on the change", count(unchecked, "file")));
    }
    Checked { problems, files: report.checked, compared: report.compared }
}
