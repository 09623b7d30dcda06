//! Terms of a text: what passages and queries are compared by.
//!
//! A word is a run of letters and digits. Identifiers are split at `_`, at changes of case and between letters and
//! digits; the parts are terms, and so is the whole. Terms are in lower case and stemmed as English. Scripts without
//! spaces give pairs of characters. A term is kept as a hash: a collision moves a score and nothing else.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rust_stemmers::{Algorithm, Stemmer};

/// Hash of a term.
pub(crate) type Term = u64;

/// A longer run is data or minified code, not a word.
const MAX_WORD_BYTES: usize = 64;

/// Words whose stem is remembered, per thread.
const REMEMBERED: usize = 50_000;

/// FNV-1a with a last mixing step. Fixed, because hashes are stored.
fn hash(text: &str) -> Term {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Turns words into terms.
pub(crate) struct Stems {
    stemmer: Stemmer,
    known: BTreeMap<Box<str>, Term>,
}

impl Stems {
    fn new() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English), known: BTreeMap::new() }
    }

    /// The term of a word in lower case.
    fn term(&mut self, word: &str) -> Term {
        if let Some(term) = self.known.get(word) {
            return *term;
        }
        let term = hash(&self.stemmer.stem(word));
        if self.known.len() < REMEMBERED {
            self.known.insert(word.into(), term);
        }
        term
    }
}

thread_local! {
    static STEMS: RefCell<Stems> = RefCell::new(Stems::new());
}

/// The term of a word in lower case.
pub(crate) fn word_term(word: &str) -> Term {
    STEMS.with_borrow_mut(|stems| stems.term(word))
}

/// A term of a text.
pub(crate) struct FoundTerm<'t> {
    pub term: Term,
    /// As written.
    pub word: &'t str,
    /// A whole identifier whose parts are terms too. It does not count for the length.
    pub is_whole: bool,
}

/// Calls `each` for every term of a text, in order.
pub(crate) fn for_each_term<'t>(text: &'t str, each: impl FnMut(FoundTerm<'t>)) {
    for_each_term_of(text, |_| true, each);
}

/// As [`for_each_term`], for words and parts of words that pass a test. Stemming takes most of the time.
pub(crate) fn for_each_term_of<'t>(
    text: &'t str,
    test: impl Fn(&str) -> bool,
    mut each: impl FnMut(FoundTerm<'t>),
) {
    STEMS.with_borrow_mut(|stems| {
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            let word = word.trim_matches('_');
            if word.is_empty() || word.len() > MAX_WORD_BYTES {
                continue;
            }
            // Most words of a text have one part, which is the term.
            if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
                if test(word) {
                    each(FoundTerm { term: stems.term(word), word, is_whole: false });
                }
                continue;
            }
            let mut parts = 0;
            for part in parts_of(word) {
                parts += 1;
                if test(part) {
                    for term in part_terms(part, stems) {
                        each(FoundTerm { term, word: part, is_whole: false });
                    }
                }
            }
            if parts > 1 && test(word) {
                let whole: String = word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect();
                each(FoundTerm { term: hash(&whole), word, is_whole: true });
            }
        }
    });
}

/// One term for a word; pairs of characters for scripts without spaces.
fn part_terms(part: &str, stems: &mut Stems) -> Vec<Term> {
    if part.chars().any(is_unspaced) {
        let chars: Vec<char> = part.chars().collect();
        let text = |chars: &[char]| hash(&chars.iter().collect::<String>());
        return match chars.len() {
            1 => vec![text(&chars)],
            _ => chars.windows(2).map(text).collect(),
        };
    }
    vec![stems.term(&part.to_lowercase())]
}

/// Chinese, Japanese and Korean.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{2ffff}')
}

