//! Syntax search: code patterns with metavariables, matched by ast-grep over the grammars of the index.
//!
//! A pattern such as `foo($A)` is valid on its own in some languages only. Where it is not, it is parsed inside one of the
//! language's `pattern_contexts`, and the node that covers exactly the pattern is the pattern.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ast_grep_core::language::Language;
use ast_grep_core::matcher::{Pattern, PatternBuilder, PatternError};
use ast_grep_core::tree_sitter::{LanguageExt, StrDoc, TSLanguage};
use ast_grep_core::{AstGrep, Node};
use tenon_contract::regular_file;

use crate::extract::{Extractor, MAX_FILE_BYTES};
use crate::search::{FileBudget, FileHit, FileMatches, SearchEngine, SearchedFile, cut_around};
use crate::words::word_hashes;
use crate::{SearchError, SearchRequest, SourceLanguage, View};

/// Patterns are matched recursively.
const MAX_PATTERN_BYTES: usize = 1024;

/// The pattern in each language of the searched files where it is valid.
pub(crate) struct SyntaxSearch<'v> {
    patterns: BTreeMap<SourceLanguage, LanguagePattern>,
    view: &'v View,
}

struct LanguagePattern {
    pattern: Pattern,
    /// Words that every match contains.
    words: Vec<String>,
    hashes: Vec<u32>,
}

/// The context of a pattern that needs none.
const ALONE: &str = "{}";

impl<'v> SyntaxSearch<'v> {
    pub(crate) fn new(
        request: &SearchRequest,
        files: &[SearchedFile],
        view: &'v View,
    ) -> Result<Self, SearchError> {
        if request.pattern.len() > MAX_PATTERN_BYTES {
            return Err(SearchError::PatternTooLong(MAX_PATTERN_BYTES));
        }
        let mut languages: Vec<SourceLanguage> = match request.scope.language {
            Some(language) => vec![language],
            None => files.iter().filter_map(|file| file.language).collect(),
        };
        languages.sort_unstable();
        languages.dedup();
        let mut patterns = BTreeMap::new();
        let mut errors = Vec::new();
        for language in languages {
            match LanguagePattern::new(language, &request.pattern) {
                Ok(pattern) => {
                    patterns.insert(language, pattern);
                }
                Err(message) => errors.push(SearchError::InvalidSyntax { language, message }),
            }
        }
        // A pattern of one language is often invalid in another one of the workspace.
        match (patterns.is_empty(), errors.len()) {
            (true, 1) => Err(errors.remove(0)),
            (true, 2..) => Err(SearchError::InvalidInAllLanguages),
            _ => Ok(Self { patterns, view }),
        }
    }
}

impl LanguagePattern {
    fn new(language: SourceLanguage, written: &str) -> Result<Self, String> {
        let language = PatternLanguage(language);
        let source = language.with_metavariables(written.trim());
        let contexts = language.0.rules().pattern_contexts;
        let parsed = contexts.iter().map(|context| language.in_context(context, &source));
        let mut message = None;
        for candidate in parsed {
            match candidate {
                Ok(pattern) => {
                    let words = fixed_words(written);
                    let hashes = words.iter().flat_map(|word| word_hashes(word.as_bytes())).collect();
                    return Ok(Self { pattern, words, hashes });
                }
                Err(error) => message = message.or(Some(error)),
            }
        }
        Err(message.unwrap_or_else(|| "empty".to_owned()))
    }
}

/// The words of a pattern outside of metavariables.
fn fixed_words(pattern: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = pattern;
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        if !rest[..start].ends_with('$') && !word.starts_with(|c: char| c.is_ascii_digit()) {
            words.push(word.to_owned());
        }
        rest = &rest[start + length..];
    }
    words.sort_unstable();
    words.dedup();
    words
}

