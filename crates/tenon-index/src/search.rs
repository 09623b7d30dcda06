//! Text, regex and syntax search in the files of the workspace.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::time::Instant;

use camino::Utf8PathBuf;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tenon_contract::regular_file;

use crate::syntax_search::SyntaxSearch;
use crate::{PathFilter, SourceLanguage, SymbolId, SymbolRef, View};

/// How the pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// A literal text, case-sensitive.
    #[default]
    Text,
    /// A regular expression of the `regex` crate, which matches within lines.
    Regex,
    /// Code with metavariables: `foo($A, $$$)`.
    Syntax,
}

/// Which files to search.
#[derive(Clone, Debug, Default)]
pub struct SearchScope {
    pub path: Option<PathFilter>,
    pub language: Option<SourceLanguage>,
}

#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// More matches are counted, not listed.
    pub max_matches: usize,
    /// A longer line is cut around the match.
    pub max_line_bytes: usize,
    /// When to stop. The result is then incomplete.
    pub deadline: Option<Instant>,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { max_matches: 1000, max_line_bytes: 200, deadline: None }
    }
}

#[derive(Clone, Debug)]
pub struct SearchRequest {
    pub pattern: String,
    pub mode: SearchMode,
    pub scope: SearchScope,
    pub limits: SearchLimits,
}

/// A matching line, or the first line of matching code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// Relative to the root, with `/`.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// The last line of the match.
    pub last_line: u32,
    /// Without line break and, if cut, with `…`. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The innermost declaration around it, in the view that searched.
    pub symbol: Option<SymbolId>,
}

/// By path and line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    pub hits: Vec<SearchHit>,
    /// All matching lines, or places for [`SearchMode::Syntax`]; see `complete`.
    pub total: u64,
    /// Files with matches.
    pub files: u64,
    /// Otherwise the deadline ended the search: there are at least `total` matches.
    pub complete: bool,
    /// Files that could not be searched: too large or unreadable.
    pub skipped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("pattern is empty")]
    EmptyPattern,
    #[error("pattern exceeds {0} bytes")]
    PatternTooLong(usize),
    #[error("pattern contains a line break: search for one line")]
    SeveralLines,
    #[error("invalid regular expression at character {column}: {message}")]
    InvalidRegex { column: usize, message: String },
    #[error("regular expression is too large: make its repetitions smaller")]
    RegexTooLarge,
    #[error("invalid {language} pattern: {message}")]
    InvalidSyntax { language: SourceLanguage, message: String },
    #[error("pattern is invalid in all languages of the searched files: name the language")]
    InvalidInAllLanguages,
}

const MAX_PATTERN_BYTES: usize = 4096;
/// Larger files are passed over.
const MAX_SEARCHED_BYTES: u64 = 64 * 1024 * 1024;
/// For one line.
const MAX_LINE_BUFFER: usize = 64 * 1024 * 1024;
const MAX_REGEX_BYTES: usize = 8 * 1024 * 1024;
const MAX_REGEX_NESTING: u32 = 100;
/// Files searched at a time. The next ones only count if the list of hits is full by then.
const BATCH: usize = 256;

impl View {
    /// Searches `files`: absolute paths of the workspace's text files, indexed or not.
    ///
    /// # Errors
    /// [`SearchError`] if the pattern is invalid.
    pub fn search(
        &self,
        request: &SearchRequest,
        files: &[Utf8PathBuf],
    ) -> Result<SearchResult, SearchError> {
        if request.pattern.is_empty() {
            return Err(SearchError::EmptyPattern);
        }
        if request.pattern.len() > MAX_PATTERN_BYTES {
            return Err(SearchError::PatternTooLong(MAX_PATTERN_BYTES));
        }
        let files = self.searched_files(&request.scope, files);
        let engine: Box<dyn SearchEngine> = match request.mode {
            SearchMode::Text | SearchMode::Regex => Box::new(LineSearch::new(request)?),
            SearchMode::Syntax => Box::new(SyntaxSearch::new(request, &files, self)?),
        };
        Ok(self.run(&*engine, request.limits, &files))
    }