/// The parts of an identifier: `parse`, `HTTP`, `Date`, `2` of `parseHTTPDate_2`.
fn parts_of(word: &str) -> impl Iterator<Item = &str> {
    word.split('_').filter(|part| !part.is_empty()).flat_map(|part| {
        if part.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return vec![part];
        }
        let mut starts = vec![0];
        let chars: Vec<(usize, char)> = part.char_indices().collect();
        for at in 1..chars.len() {
            let (before, (byte, this)) = (chars[at - 1].1, chars[at]);
            let after = chars.get(at + 1).map(|(_, c)| *c);
            let lower_to_upper = !before.is_uppercase() && this.is_uppercase();
            let acronym_end =
                before.is_uppercase() && this.is_uppercase() && after.is_some_and(char::is_lowercase);
            let number = before.is_numeric() != this.is_numeric() && chars.len() > 3;
            if lower_to_upper || acronym_end || number {
                starts.push(byte);
            }
        }
        starts.push(part.len());
        starts.windows(2).map(|pair| &part[pair[0]..pair[1]]).collect::<Vec<_>>()
    })
}

/// Words that say nothing about the subject of a question.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "another", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "but", "by", "can", "could", "did", "do", "does", "doing", "for",
    "from", "get", "gets", "give", "gives", "got", "had", "has", "have", "having", "he", "her", "here",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "like", "made", "make", "makes", "may",
    "me", "might", "more", "most", "must", "my", "no", "not", "of", "on", "one", "only", "or", "other",
    "our", "out", "own", "same", "say", "says", "shall", "she", "should", "so", "some", "such", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to",
    "too", "under", "until", "up", "us", "use", "used", "uses", "using", "very", "want", "was", "we", "were",
    "what", "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "without",
    "would", "you", "your",
];

/// Words that say little about it.
const WEAK_WORDS: &[&str] = &[
    "again",
    "against",
    "already",
    "always",
    "away",
    "between",
    "both",
    "during",
    "each",
    "even",
    "ever",
    "every",
    "everything",
    "few",
    "further",
    "however",
    "instead",
    "let",
    "lets",
    "many",
    "much",
    "need",
    "needs",
    "never",
    "nothing",
    "off",
    "once",
    "over",
    "per",
    "please",
    "possible",
    "several",
    "since",
    "someone",
    "something",
    "still",
    "though",
    "way",
    "whatever",
    "whenever",
    "whether",
    "whole",
    "yet",
];
const WEAK_WEIGHT: f32 = 0.2;

/// How much a word in lower case says about the subject of a question: 0 to 1.
pub(crate) fn question_weight(word: &str) -> f32 {
    if STOP_WORDS.binary_search(&word).is_ok() {
        0.0
    } else if WEAK_WORDS.binary_search(&word).is_ok() {
        WEAK_WEIGHT
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for_each_term(text, |found| words.push(found.word));
        words
    }

    fn terms(text: &str) -> Vec<Term> {
        let mut terms = Vec::new();
        for_each_term(text, |found| terms.push(found.term));
        terms
    }

    #[test]
    fn identifiers_are_split_and_kept_whole() {
        assert_eq!(
            words("parseHTTPDate(get_object_or_404)"),
            ["parse", "HTTP", "Date", "parseHTTPDate", "get", "object", "or", "404", "get_object_or_404"]
        );
        assert_eq!(words("utf8 __init__"), ["utf", "8", "utf8", "init"]);
        assert_eq!(terms("getObject").last(), terms("get_object").last());
    }

    #[test]
    fn forms_of_an_english_word_are_one_term() {
        assert_eq!(terms("migrations"), terms("Migration"));
        assert_eq!(terms("reversing"), terms("reversed"));
        assert_ne!(terms("größe"), terms("grosse"));
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(terms("数据库").len(), 2);
        assert!(terms("连接数据库").ends_with(&terms("数据库")));
    }

    #[test]
    fn long_runs_are_not_words() {
        assert!(words(&"x".repeat(65)).is_empty());
        assert!(STOP_WORDS.is_sorted() && WEAK_WORDS.is_sorted());
    }
}
