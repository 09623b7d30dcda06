//! Highlighting: the lines of a text in spans of one kind, from the highlight queries of the grammars.
//!
//! Bounded as the index is: by the size of the text and by counted steps. What is beyond a limit is plain text.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use serde::Serialize;
use tree_sitter::{ParseOptions, Parser, Query, QueryCursor, QueryCursorOptions, StreamingIterator};

use crate::SourceLanguage;

/// Larger texts are plain.
const MAX_BYTES: usize = 512 * 1024;

/// How often the parser and the query may report progress before they stop.
const MAX_STEPS: usize = 20_000;

/// What a span is, in the words of themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HighlightKind {
    Plain,
    Comment,
    Constant,
    Function,
    Keyword,
    Name,
    Number,
    Operator,
    Property,
    Punctuation,
    String,
    Type,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HighlightedSpan {
    pub text: String,
    pub kind: HighlightKind,
    /// Whether it is one identifier.
    pub is_name: bool,
}

/// One line without its line break.
pub type HighlightedLine = Vec<HighlightedSpan>;

/// The lines of a text. `None` and texts above the limit are plain.
#[must_use]
pub fn highlight(language: Option<SourceLanguage>, text: &str) -> Vec<HighlightedLine> {
    let kinds = match language {
        Some(language) if text.len() <= MAX_BYTES => kinds_of(language, text).unwrap_or_default(),
        _ => Vec::new(),
    };
    let mut at = 0;
    text.split('\n')
        .map(|line| {
            let shown = line.strip_suffix('\r').unwrap_or(line);
            let spans = spans(shown, kinds.get(at..at + shown.len()).unwrap_or_default());
            at += line.len() + 1;
            spans
        })
        .collect()
}

/// Splits a line where the kind changes, and around names.
fn spans(line: &str, kinds: &[HighlightKind]) -> HighlightedLine {
    let kind_at = |at: usize| kinds.get(at).copied().unwrap_or(HighlightKind::Plain);
    let mut spans: Vec<HighlightedSpan> = Vec::new();
    for (at, one) in line.char_indices() {
        let kind = kind_at(at);
        let can_be_name = !matches!(
            kind,
            HighlightKind::Comment | HighlightKind::String | HighlightKind::Number | HighlightKind::Keyword
        );
        let in_name = can_be_name && (one.is_alphanumeric() || one == '_');
        match spans.last_mut() {
            Some(last) if last.kind == kind && last.is_name == in_name => last.text.push(one),
            _ => spans.push(HighlightedSpan { text: one.to_string(), kind, is_name: in_name }),
        }
    }
    for span in &mut spans {
        span.is_name &= !span.text.starts_with(|one: char| one.is_ascii_digit());
    }
    spans
}

/// The kind of every byte.
fn kinds_of(language: SourceLanguage, text: &str) -> Option<Vec<HighlightKind>> {
    let rules = language.rules();
    let (query, captures) = query_of(language)?;
    let mut parser = Parser::new();
    parser.set_language(&rules.grammar).ok()?;
    let mut steps = 0;
    let mut progress = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = text.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree =
        parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))?;
    let mut kinds = vec![HighlightKind::Plain; bytes.len()];
    // The length of the node and the pattern that gave each kind: the shortest node wins, then the last pattern of the
    // query, since the more specific ones are last in all grammars used here. Matches come in another order.
    let mut givers = vec![(usize::MAX, 0); bytes.len()];
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(1024);
    let mut steps = 0;
    let mut query_progress = |_: &tree_sitter::QueryCursorState| {
        steps += 1;
        if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = QueryCursorOptions::new().progress_callback(&mut query_progress);
    let mut matches = cursor.matches_with_options(query, tree.root_node(), bytes, options);
    while let Some(found) = matches.next() {
        for capture in found.captures() {
            let Some(kind) = captures[capture.index as usize] else { continue };
            let range = capture.node.byte_range();
            let (length, pattern) = (range.len(), found.pattern_index);
            for at in range {
                let (known_length, known_pattern) = givers[at];
                if length < known_length || (length == known_length && pattern >= known_pattern) {
                    givers[at] = (length, pattern);
                    kinds[at] = kind;
                }
            }
        }
    }
    Some(kinds)
}

type HighlightQuery = (Query, Vec<Option<HighlightKind>>);

/// Compiled once per language; `None` if the grammar's query does not fit the grammar.
fn query_of(language: SourceLanguage) -> Option<&'static HighlightQuery> {
    static QUERIES: [OnceLock<Option<HighlightQuery>>; SourceLanguage::COUNT] =
        [const { OnceLock::new() }; SourceLanguage::COUNT];
    let made = QUERIES[language.number()].get_or_init(|| {
        let query = Query::new(&language.rules().grammar, &language.highlights()).ok()?;
        let captures = query.capture_names().iter().map(|name| kind_of(name)).collect();
        Some((query, captures))
    });
    made.as_ref()
}

/// The kind of a capture such as `function.method`.
fn kind_of(capture: &str) -> Option<HighlightKind> {
    Some(match capture.split('.').next().unwrap_or(capture) {
        "comment" => HighlightKind::Comment,
        "constant" | "boolean" => HighlightKind::Constant,
        "function" | "method" | "constructor" => HighlightKind::Function,
        "keyword" | "conditional" | "repeat" | "include" | "exception" => HighlightKind::Keyword,
        "number" | "float" => HighlightKind::Number,
        "operator" => HighlightKind::Operator,
        "property" | "field" | "attribute" | "label" | "tag" => HighlightKind::Property,
        "punctuation" | "delimiter" => HighlightKind::Punctuation,
        "string" | "character" | "escape" => HighlightKind::String,
        "type" | "module" | "namespace" => HighlightKind::Type,
        "variable" | "parameter" | "name" => HighlightKind::Name,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(path: &str, text: &str) -> Vec<(String, HighlightKind)> {
        let lines = highlight(SourceLanguage::of_path(path), text);
        lines.into_iter().flatten().map(|span| (span.text, span.kind)).collect()
    }

    #[test]
    fn every_grammar_has_a_usable_query() {
        let unusable: Vec<&str> =
            SourceLanguage::all().filter(|one| query_of(*one).is_none()).map(SourceLanguage::name).collect();
        assert!(unusable.is_empty(), "{unusable:?}");
    }

    #[test]
    fn python_has_keywords_names_strings_and_comments() {
        let spans = kinds("a.py", "def total(x):  # sum\n    return \"a\" + 1\n");
        let has = |text: &str, kind| spans.contains(&(text.to_owned(), kind));
        assert!(has("def", HighlightKind::Keyword), "{spans:?}");
        assert!(has("total", HighlightKind::Function), "{spans:?}");
        assert!(has("# sum", HighlightKind::Comment), "{spans:?}");
        assert!(has("\"a\"", HighlightKind::String), "{spans:?}");
        assert!(has("1", HighlightKind::Number), "{spans:?}");
    }

    #[test]
    fn spans_give_the_text_back() {
        for (path, text) in [
            ("a.rs", "fn größe() -> u8 { 'ä' as u8 }\r\n// ∑\n"),
            ("a.ts", "const a: Order = { b: `x${1}` };\n\n"),
            ("a.unknown", "plain\n\ttext"),
            ("a.py", "x = \"\u{202e}\n"),
        ] {
            let lines = highlight(SourceLanguage::of_path(path), text);
            let joined: Vec<String> =
                lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect()).collect();
            assert_eq!(joined.join("\n"), text.replace("\r\n", "\n"), "{path}");
        }
    }
}