    /// Sorted by path.
    fn searched_files(&self, scope: &SearchScope, files: &[Utf8PathBuf]) -> Vec<SearchedFile> {
        let searched = |path: &Utf8PathBuf| {
            let relative = path.strip_prefix(&*self.root).ok()?;
            let parts: Vec<&str> = relative.components().map(|part| part.as_str()).collect();
            let relative = parts.join("/");
            let language = SourceLanguage::of_path(&relative);
            let wanted = scope.path.as_ref().is_none_or(|filter| filter.matches(&relative))
                && scope.language.is_none_or(|wanted| language == Some(wanted));
            wanted.then(|| SearchedFile { absolute: path.clone(), relative, language })
        };
        let mut searched: Vec<SearchedFile> = files.iter().filter_map(searched).collect();
        searched.sort_unstable_by(|a, b| a.relative.cmp(&b.relative));
        searched.dedup_by(|a, b| a.relative == b.relative);
        searched
    }

    fn run(&self, engine: &dyn SearchEngine, limits: SearchLimits, files: &[SearchedFile]) -> SearchResult {
        let mut result = SearchResult { complete: true, ..SearchResult::default() };
        for batch in files.chunks(BATCH) {
            let budget = FileBudget {
                hits: limits.max_matches - result.hits.len(),
                max_line_bytes: limits.max_line_bytes,
                deadline: limits.deadline,
            };
            let found: Vec<FileMatches> = batch.par_iter().map(|file| engine.search(file, &budget)).collect();
            for (file, found) in batch.iter().zip(found) {
                result.total += found.total;
                result.files += u64::from(found.total > 0);
                result.skipped += u64::from(found.skipped);
                result.complete &= !found.stopped;
                let room = limits.max_matches - result.hits.len();
                let indexed = self.file(&file.relative);
                result.hits.extend(found.hits.into_iter().take(room).map(|hit| {
                    let symbol = indexed.and_then(|indexed| indexed.enclosing(hit.line));
                    SearchHit {
                        path: file.relative.clone(),
                        line: hit.line,
                        last_line: hit.last_line,
                        text: hit.text,
                        symbol: symbol.map(SymbolRef::id),
                    }
                }));
            }
            if !result.complete {
                break;
            }
        }
        result
    }
}

pub(crate) struct SearchedFile {
    pub absolute: Utf8PathBuf,
    pub relative: String,
    pub language: Option<SourceLanguage>,
}

/// What may be spent on one file.
pub(crate) struct FileBudget {
    /// More are only counted.
    pub hits: usize,
    pub max_line_bytes: usize,
    deadline: Option<Instant>,
}

impl FileBudget {
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

#[derive(Default)]
pub(crate) struct FileMatches {
    pub hits: Vec<FileHit>,
    pub total: u64,
    /// Could not be read.
    pub skipped: bool,
    /// The deadline passed.
    pub stopped: bool,
}

pub(crate) struct FileHit {
    pub line: u32,
    pub last_line: u32,
    pub text: String,
}

pub(crate) trait SearchEngine: Sync {
    fn search(&self, file: &SearchedFile, budget: &FileBudget) -> FileMatches;
}

/// Text and regex search, line by line.
struct LineSearch {
    matcher: RegexMatcher,
}

impl LineSearch {
    fn new(request: &SearchRequest) -> Result<Self, SearchError> {
        let literal = request.mode == SearchMode::Text;
        if request.pattern.contains(['\n', '\r']) {
            return Err(SearchError::SeveralLines);
        }
        if !literal {
            check_regex(&request.pattern)?;
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .fixed_strings(literal)
            .line_terminator(Some(b'\n'))
            .crlf(true)
            .ban_byte(Some(0))
            .nest_limit(MAX_REGEX_NESTING)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES);
        let matcher = builder.build(&request.pattern).map_err(|error| match error.kind() {
            grep_regex::ErrorKind::NotAllowed(_) => SearchError::SeveralLines,
            _ => SearchError::RegexTooLarge,
        })?;
        Ok(Self { matcher })
    }
}

/// The searcher's own error does not say where the pattern is wrong.
fn check_regex(pattern: &str) -> Result<(), SearchError> {
    let (span, message) =
        match regex_syntax::ParserBuilder::new().nest_limit(MAX_REGEX_NESTING).build().parse(pattern) {
            Ok(_) => return Ok(()),
            Err(regex_syntax::Error::Parse(error)) => (*error.span(), error.kind().to_string()),
            Err(regex_syntax::Error::Translate(error)) => (*error.span(), error.kind().to_string()),
            Err(error) => return Err(SearchError::InvalidRegex { column: 1, message: error.to_string() }),
        };
    Err(SearchError::InvalidRegex { column: span.start.column, message })
}

impl SearchEngine for LineSearch {
    fn search(&self, file: &SearchedFile, budget: &FileBudget) -> FileMatches {
        thread_local! {
            /// Keeps its line buffer between files.
            static SEARCHERS: RefCell<[Searcher; 2]> = RefCell::new([searcher(false), searcher(true)]);
        }
        let mut found = FileMatches::default();
        if budget.is_over() {
            found.stopped = true;
            return found;
        }
        let opened = regular_file::open(&file.absolute);
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let Ok((size, opened)) = opened else {
            found.skipped = true;
            return found;
        };
        if size > MAX_SEARCHED_BYTES {
            found.skipped = true;
            return found;
        }
        let mut sink = LineSink { matcher: &self.matcher, budget, found };
        let searched = SEARCHERS.with_borrow_mut(|searchers| {
            // Line numbers cost time; a count does not need them.
            let searcher = &mut searchers[usize::from(budget.hits > 0)];
            searcher.search_file(&self.matcher, &opened, &mut sink)
        });
        sink.found.skipped |= searched.is_err();
        sink.found
    }
}

fn searcher(line_numbers: bool) -> Searcher {
    SearcherBuilder::new()
        .line_number(line_numbers)
        // As the matcher's.
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE_BUFFER))
        .build()
}

