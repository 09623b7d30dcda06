//! Splits texts into words and counts the words that match a query's terms.
//!
//! Words are separated by Unicode white space and compared in lower case. Lower-casing word by word equals lower-casing
//! the whole text: the only context-dependent rule, the final sigma, never looks across white space.

use std::borrow::Cow;

/// The words of a text in original case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// A word in lower case; borrowed if it already is.
pub(crate) fn fold(word: &str) -> Cow<'_, str> {
    let folded = word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if folded { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}

/// The distinct terms of a query, sorted for lookup.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    sorted: Vec<String>,
    /// Bit `n` is set if some term has `n` bytes, bit 63 for all longer ones. This filter excludes most words.
    lengths: u64,
}

impl Terms {
    /// `terms` must be in lower case.
    pub(crate) fn new(terms: impl IntoIterator<Item = String>) -> Self {
        let mut sorted: Vec<String> = terms.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let lengths = sorted.iter().fold(0, |lengths, term| lengths | length_bit(term));
        Self { sorted, lengths }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(String::as_str)
    }

    /// Counts the words of a text and those that are terms.
    pub(crate) fn count(&self, text: &str) -> Count {
        let mut count = Count { words: 0, matches: 0 };
        for word in words(text) {
            count.words += 1;
            count.matches += u64::from(self.has(word));
        }
        count
    }

    /// Whether the text contains any of the terms.
    pub(crate) fn occur_in(&self, text: &str) -> bool {
        words(text).any(|word| self.has(word))
    }

    /// Whether a word is a term. Lower-casing keeps the length of ASCII words only.
    fn has(&self, word: &str) -> bool {
        let possible = length_bit(word) & self.lengths != 0 || !word.is_ascii();
        possible && self.sorted.binary_search_by(|term| term.as_str().cmp(&fold(word))).is_ok()
    }
}

fn length_bit(word: &str) -> u64 {
    1 << word.len().min(63)
}

/// Number of words in a document, and how many of them match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub words: u64,
    pub matches: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(query: &str) -> Terms {
        Terms::new(query.to_lowercase().split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_are_split_at_unicode_white_space() {
        let text = "a\u{a0}b\u{3000}c\u{200b}d e\u{b}f\u{1c}g\u{85}h";
        assert_eq!(words(text).collect::<Vec<_>>(), ["a", "b", "c\u{200b}d", "e", "f\u{1c}g", "h"]);
    }

    #[test]
    fn whole_words_match_once_each() {
        let count = terms("the THE cat").count("The cat, the cat and the catalogue");
        assert_eq!(count, Count { words: 7, matches: 4 });
        assert_eq!(terms("").count("a b"), Count { words: 2, matches: 0 });
        assert_eq!(terms("x").count(" \n"), Count { words: 0, matches: 0 });
    }

    #[test]
    fn words_match_even_if_folding_changes_the_length() {
        assert_eq!(terms("k").count("\u{212a} K k"), Count { words: 3, matches: 3 });
        assert_eq!(terms("İ").count("İ i i\u{307}"), Count { words: 3, matches: 2 });
    }

    #[test]
    fn long_words_of_different_length_do_not_match() {
        let (seventy, eighty) = ("x".repeat(70), "x".repeat(80));
        let count = terms(&seventy).count(&format!("{seventy} {eighty} {}", seventy.to_uppercase()));
        assert_eq!(count.matches, 2);
    }

    proptest::proptest! {
        #[test]
        fn folding_by_word_equals_folding_the_text(text in "[aA\u{3a3}\u{3b1}\u{391}.'\u{301}\u{ad} \u{a0}\n\u{212a}İ]{0,40}") {
            let whole = text.to_lowercase();
            let by_word: Vec<String> = words(&text).map(|word| fold(word).into_owned()).collect();
            proptest::prop_assert_eq!(whole.split_whitespace().collect::<Vec<_>>(), by_word);
        }
    }
}
