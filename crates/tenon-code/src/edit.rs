//! Edits: change a file, show the new text to the language servers, wait, and return what that did to the diagnostics.
//!
//! [`Editor`] runs all four steps and returns one finished [`EditOutcome`]. Policy:
//! - Only regular UTF-8 files inside the root, opened beneath it without following links; never files that decide what runs
//!   on the user's machine ([`protected`]). A link inside the root to a file inside the root means that file.
//! - Reading, matching and writing are one step: edits of one file run one after the other ([`file_locks`]), and a file that
//!   another program changes between reading and writing is read again.
//! - A file is either unchanged or fully changed, with its mode, byte order mark and line endings. Of several files, all or
//!   none are changed ([`multi_edit`]).
//! - Language servers never make an edit fail, and diagnostics always belong to exactly the texts before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::{BoxFuture, select_all};
use serde::Deserialize;
use tenon_contract::root::{ReadError, RootError, WorkspacePath};
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{
    ChangeCheck, ChangedText, Checkers, FileCheck, Orchestrator, ServerCheck, TriedChange, TryError,
};
use tokio::task::spawn_blocking;

mod directory;
mod edit_diagnostics;
mod edit_journal;
mod enclosing_symbols;
mod error;
mod file_locks;
mod file_writer;
mod last_texts;
mod multi_edit;
mod protected;
mod report_state;
mod text;
mod told_findings;

pub use edit_diagnostics::{EditDiagnostics, EditKind, EditedFile, FileState, FoundDiagnostic};
pub use error::EditError;
pub use multi_edit::{FileEdit, MultiEditError};
pub use text::Lines;

use edit_diagnostics::Comparison;
use edit_journal::{EditJournal, OpenRecord};
use file_locks::{FileLocks, ShowGuard};
use file_writer::{FileWriter, RequestedText, Texts};
use report_state::ReportState;
use text::Text;
use told_findings::ToldFindings;

/// Replaces a text that occurs once in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    pub file: String,
    pub old_text: String,
    pub new_text: String,
    pub expected_sha256: Option<String>,
}

/// Creates a file, or overwrites the one with the expected hash.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    pub file: String,
    pub text: String,
    pub expected_sha256: Option<String>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub file: String,
    /// SHA-256 of the bytes before, in hex; `None` for a new file.
    pub before: Option<String>,
    pub after: String,
    /// The lines of the old text that were replaced; `None` for a new file.
    pub replaced: Option<Lines>,
    /// The lines of the new text that replaced them.
    pub lines: Lines,
}

impl Change {
    pub fn created(&self) -> bool {
        self.before.is_none()
    }

    fn kind(&self) -> EditKind {
        match &self.before {
            None => EditKind::Created(self.lines),
            Some(before) if *before == self.after => EditKind::Unchanged,
            Some(_) => EditKind::Edited(Some(self.lines)),
        }
    }
}

/// A finished edit: the change, and what it did to the diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditOutcome {
    pub change: Change,
    pub diagnostics: EditDiagnostics,
}

/// Opens the language servers of the workspace, which start with the first use; `None` if they cannot be used.
pub type OpenServers = Box<dyn Fn() -> BoxFuture<'static, Option<Orchestrator>> + Send + Sync>;

/// Finds the texts that files had before another program changed them; `None` where that is not known.
pub type BaselineTexts =
    Box<dyn Fn(Vec<WorkspacePath>) -> BoxFuture<'static, Vec<Option<String>>> + Send + Sync>;

/// A file that another program changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedChange {
    pub path: WorkspacePath,
    /// The text at the last report, as far as it is known: empty if the file did not exist.
    pub before: Option<String>,
    /// Whether the program that changed it says that it is new. Counts if no text before is known.
    pub is_new: bool,
}

/// What to do with files that were reported on with the same text while a server was late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// Report what was missing.
    Retry,
    Skip,
}

