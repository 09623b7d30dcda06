//! Code by name: every question takes one call and is answered with text.
//!
//! Two sources: the syntax index knows all declarations, without any language server; the servers know references and
//! diagnostics. What only a server can know is never guessed without saying so. An answer holds to a number of bytes
//! ([`answer`]) and says nothing about completeness if all is well ([`notes`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tenon_contract::clock::Clock;
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tenon_index::{
    IndexOptions, MatchTier, PathFilter, PathFilterError, QueryError, SearchError, SymbolFilter, SymbolQuery,
    SyntaxIndex, View as IndexView,
};
use tenon_lsp::CallContext;
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::{AskError, Orchestrator};
use tokio::task::spawn_blocking;

use crate::code_tools::CodeTools;
use crate::followed_index::FollowedIndex;
use crate::report_log::ReportedFiles;
use crate::symbol_choice::{ChosenSymbol, SymbolChoice};

mod answer;
mod find;
mod hierarchy;
mod hit_list;
mod index_reader;
mod most_used;
mod notes;
mod outline;
mod problems;
mod reference_role;
mod references;
mod search;
mod source;

pub use answer::{DEFAULT_BYTES, MAX_BYTES, MIN_BYTES};
pub use find::{Body, Find};
pub use hierarchy::{Direction, Hierarchy};
pub use index_reader::{FoundSymbol, IndexReader, highlighted};
pub use outline::Outline;
pub use problems::{ProblemGate, Problems, SinceReport};
pub use references::{OnlyRole, References};
pub use search::Search;
pub use tenon_index::SearchMode;

use answer::{Answer, Line, View};
pub(crate) use notes::Notes;
use outline::Place;

/// How long a question waits for language servers. After that, the answer is what is known, and says so.
const SERVER_WAIT: Duration = Duration::from_secs(20);

/// A name that more declarations have does not say which one is meant.
const MAX_SAME_NAME: usize = 5;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExploreRequest {
    Find(Find),
    Outline(Outline),
    References(References),
    Hierarchy(Hierarchy),
    Search(Search),
    Problems(Problems),
}