impl SearchEngine for SyntaxSearch<'_> {
    fn search(&self, file: &SearchedFile, budget: &FileBudget) -> FileMatches {
        let mut found = FileMatches::default();
        let Some((language, pattern)) =
            file.language.and_then(|language| self.patterns.get_key_value(&language))
        else {
            return found;
        };
        if budget.is_over() {
            found.stopped = true;
            return found;
        }
        // The index knows which files cannot match, as long as it knows this version of the file.
        let current = self.view.file(&file.relative).filter(|known| known.is_current(&file.absolute));
        if let Some(known) = current {
            if !known.outcome().is_parsed() {
                found.skipped = true;
                return found;
            }
            if !pattern.hashes.iter().all(|hash| known.mentions_hash(*hash)) {
                return found;
            }
        }
        let Ok(bytes) = regular_file::read(&file.absolute, MAX_FILE_BYTES) else {
            found.skipped = true;
            return found;
        };
        let Ok(text) = String::from_utf8(bytes) else {
            found.skipped = true;
            return found;
        };
        if !pattern.words.iter().all(|word| text.contains(word.as_str())) {
            return found;
        }
        let Some(tree) = Extractor::new().parse(language.rules(), &text) else {
            found.skipped = true;
            return found;
        };
        let document = AstGrep::doc(StrDoc { src: text, lang: PatternLanguage(*language), tree });
        for matched in document.root().find_all(&pattern.pattern) {
            found.total += 1;
            if found.hits.len() < budget.hits {
                found.hits.push(hit(&matched, document.source(), budget.max_line_bytes));
            }
            if found.total.is_multiple_of(256) && budget.is_over() {
                found.stopped = true;
                break;
            }
        }
        found
    }
}

/// The first line of a match.
fn hit(matched: &Node<'_, StrDoc<PatternLanguage>>, text: &str, max_line_bytes: usize) -> FileHit {
    let range = matched.range();
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.start..].find('\n').map_or(text.len(), |at| range.start + at);
    let on_line = range.start - start..range.end.min(end) - start;
    FileHit {
        line: matched.start_pos().line() as u32 + 1,
        last_line: matched.end_pos().line() as u32 + 1,
        text: cut_around(&text.as_bytes()[start..end], on_line, max_line_bytes),
    }
}

/// A language as ast-grep sees it.
#[derive(Clone, Copy)]
pub(crate) struct PatternLanguage(SourceLanguage);

impl PatternLanguage {
    /// Makes metavariables identifiers of the language.
    fn with_metavariables(self, pattern: &str) -> String {
        let character = self.expando_char();
        let mut text = String::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some(start) = rest.find('$') {
            text.push_str(&rest[..start]);
            let signs = rest[start..].len() - rest[start..].trim_start_matches('$').len();
            rest = &rest[start + signs..];
            let named = rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
            let sign = if named || signs == 3 { character } else { '$' };
            text.extend(std::iter::repeat_n(sign, signs));
        }
        text.push_str(rest);
        text
    }

    /// `context` contains `{}` for the pattern.
    fn in_context(self, context: &str, pattern: &str) -> Result<Pattern, String> {
        if context == ALONE {
            let document = StrDoc::try_new(pattern, self)?;
            if document.tree.root_node().has_error() {
                return Err(format!("`{pattern}` has a syntax error"));
            }
            return Pattern::try_new(pattern, self).map_err(|error| reason(&error));
        }
        let (before, after) = context.split_once("{}").unwrap_or((context, ""));
        let document = AstGrep::doc(StrDoc::try_new(&format!("{before}{pattern}{after}"), self)?);
        let root = document.root();
        if root.get_inner_node().has_error() {
            return Err(format!("`{pattern}` has a syntax error"));
        }
        let range = before.len()..before.len() + pattern.len();
        let covering = root.dfs().filter(|node| node.range() == range).last();
        covering.map(Pattern::from).ok_or_else(|| format!("`{pattern}` is not one expression or declaration"))
    }
}

fn reason(error: &PatternError) -> String {
    match error {
        PatternError::NoContent(_) => "pattern is empty".to_owned(),
        PatternError::MultipleNode(_) => "pattern is more than one expression or declaration".to_owned(),
        PatternError::RootMultiMetaVar(_) => "`$$$` alone matches nothing: put it into a list".to_owned(),
        error => error.to_string(),
    }
}

impl Language for PatternLanguage {
    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        Cow::Borrowed(query)
    }

    fn expando_char(&self) -> char {
        self.0.rules().metavariable
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.0.rules().grammar.id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.0.rules().grammar.field_id_for_name(field).map(|id| id.get())
    }

    fn build_pattern(&self, builder: &PatternBuilder) -> Result<Pattern, PatternError> {
        builder.build(|source| StrDoc::try_new(source, *self))
    }
}

impl LanguageExt for PatternLanguage {
    fn get_ts_language(&self) -> TSLanguage {
        self.0.rules().grammar.clone()
    }
}