/// What an [`Editor`] works with.
pub struct EditorOptions {
    /// Tenon's own files and folders, which no edit may change.
    pub own_paths: Vec<Utf8PathBuf>,
    /// Where changes of several files are recorded while they are written.
    pub journal: Utf8PathBuf,
    pub servers: OpenServers,
    /// For files that Tenon has not seen before the change.
    pub baselines: BaselineTexts,
    /// The severities that are reported.
    pub severities: BTreeSet<Severity>,
}

/// Edits files below one root.
pub struct Editor {
    writer: Arc<FileWriter>,
    journal: Arc<EditJournal>,
    locks: FileLocks,
    servers: OpenServers,
    baselines: BaselineTexts,
    severities: BTreeSet<Severity>,
    reports: Mutex<ReportState>,
}

/// A changed file, with the right to show its text to the servers before any newer one.
struct Written {
    change: Change,
    path: WorkspacePath,
    texts: Texts,
    guard: ShowGuard,
}

impl Editor {
    /// Edits files below `root`, which must be a real path. Undoes changes that ended processes left unfinished.
    pub fn new(root: &Utf8Path, options: EditorOptions) -> Result<Self, RootError> {
        let EditorOptions { own_paths, journal, servers, baselines, severities } = options;
        let writer = Arc::new(FileWriter::new(root, own_paths)?);
        let journal = Arc::new(EditJournal::new(&journal, root));
        for record in journal.unfinished() {
            recover(&writer, record);
        }
        let (locks, reports) = (FileLocks::default(), Mutex::default());
        Ok(Self { writer, journal, locks, servers, baselines, severities, reports })
    }

    /// Replaces a text. Diagnostics in other files may take up to `wait`; `call` bounds the wait for diagnostics only.
    pub async fn edit(
        &self,
        edit: EditFile,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let EditFile { file, old_text, new_text, expected_sha256 } = edit;
        let requested = RequestedText::Replace { old: old_text, new: new_text };
        self.run(file, requested, expected_sha256, wait, call).await
    }

    /// Creates or overwrites a file. Waits as [`Editor::edit`] does.
    pub async fn write(
        &self,
        write: WriteFile,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let WriteFile { file, text, expected_sha256 } = write;
        self.run(file, RequestedText::Whole(text), expected_sha256, wait, call).await
    }

