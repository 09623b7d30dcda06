//! Splits text into words, for the index and for queries, so that both backends find the same rows.
//!
//! A word is a run of letters and digits in lower case. Scripts without blanks between words are split into single
//! characters. `snake_case`, `kebab-case` and paths are split into their words.

use serde_json::json;

use crate::store::Arg;

/// Longer words are cut: PostgreSQL has a limit.
const MAX_WORD: usize = 64;

/// The words of a text in order, with the byte offset of each.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut found = Vec::new();
    each_word(text, |at, word| found.push((at, word.to_owned())));
    found.into_iter()
}

/// Passes each word of a text to `take`, with its byte offset.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(usize, &str)) {
    let (mut word, mut letters) = (String::new(), 0);
    let mut start = 0;
    for (at, character) in text.char_indices() {
        // Most characters are ASCII, and Unicode's tables are slow.
        let (alone, in_word) = match character.is_ascii() {
            true => (false, character.is_ascii_alphanumeric()),
            false => (is_word_by_itself(character), character.is_alphanumeric()),
        };
        if (alone || !in_word) && !word.is_empty() {
            take(start, &word);
            word.clear();
        }
        if alone {
            take(at, character.encode_utf8(&mut [0; 4]));
        } else if in_word {
            if word.is_empty() {
                (start, letters) = (at, 0);
            }
            if letters < MAX_WORD {
                letters += push_lower(&mut word, character);
            }
        }
    }
    if !word.is_empty() {
        take(start, &word);
    }
}

/// Appends a character in lower case, and returns how many characters that are.
fn push_lower(word: &mut String, character: char) -> usize {
    if character.is_ascii() {
        word.push(character.to_ascii_lowercase());
        return 1;
    }
    let lower = character.to_lowercase();
    let letters = lower.len();
    word.extend(lower);
    letters
}

/// Han, Hiragana, Katakana, Thai, Lao, Khmer and Burmese write words without blanks.
fn is_word_by_itself(character: char) -> bool {
    character.is_alphanumeric()
        && matches!(
            character,
            '\u{e00}'..='\u{eff}'
                | '\u{1000}'..='\u{109f}'
                | '\u{1780}'..='\u{17ff}'
                | '\u{3040}'..='\u{30ff}'
                | '\u{3400}'..='\u{9fff}'
                | '\u{f900}'..='\u{faff}'
                | '\u{20000}'..='\u{3ffff}'
        )
}

/// The distinct words of a text, sorted, with a blank between them: what the index keeps.
pub(crate) fn index_words(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut ends = Vec::new();
    each_word(text, |_, word| {
        all.push_str(word);
        ends.push(all.len());
    });
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mut words: Vec<&str> = starts.zip(&ends).map(|(start, end)| &all[start..*end]).collect();
    words.sort_unstable();
    words.dedup();
    words.join(" ")
}

/// The words of a search; a match contains all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchQuery(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    word: String,
    prefix: bool,
}

impl Term {
    fn matches(&self, word: &str) -> bool {
        if self.prefix { word.starts_with(&self.word) } else { word == self.word }
    }
}

