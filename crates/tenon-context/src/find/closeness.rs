//! How close the words of a question are to each other in a passage.
//!
//! Two words that follow each other in the question mean more together: `static files` is rarely meant where `static` and
//! `files` are in different sentences. Positions are not part of the index: the best passages are read anyway.

use std::cell::Cell;

use super::excerpt::WordStarts;
use super::words::{Term, for_each_term_of};

/// Words that are further apart say nothing together.
const NEAR: u32 = 8;

/// A word of a question, or one that means nearly the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairedWord {
    pub term: Term,
    /// Which word of the question.
    pub number: usize,
    pub weight: f32,
}

/// The words of a question, to be looked for in passages.
#[derive(Default)]
pub(crate) struct Closeness {
    /// Sorted by term.
    words: Vec<PairedWord>,
    starts: WordStarts,
    /// The weights of all words of the question.
    total: f32,
}

impl Closeness {
    pub(crate) fn new<'w>(words: impl Iterator<Item = (PairedWord, &'w str)>) -> Self {
        let mut closeness = Self::default();
        let mut weights: Vec<f32> = Vec::new();
        for (word, text) in words {
            weights.resize(weights.len().max(word.number + 1), 0.0);
            weights[word.number] = weights[word.number].max(word.weight);
            closeness.words.push(word);
            closeness.starts.add(text);
        }
        closeness.words.sort_by(|a, b| a.term.cmp(&b.term).then(b.weight.total_cmp(&a.weight)));
        closeness.words.dedup_by_key(|word| word.term);
        closeness.total = weights.iter().sum();
        closeness
    }

    /// From 0 to 1: for each two neighbours of the question how near they are, by the weight of the lesser.
    pub(crate) fn of(&self, place: &str, text: &str) -> f32 {
        let found = self.found_in(place, text);
        let count = self.words.iter().map(|word| word.number + 1).max().unwrap_or_default();
        let mut pairs = vec![0.0_f32; count];
        for (at, (position, word)) in found.iter().enumerate() {
            let near = found[at + 1..].iter().take_while(|(other, _)| other - position <= NEAR);
            for (other_position, other) in near.filter(|(_, other)| other.number.abs_diff(word.number) == 1) {
                let close = word.weight.min(other.weight) / (other_position - position).max(1) as f32;
                let pair = &mut pairs[word.number.min(other.number)];
                *pair = pair.max(close);
            }
        }
        if self.total > 0.0 { pairs.iter().sum::<f32>() / self.total } else { 0.0 }
    }

    /// The words that a passage has, with their positions, counted in words.
    fn found_in(&self, place: &str, text: &str) -> Vec<(u32, PairedWord)> {
        let position = Cell::new(0_u32);
        let mut found = Vec::new();
        for part in [place, text] {
            let may_match = |word: &str| {
                position.set(position.get() + 1);
                self.starts.contain(word)
            };
            for_each_term_of(part, may_match, |term| {
                if !term.is_whole
                    && let Ok(at) = self.words.binary_search_by_key(&term.term, |word| word.term)
                {
                    found.push((position.get(), self.words[at]));
                }
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::word_term;
    use super::*;

    fn closeness(words: &[(&'static str, usize, f32)]) -> Closeness {
        let word = |(text, number, weight): &(&'static str, usize, f32)| {
            (PairedWord { term: word_term(text), number: *number, weight: *weight }, *text)
        };
        Closeness::new(words.iter().map(word))
    }

    #[test]
    fn neighbours_of_the_question_count_by_their_distance() {
        let question = closeness(&[("static", 0, 2.0), ("file", 1, 1.0), ("serve", 2, 1.0)]);
        let of = |text: &str| question.of("", text);
        assert_eq!(of("static files"), 0.25);
        assert_eq!(of("files that are static"), 0.25 / 3.0);
        assert_eq!(of("Serve static files"), 0.25 + 0.125);
        assert_eq!(of("serve static"), 0.0, "no neighbours in the question");
        assert_eq!(of("static, then one two three four five six seven eight files"), 0.0);
        assert_eq!(of("static"), 0.0);
        assert_eq!(of(""), 0.0);
    }

    #[test]
    fn words_that_mean_nearly_the_same_count_less() {
        let question = closeness(&[("undo", 0, 2.0), ("reverse", 0, 0.5), ("migration", 1, 2.0)]);
        assert_eq!(question.of("Reversing migrations", ""), 0.125);
        assert_eq!(question.of("", "undo migrations"), 0.5);
    }

    #[test]
    fn no_words() {
        assert_eq!(Closeness::default().of("a", "b c"), 0.0);
    }
}
