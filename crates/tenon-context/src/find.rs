//! Finds the passages of a workspace that answer a question, within a token budget.
//!
//! [`PassageIndex`] knows every text of the workspace: documents by section, code by declaration, other texts by
//! paragraph. Passages are ranked with BM25F, the best also by how close the words of the question are in them, then taken
//! by score per token until the budget is full, and shown by score.
//! Before an answer leaves, every file in it is compared with the disk: an edit is visible in the next answer even if
//! no watcher reported it.

mod answer;
mod body_parts;
mod closeness;
mod cut;
mod excerpt;
mod extra_texts;
mod passage_index;
mod passage_state;
mod passage_store;
mod rank;
mod section;
mod segment;
mod synonyms;
mod text_format;
pub(crate) mod token_count;
mod words;

use std::collections::BTreeMap;
use std::string::FromUtf8Error;
use std::sync::PoisonError;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenon_contract::regular_file;
use tenon_index::{PathFilter, PathFilterError, SyntaxIndex};

pub use answer::{FindAnswer, Passage};
pub use extra_texts::{ExtraText, ExtraTexts};
pub use passage_index::{PassageIndex, PassageTotals};
pub use text_format::PassageKind;
pub use token_count::Tokenizer;

use answer::{Candidate, FoundCandidates};
use excerpt::ShownTerms;
use passage_index::stamp;
use passage_state::{LiveSegment, PassageState};
use rank::{QueryTerms, Wanted, rank};
use segment::{FileEntry, FileOutcome};

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindRequest {
    pub query: String,
    /// The most tokens of the answer.
    #[serde(default)]
    pub budget: Option<usize>,
    /// A file, a folder or a glob.
    #[serde(default)]
    pub path: Option<String>,
    /// All kinds if empty.
    #[serde(default)]
    pub kinds: Vec<PassageKind>,
    #[serde(default)]
    pub tokenizer: Tokenizer,
}

impl FindRequest {
    pub const DEFAULT_BUDGET: usize = 2000;
    pub const MAX_BUDGET: usize = 200_000;
    pub const MAX_QUERY_BYTES: usize = 64 * 1024;