    /// Changes all files or none, and reports on all of them together. Waits as [`Editor::edit`] does.
    pub async fn edit_all(
        &self,
        edits: Vec<FileEdit>,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditDiagnostics, MultiEditError> {
        let edits: BTreeMap<WorkspacePath, FileEdit> =
            edits.into_iter().map(|edit| (edit.path.clone(), edit)).collect();
        self.recover_all().await;
        // In the order of the paths, so that two changes never wait for each other.
        let mut writing = Vec::with_capacity(edits.len());
        for path in edits.keys() {
            let lock = self.locks.of(path);
            let guard = lock.lock_for_write().await;
            writing.push((lock, guard));
        }
        let (writer, journal) = (Arc::clone(&self.writer), Arc::clone(&self.journal));
        let written = spawn_blocking(move || {
            let edits: Vec<FileEdit> = edits.into_values().collect();
            let done = writer.change_all(&journal, &edits);
            (writing, edits, done)
        });
        let failed = |error| MultiEditError::Journal(std::io::Error::other(error));
        let (writing, edits, done) = written.await.map_err(failed)?;
        done?;
        let mut guards = Vec::with_capacity(edits.len());
        for (lock, writing) in writing {
            guards.push(lock.lock_for_show(writing).await);
        }
        let changed = edits.into_iter().map(|FileEdit { path, before, after }| {
            let reported = self.reports().interrupted_baseline(&path, &before);
            let before = reported.map_or(before, |text| text.to_string());
            ChangedText { path, before: Some(before), after: Some(after) }
        });
        let changed = changed.collect();
        Ok(self.collect_until_superseded(changed, &guards, wait, call).await)
    }

    /// What a change would do to the diagnostics. Nothing is written, and nothing of it is kept.
    pub(crate) async fn try_all(
        &self,
        edits: Vec<FileEdit>,
        wait: Duration,
        call: &CallContext,
    ) -> Result<(EditDiagnostics, TriedChange), TryError> {
        let changed: Vec<ChangedText> = edits
            .into_iter()
            .map(|FileEdit { path, before, after }| ChangedText {
                path,
                before: Some(before),
                after: Some(after),
            })
            .collect();
        let (tried, unavailable) = match (self.servers)().await {
            Some(servers) => {
                let tried = servers.try_change(&changed, wait, call).await?;
                let unavailable = unavailable(&servers, &tried.check).await;
                (tried, unavailable)
            }
            None => (TriedChange { check: unserved(&changed), ..TriedChange::default() }, Vec::new()),
        };
        let comparison = Comparison {
            check: &tried.check,
            changed: &changed,
            other_texts: &BTreeMap::new(),
            told: &ToldFindings::default(),
            severities: &self.severities,
            gate: self.writer.gate(),
        };
        let (mut found, _) = EditDiagnostics::new(&comparison);
        found.mark_unavailable(&unavailable);
        for file in &mut found.edited {
            if let EditKind::Edited(lines) = file.kind {
                file.kind = EditKind::Tried(lines);
            }
        }
        Ok((found, tried))
    }

    /// A text with `old`, which must occur once, replaced by `new`.
    pub(crate) fn replaced(text: &str, old: &str, new: &str) -> Result<String, EditError> {
        Ok(Text::new(text.to_owned()).replace(old, new)?.text.into_body())
    }

    /// Undoes changes that other processes left unfinished when they ended.
    async fn recover_all(&self) {
        let journal = Arc::clone(&self.journal);
        let records = spawn_blocking(move || journal.unfinished()).await.unwrap_or_default();
        for record in records {
            let paths: BTreeSet<WorkspacePath> =
                record.files.iter().filter_map(|one| self.writer.admit(&one.file).ok()).collect();
            let mut guards = Vec::with_capacity(paths.len());
            for path in &paths {
                guards.push(self.locks.of(path).lock_for_write().await);
            }
            let writer = Arc::clone(&self.writer);
            let undone = spawn_blocking(move || {
                recover(&writer, record);
                drop(guards);
            });
            if let Err(error) = undone.await {
                tracing::warn!(%error, "cannot undo an unfinished change");
            }
        }
    }

    /// What changes by another program did to the diagnostics. The texts before are those of the last report, else those that
    /// servers saw last, else the given baselines. Waits as [`Editor::edit`] does.
    pub async fn diagnostics_after(
        &self,
        files: Vec<ReportedChange>,
        unfinished: Unfinished,
        wait: Duration,
        call: &CallContext,
    ) -> EditDiagnostics {
        let Some(servers) = (self.servers)().await else {
            return EditDiagnostics::default();
        };
        let (mut changed, mut unreadable, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        let mut created = BTreeSet::new();
        for ReportedChange { path, before, is_new } in files {
            let after = match servers.read(&path).await {
                Ok(lines) => Some(lines.text().to_string()),
                Err(ReadError::Gone) => None,
                Err(_) => {
                    if servers.checkers(&path).await != Checkers::None {
                        unreadable.push(servers.gate().display(&path));
                    }
                    continue;
                }
            };
            if unfinished == Unfinished::Skip && self.reports().is_waiting(&path, after.as_deref()) {
                skipped.push(path);
                continue;
            }
            let before = self.seen_before(&servers, &path, before, after.as_deref());
            created.extend(is_new.then(|| path.clone()));
            changed.push(ChangedText { path, before, after });
        }
        self.fill_baselines(&mut changed).await;
        for file in changed.iter_mut().filter(|file| file.before.is_none() && created.contains(&file.path)) {
            file.before = Some(String::new());
        }
        // A file that was not there and is not there did not change.
        changed.retain(|file| {
            file.after.is_some() || file.before.as_ref().is_some_and(|before| !before.is_empty())
        });
        let is_created =
            |file: &ChangedText| file.before.as_deref() == Some("") && created.contains(&file.path);
        let is_created: Vec<bool> = changed.iter().map(is_created).collect();
        let mut found = self.collect(changed, wait, call).await;
        for (file, _) in found.edited.iter_mut().zip(is_created).filter(|(_, is_created)| *is_created) {
            if let EditKind::Edited(Some(lines)) = file.kind {
                file.kind = EditKind::Created(lines);
            }
        }
        found.add_unreadable(unreadable);
        found.unfinished.extend(skipped);
        found
    }

    /// The text of the last report, else the last one that a server reported on, unless that is the new text already.
    fn seen_before(
        &self,
        servers: &Orchestrator,
        path: &WorkspacePath,
        before: Option<String>,
        after: Option<&str>,
    ) -> Option<String> {
        let reported = self.reports().baseline(path);
        let before = before.map(|before| without_mark(before).into());
        let seen = || servers.last_checked_text(path).filter(|text| Some(&**text) != after);
        reported.or(before).or_else(seen).map(|text| text.to_string())
    }

    /// Asks for the texts before that are not known yet.
    async fn fill_baselines(&self, changed: &mut [ChangedText]) {
        let mut unknown: Vec<&mut ChangedText> =
            changed.iter_mut().filter(|file| file.before.is_none()).collect();
        if unknown.is_empty() {
            return;
        }
        let texts = (self.baselines)(unknown.iter().map(|file| file.path.clone()).collect()).await;
        for (file, text) in unknown.iter_mut().zip(texts) {
            file.before = text.map(without_mark);
        }
    }

    fn reports(&self) -> std::sync::MutexGuard<'_, ReportState> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(
        &self,
        file: String,
        requested: RequestedText,
        expected: Option<String>,
        wait: Duration,
        call: &CallContext,
    ) -> Result<EditOutcome, EditError> {
        let Written { change, path, texts: Texts { before, after }, guard } =
            self.change(file, requested, expected).await?;
        // A new file had no text, and so no diagnostics.
        let before = before.unwrap_or_default();
        let reported = self.reports().interrupted_baseline(&path, &before);
        let before = reported.map_or(before, |text| text.to_string());
        let changed = ChangedText { path, before: Some(before), after: Some(after) };
        let mut diagnostics =
            self.collect_until_superseded(vec![changed], std::slice::from_ref(&guard), wait, call).await;
        for file in &mut diagnostics.edited {
            file.kind = change.kind();
        }
        Ok(EditOutcome { change, diagnostics })
    }

    /// Writes the file and takes the right to show it.
    async fn change(
        &self,
        file: String,
        requested: RequestedText,
        expected: Option<String>,
    ) -> Result<Written, EditError> {
        self.recover_all().await;
        let writer = Arc::clone(&self.writer);
        let path = blocking(move || writer.admit(&file)).await?;
        let lock = self.locks.of(&path);
        let writing = lock.lock_for_write().await;
        let (writer, target) = (Arc::clone(&self.writer), path.clone());
        // The guard moves along: if the caller leaves, the next edit still waits until this file is written.
        let (writing, (texts, change)) = blocking(move || {
            let done = writer.change(&target, &requested, expected.as_deref())?;
            Ok((writing, done))
        })
        .await?;
        let guard = lock.lock_for_show(writing).await;
        Ok(Written { change, path, texts, guard })
    }

    /// Collects diagnostics until a newer edit of a file ends the wait; what is known by then is still an answer.
    async fn collect_until_superseded(
        &self,
        changed: Vec<ChangedText>,
        guards: &[ShowGuard],
        wait: Duration,
        call: &CallContext,
    ) -> EditDiagnostics {
        let either = call.cancel.child_token();
        let call = CallContext::new(call.deadline, either.clone()).for_client_of(call);
        let superseded = async {
            if !guards.is_empty() {
                select_all(guards.iter().map(|guard| Box::pin(guard.superseded.cancelled()))).await;
                either.cancel();
            }
            std::future::pending().await
        };
        let mut diagnostics = tokio::select! {
            biased;
            diagnostics = self.collect(changed, wait, &call) => diagnostics,
            diagnostics = superseded => diagnostics,
        };
        diagnostics.superseded = guards.iter().any(|guard| guard.superseded.is_cancelled());
        diagnostics.complete &= !diagnostics.superseded;
        diagnostics
    }

    /// Shows changes to the servers and compares what they report on the texts before and after.
    async fn collect(
        &self,
        changed: Vec<ChangedText>,
        wait: Duration,
        call: &CallContext,
    ) -> EditDiagnostics {
        let Some(servers) = (self.servers)().await else {
            let check = unserved(&changed);
            let comparison = Comparison {
                check: &check,
                changed: &changed,
                other_texts: &BTreeMap::new(),
                told: &ToldFindings::default(),
                severities: &self.severities,
                gate: self.writer.gate(),
            };
            return EditDiagnostics::new(&comparison).0;
        };
        let check = servers.check_change(&changed, wait, call).await;
        let unfinished = unfinished(&check, call);
        let unavailable = unavailable(&servers, &check).await;
        let told = self.reports().told();
        let other_texts = match unfinished.is_empty() && told.is_empty() {
            true => BTreeMap::new(),
            false => other_texts(&servers, &check).await,
        };
        let (severities, gate) = (self.severities.clone(), servers.gate().clone());
        let compare = move || {
            let comparison = Comparison {
                check: &check,
                changed: &changed,
                other_texts: &other_texts,
                told: &told,
                severities: &severities,
                gate: &gate,
            };
            let (found, told) = EditDiagnostics::new(&comparison);
            (found, told, changed)
        };
        let Ok((mut found, told, changed)) = spawn_blocking(compare).await else {
            return EditDiagnostics::default();
        };
        self.reports().note(&changed, &unfinished, call.cancel.is_cancelled(), told);
        found.unfinished = unfinished;
        found.mark_unavailable(&unavailable);
        enclosing_symbols::name_symbols(&servers, &mut found.new, call).await;
        found
    }
}

/// The check of files without any server.
fn unserved(changed: &[ChangedText]) -> ChangeCheck {
    let changed = changed.iter().map(|file| FileCheck::new(file.path.clone())).collect();
    ChangeCheck { changed, ..ChangeCheck::default() }
}

/// The files that no server checked because none can run.
async fn unavailable(servers: &Orchestrator, check: &ChangeCheck) -> Vec<String> {
    let mut files = Vec::new();
    for file in check.changed.iter().filter(|file| file.servers.is_empty()) {
        if servers.checkers(&file.path).await == Checkers::Unavailable {
            files.push(servers.gate().display(&file.path));
        }
    }
    files
}

/// Undoes a change that a process left unfinished. If that fails, the next edit tries again.
fn recover(writer: &FileWriter, record: OpenRecord) {
    let count = record.files.len();
    if !writer.recover(&record.files) {
        return tracing::warn!(count, "an unfinished change was not undone in all files");
    }
    match record.finish() {
        Ok(()) => tracing::info!(count, "an unfinished change was finished or undone"),
        Err(error) => tracing::warn!(%error, "cannot remove the record of an unfinished change"),
    }
}

/// The changed files that some server has not reported on, or whose dependents.
fn unfinished(check: &ChangeCheck, call: &CallContext) -> Vec<WorkspacePath> {
    let is_late = |one: &ServerCheck| one.after.is_none() || check.pending.contains(&one.server);
    let is_unfinished = |file: &&FileCheck| call.cancel.is_cancelled() || file.servers.iter().any(is_late);
    check.changed.iter().filter(is_unfinished).map(|file| file.path.clone()).collect()
}

/// A text without its byte order mark, as servers see it.
fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

/// The texts of other files with diagnostics.
async fn other_texts(servers: &Orchestrator, check: &ChangeCheck) -> BTreeMap<WorkspacePath, Arc<str>> {
    let has_any = |one: &ServerCheck| one.after.as_ref().is_some_and(|found| !found.is_empty());
    let mut texts = BTreeMap::new();
    for file in check.others.iter().filter(|file| file.servers.iter().any(has_any)) {
        if let Ok(lines) = servers.read(&file.path).await {
            texts.insert(file.path.clone(), Arc::clone(lines.text()));
        }
    }
    texts
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditError> + Send + 'static,
) -> Result<T, EditError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(EditError::Io(std::io::Error::other(error))))
}