impl SearchQuery {
    /// None if the text contains no word. `word*` matches words with that prefix.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut terms: Vec<Term> = Vec::new();
        for part in text.split_whitespace() {
            let (part, starred) = match part.strip_suffix('*') {
                Some(part) => (part, true),
                None => (part, false),
            };
            let mut words: Vec<String> = words(part).map(|(_, word)| word).collect();
            if let Some(last) = words.pop() {
                terms.extend(words.into_iter().map(|word| Term { word, prefix: false }));
                terms.push(Term { word: last, prefix: starred });
            }
        }
        terms.sort();
        terms.dedup();
        (!terms.is_empty()).then_some(Self(terms))
    }

    /// Rows with this word.
    pub(crate) fn exact(word: &str) -> Self {
        Self(vec![Term { word: word.to_owned(), prefix: false }])
    }

    /// Rows that match all of these.
    pub(crate) fn all<'a>(queries: impl IntoIterator<Item = &'a Self>) -> Self {
        Self(queries.into_iter().flat_map(|query| query.0.clone()).collect())
    }

    /// Rows with a word that begins with each of these.
    pub(crate) fn prefixes(words: impl Iterator<Item = String>) -> Self {
        Self(words.map(|word| Term { word, prefix: true }).collect())
    }

    /// The query as an argument of a statement that searches.
    pub(crate) fn to_arg(&self) -> Arg<'static> {
        let sqlite = json!([self.to_fts5(), self.to_parts()]).to_string();
        Arg::PerBackend { sqlite: sqlite.into(), postgres: self.to_tsquery().into() }
    }

    /// For FTS5. Words hold neither quotes nor operators, and quoting keeps `and` a word.
    fn to_fts5(&self) -> String {
        self.join(" AND ", |term| format!("\"{}\"{}", term.word, if term.prefix { "*" } else { "" }))
    }

    /// What the words of a text contain, with a blank before, between and after them, if the text matches.
    fn to_parts(&self) -> Vec<String> {
        self.0.iter().map(|term| format!(" {}{}", term.word, if term.prefix { "" } else { " " })).collect()
    }

    /// For `tsquery`.
    fn to_tsquery(&self) -> String {
        self.join(" & ", |term| format!("'{}'{}", term.word, if term.prefix { ":*" } else { "" }))
    }

    fn join(&self, operator: &str, write: impl Fn(&Term) -> String) -> String {
        self.0.iter().map(write).collect::<Vec<_>>().join(operator)
    }

    fn matches(&self, word: &str) -> bool {
        self.0.iter().any(|term| term.matches(word))
    }

    /// Whether a text contains all the words.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let words: Vec<String> = words(text).map(|(_, word)| word).collect();
        self.0.iter().all(|term| words.iter().any(|word| term.matches(word)))
    }

    /// The context of the first hit, on one line.
    pub(crate) fn snippet(&self, text: &str) -> String {
        const BEFORE: usize = 40;
        const ALL: usize = 160;
        let hit = words(text).find(|(_, word)| self.matches(word)).map_or(0, |(at, _)| at);
        let start = text[..hit].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
        let end = text[start..].char_indices().nth(ALL).map_or(text.len(), |(at, _)| start + at);
        let body = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
        format!("{before}{body}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_lower_case_words() {
        assert_eq!(
            index_words("Tasks_next, src/main.rs: Größe 12é the THE"),
            "12é größe main next rs src tasks the"
        );
        assert_eq!(index_words("東京tower"), "tower 京 東");
        assert_eq!(index_words(" \u{0}|'\" "), "");
        assert_eq!(index_words(&"x".repeat(1000)).len(), MAX_WORD);
    }

    #[test]
    fn queries_are_written_for_both_engines() {
        let query = SearchQuery::parse("foo-bar AND' ba*").unwrap();
        assert_eq!(query.to_fts5(), r#""and" AND "ba"* AND "bar" AND "foo""#);
        assert_eq!(query.to_parts(), [" and ", " ba", " bar ", " foo "]);
        assert_eq!(query.to_tsquery(), "'and' & 'ba':* & 'bar' & 'foo'");
        assert_eq!(SearchQuery::parse(" ** ' "), None);
    }

    #[test]
    fn snippet_shows_the_first_hit() {
        let text = format!("{} needle in the hay {}", "a b ".repeat(50), "tail ".repeat(50));
        let snippet = SearchQuery::parse("need*").unwrap().snippet(&text);
        assert!(
            snippet.starts_with('…') && snippet.contains(" needle in the hay ") && snippet.ends_with('…')
        );
        assert_eq!(SearchQuery::parse("x").unwrap().snippet("no hit\nhere"), "no hit here");
    }
}