    /// # Errors
    /// If the query or the budget exceeds its limit.
    pub fn check(&self) -> Result<usize, FindError> {
        if self.query.len() > Self::MAX_QUERY_BYTES {
            return Err(FindError::QueryTooLong { bytes: self.query.len(), limit: Self::MAX_QUERY_BYTES });
        }
        let budget = self.budget.unwrap_or(Self::DEFAULT_BUDGET);
        match budget {
            0 => Err(FindError::Budget { limit: Self::MAX_BUDGET }),
            budget if budget > Self::MAX_BUDGET => Err(FindError::Budget { limit: Self::MAX_BUDGET }),
            budget => Ok(budget),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("query has {bytes} bytes; the limit is {limit}")]
    QueryTooLong { bytes: usize, limit: usize },
    #[error("budget must be from 1 to {limit} tokens")]
    Budget { limit: usize },
    #[error("path: {0}")]
    Path(#[from] PathFilterError),
}

/// The passages that may be part of an answer.
const CANDIDATES: usize = 300;

/// How often files that change during a question are read again.
const ATTEMPTS: usize = 3;

impl PassageIndex {
    /// Answers a question from the index and from texts that are not files.
    ///
    /// # Errors
    /// If the question exceeds a limit or its path is invalid.
    pub fn find(
        &self,
        request: &FindRequest,
        extra: &ExtraTexts,
        syntax: &SyntaxIndex,
    ) -> Result<FindAnswer, FindError> {
        let budget = request.check()?;
        let filter = request.path.as_deref().map(PathFilter::parse).transpose()?;
        let query = QueryTerms::new(&request.query);
        if query.terms.is_empty() {
            return Ok(FindAnswer::empty(vec![
                "the query has no words; `search` finds other text".to_owned(),
            ]));
        }
        let mut attempt = 1;
        loop {
            let (found, terms) = self.candidates(&query, request, filter.as_ref(), extra);
            let is_last = attempt == ATTEMPTS;
            let mut texts = FileTexts::new(self, extra, &terms, is_last);
            let mut answer = answer::fill(found, budget, request.tokenizer, &mut texts);
            let stale = texts.stale;
            match stale.first() {
                None => return Ok(answer),
                Some(first) if is_last => {
                    let path = first.strip_prefix(self.root()).unwrap_or(first);
                    answer.add_note(&format!("{path} changed while it was read"), budget, request.tokenizer);
                    return Ok(answer);
                }
                Some(_) => {}
            }
            attempt = if self.try_update_files(&stale, syntax) { attempt + 1 } else { ATTEMPTS };
        }
    }

    fn candidates(
        &self,
        query: &QueryTerms,
        request: &FindRequest,
        filter: Option<&PathFilter>,
        extra: &ExtraTexts,
    ) -> (FoundCandidates, ShownTerms) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut segments: Vec<&LiveSegment> = state.segments.iter().collect();
        // Tasks and notes are not below any path.
        if filter.is_none() {
            segments.extend(extra.segment());
        }
        let path = |path: &str| filter.is_none_or(|filter| filter.matches(path));
        let wanted = Wanted { kinds: &request.kinds, path: &path };
        let ranking = rank(&segments, query, &wanted, CANDIDATES);
        let candidates = ranking.best.into_iter().map(|one| {
            let segment = &segments[one.segment].data;
            let entry = segment.passages[one.passage].clone();
            let file = segment.files[entry.file as usize].clone();
            Candidate { reason: answer::reason(&query.terms, &one.matches), score: one.score, entry, file }
        });
        let notes = notes(&state, filter, ranking.matching);
        let found = FoundCandidates {
            candidates: candidates.collect(),
            closeness: ranking.closeness,
            matching: ranking.matching,
            notes,
        };
        (found, ranking.terms)
    }
}

/// What an answer has to say about completeness.
fn notes(state: &PassageState, filter: Option<&PathFilter>, matching: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let is_wanted = |path: &str| filter.is_none_or(|filter| filter.matches(path));
    if matching == 0 {
        notes.push(match state.by_path.keys().find(|path| is_wanted(path)) {
            None if filter.is_some() => "no text below this path".to_owned(),
            None => "the workspace has no text".to_owned(),
            Some(_) => "no passage has these words; try others, or `search`".to_owned(),
        });
    }
    let mut of = |outcome: FileOutcome, what: &str| {
        let mut paths: Vec<&str> = Vec::new();
        for segment in &state.segments {
            let files = segment.partly_read.iter().filter(|file| !segment.dead[**file as usize]);
            let files = files.map(|file| &segment.data.files[*file as usize]);
            paths.extend(
                files.filter(|file| file.outcome == outcome && is_wanted(&file.path)).map(|file| &*file.path),
            );
        }
        paths.sort_unstable();
        if let Some(first) = paths.first() {
            let rest = paths.len() - 1;
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            notes.push(format!("{what}: {first}{more}"));
        }
    };
    of(FileOutcome::Start, "only the first 256 KiB searched");
    of(FileOutcome::Unreadable, "cannot read");
    notes
}

/// Texts of passages, read once per file and compared with the index.
struct FileTexts<'a> {
    index: &'a PassageIndex,
    known: BTreeMap<Box<str>, Option<String>>,
    stale: Vec<Utf8PathBuf>,
    extra: &'a ExtraTexts,
    terms: &'a ShownTerms,
    /// Whether files that changed are left out. Otherwise the answer is given up and they are read again.
    leaves_out: bool,
}

impl<'a> FileTexts<'a> {
    fn new(index: &'a PassageIndex, extra: &'a ExtraTexts, terms: &'a ShownTerms, leaves_out: bool) -> Self {
        Self { index, known: BTreeMap::new(), stale: Vec::new(), extra, terms, leaves_out }
    }

    /// Whether an answer would be given up.
    fn is_given_up(&self) -> bool {
        !self.leaves_out && !self.stale.is_empty()
    }

    /// The text of a passage as it is on disk. `None` if the file changed.
    fn text(&mut self, candidate: &Candidate) -> Option<&str> {
        let Candidate { entry, file, .. } = candidate;
        if matches!(entry.kind, PassageKind::Task | PassageKind::Note) {
            return self.extra.text(&file.path);
        }
        if !self.known.contains_key(&file.path) {
            let text = self.read(file);
            if text.is_none() {
                self.stale.push(self.index.root().join(&*file.path));
            }
            self.known.insert(file.path.clone(), text);
        }
        self.known[&file.path].as_deref()?.get(entry.start as usize..entry.end as usize)
    }

    fn read(&self, file: &FileEntry) -> Option<String> {
        let path = self.index.root().join(&*file.path);
        let bytes = regular_file::read_start(&path, passage_index::read_limit(file)).ok()?;
        // What was written before or during the reading has another time now.
        let same = stamp(&path) == Some((file.size, file.modified))
            && (file.settled || Sha256::digest(&bytes)[..16] == file.hash);
        let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        same.then(|| String::from_utf8(bytes).unwrap_or_else(lossy))
    }
}