struct LineSink<'s> {
    matcher: &'s RegexMatcher,
    budget: &'s FileBudget,
    found: FileMatches,
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        /// How many matches between two looks at the clock.
        const CHECKED: u64 = 1024;
        self.found.total += 1;
        if self.found.hits.len() < self.budget.hits {
            let line = found.bytes();
            let matched =
                self.matcher.find(line).ok().flatten().map_or(0..0, |found| found.start()..found.end());
            let number = u32::try_from(found.line_number().unwrap_or(0)).unwrap_or(u32::MAX);
            let text = cut_around(line, matched, self.budget.max_line_bytes);
            self.found.hits.push(FileHit { line: number, last_line: number, text });
        }
        self.found.stopped = self.found.total.is_multiple_of(CHECKED) && self.budget.is_over();
        Ok(!self.found.stopped)
    }

    /// A file with a zero byte is not text: its matches before that byte do not count.
    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.found.hits.clear();
        self.found.total = 0;
        Ok(false)
    }
}

/// The line without its break; if longer than `limit` bytes, the part around the match.
pub(crate) fn cut_around(line: &[u8], matched: Range<usize>, limit: usize) -> String {
    const MARK: &str = "…";
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    if line.len() <= limit {
        return String::from_utf8_lossy(line).into_owned();
    }
    let room = limit.saturating_sub(2 * MARK.len());
    // The match in the middle, its start in any case.
    let spare = room.saturating_sub(matched.len());
    let start = matched.start.saturating_sub(spare / 2).min(line.len().saturating_sub(room));
    let end = (start + room).min(line.len());
    let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let start = start + line[start..end].iter().take(3).take_while(|byte| is_inside(byte)).count();
    let broken = line[end..].iter().take(3).take_while(|byte| is_inside(byte)).count();
    let end = match broken {
        0 => end,
        // Back to the start of the broken character.
        _ => start + line[start..end].iter().rposition(|byte| !is_inside(byte)).unwrap_or(0),
    };
    let text = String::from_utf8_lossy(&line[start..end]);
    let before = if start > 0 { MARK } else { "" };
    let after = if end < line.len() { MARK } else { "" };
    format!("{before}{text}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_is_cut_around_the_match() {
        let line = format!("{}match{}\r\n", "ä".repeat(300), "b".repeat(300));
        for limit in [20, 50, 51, 52, 53, 200] {
            let text = cut_around(line.as_bytes(), 600..605, limit);
            assert!(text.len() <= limit && text.contains("match"), "{text}");
            assert!(text.starts_with('…') && text.ends_with('…') && !text.contains('\u{fffd}'), "{text}");
        }
        assert_eq!(cut_around(b"short\n", 0..5, 20), "short");
        assert_eq!(cut_around(&[b'a'; 100], 0..0, 0), "…");
    }
}