/// Why there is no answer. One line, with a next step.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    #[error("{0}")]
    Query(#[from] QueryError),
    #[error("{0}")]
    Search(#[from] SearchError),
    #[error("no symbol `{name}`{}", near(.nearest))]
    NoSymbol { name: String, nearest: Vec<String> },
    #[error("no symbol `{name}` of this kind or path; there is {other}")]
    FilteredOut { name: String, other: String },
    #[error("no file or folder `{path}` in the workspace; `outline` without a path shows what there is")]
    NoPath { path: String },
    #[error("cannot read `{path}`: {why}")]
    Unreadable { path: String, why: String },
    #[error("{0}")]
    Arguments(String),
    #[error("`{cursor}` is not a cursor; it must be a place such as `src/a.py:12`")]
    Cursor { cursor: String },
    #[error("git: {0}")]
    Git(#[from] crate::git::GitError),
    #[error("{0}")]
    Edit(#[from] crate::edit::EditError),
    /// What is not found may be in a file that was not read.
    #[error("{error}; note: {}", notes::FILES_UNREAD)]
    Unread { error: Box<ExploreError> },
    #[error("{}", notes::FILES_UNREAD)]
    FilesUnread,
    #[error("the question failed; ask again")]
    Internal,
}

fn near(names: &[String]) -> String {
    match names.is_empty() {
        true => "; `search` finds text".to_owned(),
        false => format!("; nearest: {}", names.join(", ")),
    }
}

impl ExploreError {
    fn unreadable(path: &str, error: &AskError) -> Self {
        Self::Unreadable { path: path.to_owned(), why: error.to_string() }
    }

    /// The same error of an index that does not know all files.
    fn with_unread_files(self) -> Self {
        match self {
            Self::NoSymbol { .. }
            | Self::FilteredOut { .. }
            | Self::NoPath { .. }
            | Self::Unreadable { .. }
            | Self::Arguments(_) => Self::Unread { error: Box::new(self) },
            other => other,
        }
    }
}

/// What an explorer needs besides the tools.
pub struct ExploreOptions {
    pub root: Utf8PathBuf,
    /// The file that keeps the syntax index between processes.
    pub store: Utf8PathBuf,
    pub clock: Clock,
    /// The severities of problems.
    pub severities: BTreeSet<Severity>,
    /// The files whose problems are reported; `None` if the settings do not allow to select files.
    pub reported: Option<ReportedFiles>,
    pub since_report: SinceReport,
}

/// What a `symbol` argument means.
pub(crate) enum NamedSymbol {
    One(ChosenSymbol),
    /// An answer: equally good candidates.
    Listed(String),
}

/// Answers questions about one workspace.
pub struct Explorer {
    code: CodeTools,
    options: ExploreOptions,
    index: FollowedIndex<SyntaxIndex>,
    /// Whether a question has tried to be answered before all files are parsed. Only the first does, since it delays the reading.
    was_early: AtomicBool,
}

impl Explorer {
    pub fn new(code: CodeTools, options: ExploreOptions) -> Self {
        let ExploreOptions { root, store, clock, .. } = &options;
        let index = IndexOptions { root: root.clone(), store: Some(store.clone()), clock: clock.clone() };
        Self {
            code,
            index: FollowedIndex::new(Arc::new(SyntaxIndex::open(index))),
            options,
            was_early: AtomicBool::new(false),
        }
    }

    /// Answers a question with text.
    pub async fn answer(
        self: &Arc<Self>,
        request: ExploreRequest,
        call: &CallContext,
    ) -> Result<String, ExploreError> {
        if let ExploreRequest::Find(input) = &request
            && let Some(view) = self.early_view(input, call).await
        {
            return self.find(input.clone(), &view, Notes::default()).await;
        }
        let notes = self.refreshed(call).await;
        let unread = notes.files_unread();
        let answer = match request {
            ExploreRequest::Find(input) => self.find(input, &self.index().view(), notes).await,
            ExploreRequest::Outline(input) => self.outline(input, notes),
            ExploreRequest::References(input) => self.references(input, notes, call).await,
            ExploreRequest::Hierarchy(input) => self.hierarchy(input, notes, call).await,
            ExploreRequest::Search(input) => self.search(input, notes, call).await,
            ExploreRequest::Problems(input) => self.problems(input, notes, call).await,
        };
        answer.map_err(|error| if unread { error.with_unread_files() } else { error })
    }

    /// Brings the index up to date before the first question.
    pub async fn read_files(&self, call: &CallContext) {
        self.refresh(call).await;
    }

    pub(crate) fn servers(&self) -> &Orchestrator {
        &self.code.state.engine
    }

    /// Brings the index up to date. `false` if it does not know all files.
    pub(crate) async fn refresh(&self, call: &CallContext) -> bool {
        self.index.refresh(self.servers(), call).await
    }

    /// What answers the first `find` as the whole index would, while all files have yet to be parsed: the files that contain the
    /// name. `None` if they have no exact match. Then all files are read.
    async fn early_view(self: &Arc<Self>, input: &Find, call: &CallContext) -> Option<IndexView> {
        // A path may be the end of one that only the index knows.
        if input.path.is_some() {
            return None;
        }
        let filter = self.filter(input.kind.as_deref(), None).ok()?;
        let query = SymbolQuery::parse(&input.name).ok()?;
        let index = Arc::clone(self.index());
        let servers = self.servers().clone();
        if !index.is_unread() || self.was_early.swap(true, Ordering::Relaxed) {
            return None;
        }
        if !servers.catch_up(&call.at_most(SERVER_WAIT)).await {
            return None;
        }
        let read = spawn_blocking(move || {
            index.load();
            let files = index.is_unread().then(|| servers.files())?;
            let view = index.view_of_name(&files, &query)?;
            let matches = view.find(&query, &filter);
            let is_exact = matches.tier == MatchTier::Exact && !matches.symbols.is_empty();
            is_exact.then_some(view)
        });
        let view = read.await.ok().flatten()?;
        let (explorer, call) = (Arc::clone(self), CallContext::new(call.deadline, call.cancel.clone()));
        tokio::spawn(async move { explorer.refresh(&call).await });
        Some(view)
    }

    /// The syntax index with all changes up to now, and whether it knows all files.
    pub async fn current_index(&self, call: &CallContext) -> (Arc<SyntaxIndex>, bool) {
        let is_current = self.refresh(&call.at_most(SERVER_WAIT)).await;
        (Arc::clone(self.index()), is_current)
    }

    /// Those of the names that few declarations have, exactly as written.
    pub async fn declared_names(&self, names: Vec<String>, call: &CallContext) -> Vec<String> {
        let (index, _) = self.current_index(call).await;
        let view = index.view();
        let is_declared = |name: &String| {
            let Ok(query) = SymbolQuery::parse(name) else { return false };
            let matches = view.find(&query, &SymbolFilter::default());
            !matches.symbols.is_empty()
                && matches.tier == MatchTier::Exact
                && matches.groups().len() <= MAX_SAME_NAME
        };
        names.into_iter().filter(is_declared).collect()
    }

    /// The syntax index as it is now. It may not know all files.
    pub fn index(&self) -> &Arc<SyntaxIndex> {
        self.index.index()
    }

    /// Keeps the index for the next start.
    pub async fn close(&self) {
        self.index.close().await;
    }

    /// Brings the index up to date, and begins the notes of an answer.
    async fn refreshed(&self, call: &CallContext) -> Notes {
        let mut notes = Notes::default();
        if !self.refresh(&call.at_most(SERVER_WAIT)).await {
            notes.add(notes::FILES_UNREAD);
        }
        notes
    }

    /// The symbol that an argument means, or the answer that lists equally good ones.
    pub(crate) fn named_symbol(
        &self,
        text: &str,
        notes: &Notes,
        max_bytes: Option<usize>,
    ) -> Result<NamedSymbol, ExploreError> {
        match SymbolChoice::of(&self.index().view(), text, &SymbolFilter::default())? {
            SymbolChoice::One { symbol, .. } => Ok(NamedSymbol::One(symbol)),
            SymbolChoice::None { nearest } => Err(ExploreError::NoSymbol { name: text.to_owned(), nearest }),
            SymbolChoice::Several { candidates, total } => {
                let heading = format!("`{text}` means {total} symbols; name one, for example `PATH#NAME`:");
                let lines = candidates.iter().map(|one| Line::item(one.main().line(), one.main().place()));
                let lines = std::iter::once(Line::heading(heading)).chain(lines).collect();
                let answer = Answer::new(vec![View::new(lines)]).with_notes(notes.clone().into_lines());
                Ok(NamedSymbol::Listed(answer.fit(allowed(max_bytes))))
            }
        }
    }

    /// A path argument relative to the root; empty for the root itself.
    fn relative(&self, given: &str) -> String {
        let root = self.servers().gate().primary();
        let inside = root.and_then(|root| Utf8Path::new(given).strip_prefix(root).ok());
        let parts = inside.map_or(given, Utf8Path::as_str).split('/');
        let parts: Vec<&str> = parts.filter(|part| !matches!(*part, "" | ".")).collect();
        parts.join("/")
    }

    /// The files that a `path` argument means: a folder, a file or a glob; else the only one whose path ends with it.
    fn path_filter(&self, given: &str) -> Result<PathFilter, ExploreError> {
        let invalid = |error: PathFilterError| ExploreError::Arguments(format!("path: {error}"));
        if given.contains(['*', '?', '[', '{']) {
            return PathFilter::parse(given).map_err(invalid);
        }
        let found = match self.locate(given)? {
            Place::File(path) | Place::Folder(path) => path,
        };
        PathFilter::parse(&found).map_err(invalid)
    }

    /// The call for questions to language servers.
    fn server_call(call: &CallContext) -> CallContext {
        call.at_most(SERVER_WAIT)
    }

    /// The workspace file with a path relative to the root.
    pub(crate) fn admit(&self, relative: &str) -> Result<WorkspacePath, ExploreError> {
        let gate = self.servers().gate();
        let missing = || ExploreError::NoPath { path: relative.to_owned() };
        gate.admit_path(relative).map_err(|_| missing())
    }

    /// The text of a file.
    pub(crate) async fn read(&self, relative: &str) -> Result<(WorkspacePath, LineIndex), ExploreError> {
        let path = self.admit(relative)?;
        let lines = self.servers().read(&path).await;
        let lines = lines.map_err(|error| ExploreError::Unreadable {
            path: relative.to_owned(),
            why: error.to_string(),
        })?;
        Ok((path, lines))
    }
}

/// Lines of code by file, or a coarser view of them, with notes.
pub(crate) fn places_text(
    heading: String,
    places: Vec<(String, u32, String)>,
    notes: Vec<String>,
    max_bytes: Option<usize>,
) -> String {
    let hits = places.into_iter().map(|(path, line, code)| hit_list::Hit { path, line, within: None, code });
    let list = hit_list::HitList { heading, hits: hits.collect(), narrow: "max_bytes" };
    match list.answer(None) {
        Ok(answer) => answer
            .continued_by(answer::Continuation::Narrow("max_bytes"))
            .with_notes(notes)
            .fit(allowed(max_bytes)),
        Err(error) => error.to_string(),
    }
}

/// A text, cut at the end of a line if it is too long.
pub(crate) fn fitted(text: &str, notes: Vec<String>, max_bytes: Option<usize>) -> String {
    Answer::new(vec![View::of_text(text)]).with_notes(notes).fit(allowed(max_bytes))
}

/// What is missing in an answer of language servers, one line for each reason.
pub(crate) fn gap_notes<T>(answer: &tenon_lsp::model::LspAnswer<T>) -> Vec<String> {
    let mut notes = Notes::default();
    notes.add_gaps(answer);
    notes.into_lines()
}

/// The bytes that a caller allows.
pub(crate) fn allowed(max_bytes: Option<usize>) -> usize {
    max_bytes.unwrap_or(DEFAULT_BYTES).clamp(MIN_BYTES, MAX_BYTES)
}
