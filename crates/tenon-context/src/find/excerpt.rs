//! What is shown of a passage: all of it, or the lines that matter if it is long.
//!
//! A long passage keeps its first line (of code, the declaration) and the lines with words of the question, each with
//! the lines around it. Then lines follow from the top until the limit. Every gap says how many lines are missing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::section::lines;
use super::words::{Term, for_each_term_of};

/// Lines of a declaration that are always shown.
const DECLARATION_LINES: usize = 3;

/// Lines before and after one with words of the question.
const BEFORE: usize = 1;
const AFTER: usize = 2;

/// A single line of this length is shown: the mark of a gap would save little.
const GAP_BYTES: usize = 40;

/// The words of a question, and those that mean nearly the same, with their weights.
#[derive(Default)]
pub(crate) struct ShownTerms {
    /// Sorted.
    weights: Vec<(Term, f32)>,
    starts: WordStarts,
}

/// How some words begin: other words need no stem.
#[derive(Default)]
pub(crate) struct WordStarts(Vec<[u8; 2]>);

impl WordStarts {
    pub(crate) fn add(&mut self, word: &str) {
        self.0.extend(start(word));
    }

    /// Whether a word may be one of them. Letters beyond ASCII are not compared.
    pub(crate) fn contain(&self, word: &str) -> bool {
        start(word).is_none_or(|start| self.0.contains(&start))
    }
}

impl ShownTerms {
    pub(crate) fn new<'w>(words: impl Iterator<Item = (Term, &'w str, f32)>) -> Self {
        let mut terms = Self::default();
        for (term, word, weight) in words {
            terms.weights.push((term, weight));
            terms.starts.add(word);
        }
        terms.weights.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        terms.weights.dedup_by_key(|one| one.0);
        terms
    }

    /// Whether a part of a word in the line may begin as one of the words. Cheaper than splitting the line.
    fn may_occur(&self, line: &str) -> bool {
        let bytes = line.as_bytes();
        let mut before = Letters::None;
        bytes.iter().enumerate().any(|(at, byte)| {
            let this = Letters::of(*byte);
            let begins = this != before || this == Letters::Upper;
            before = this;
            match this {
                Letters::None => false,
                Letters::Other => true,
                _ if !begins => false,
                _ => {
                    // The part may be this letter alone.
                    let ends = bytes.get(at + 1).is_none_or(|next| Letters::of(*next) != this);
                    let alone = ends.then(|| [byte.to_ascii_lowercase(), b' ']);
                    let mut starts = start_at(&bytes[at..]).into_iter().chain(alone);
                    starts.any(|start| self.starts.0.contains(&start))
                }
            }
        })
    }

    /// How much a line says about the question.
    fn score(&self, line: &str) -> f32 {
        if !self.may_occur(line) {
            return 0.0;
        }
        let mut seen: BTreeSet<Term> = BTreeSet::new();
        let mut score = 0.0;
        for_each_term_of(
            line,
            |word| self.starts.contain(word),
            |found| {
                if let Ok(at) = self.weights.binary_search_by_key(&found.term, |(term, _)| *term)
                    && seen.insert(found.term)
                {
                    score += self.weights[at].1;
                }
            },
        );
        score
    }
}

/// Where a part of a word may begin: where this changes, and at every upper-case letter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    None,
    Lower,
    Upper,
    Digit,
    /// Beyond ASCII.
    Other,
}

impl Letters {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            0x80.. => Self::Other,
            _ => Self::None,
        }
    }
}

/// The first two letters, which stemming keeps; `None` for letters beyond ASCII.
fn start(word: &str) -> Option<[u8; 2]> {
    start_at(word.as_bytes())
}

/// As [`start`], of the word at the start of a text.
fn start_at(text: &[u8]) -> Option<[u8; 2]> {
    let mut bytes = text.iter().filter(|byte| **byte != b'_').map(u8::to_ascii_lowercase);
    let (first, second) = (bytes.next()?, bytes.next().unwrap_or(b' '));
    let second = if Letters::of(second) == Letters::None { b' ' } else { second };
    (first.is_ascii() && second.is_ascii()).then_some([first, second])
}

/// What a passage shows within about `limit` bytes. `declaration` is where code begins after its comment.
pub(super) fn excerpt(text: &str, declaration: usize, limit: usize, terms: &ShownTerms) -> String {
    let text = text.trim_end();
    let text_start = text.len() - text.trim_start_matches(['\n', '\r']).len();
    if text.len() - text_start <= limit {
        return text[text_start..].to_owned();
    }
    let all: Vec<(usize, &str)> = lines(text).collect();
    let mut chosen: Vec<bool> = vec![false; all.len()];
    let mut left = limit;
    let mut take = |line: usize, left: &mut usize| {
        let cost = all[line].1.len().min(limit) + 1;
        if !chosen[line] && cost <= *left {
            *left -= cost;
            chosen[line] = true;
        }
        chosen[line]
    };
    let first =
        all.iter().position(|(start, line)| *start >= declaration && !line.trim().is_empty()).unwrap_or(0);
    take(first, &mut left);
    if declaration > 0 {
        // The parameters of a declaration, up to the line that ends it.
        let is_continued = |line: &str| line.trim_end().ends_with(['(', ',']);
        let last = (first..all.len()).take(DECLARATION_LINES).find(|line| !is_continued(all[*line].1));
        (first + 1..=last.unwrap_or(first)).for_each(|line| {
            take(line, &mut left);
        });
    }
    let mut by_score: Vec<(f32, usize)> = (0..all.len())
        .map(|line| (terms.score(all[line].1), line))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    by_score.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, line) in by_score {
        if !take(line, &mut left) {
            break;
        }
        for near in line.saturating_sub(BEFORE)..(line + AFTER + 1).min(all.len()) {
            take(near, &mut left);
        }
    }
    for line in 0..all.len() {
        if !take(line, &mut left) {
            break;
        }
    }
    shown(&all, &chosen, limit)
}

fn shown(all: &[(usize, &str)], chosen: &[bool], limit: usize) -> String {
    let mut shown = String::new();
    let mut hidden: Vec<&str> = Vec::new();
    let gap = |shown: &mut String, hidden: &mut Vec<&str>| {
        match hidden.as_slice() {
            [] => {}
            [only] if only.len() <= GAP_BYTES => {
                let _ = writeln!(shown, "{only}");
            }
            [_] => shown.push_str("… 1 line\n"),
            lines => {
                let _ = writeln!(shown, "… {} lines", lines.len());
            }
        }
        hidden.clear();
    };
    for ((_, line), chosen) in all.iter().zip(chosen) {
        if *chosen {
            gap(&mut shown, &mut hidden);
            let end = line.floor_char_boundary(limit);
            shown.push_str(&line[..end]);
            shown.push_str(if end < line.len() { "…\n" } else { "\n" });
        } else if !line.trim().is_empty() || !hidden.is_empty() {
            hidden.push(line);
        }
    }
    gap(&mut shown, &mut hidden);
    shown.truncate(shown.trim_end().len());
    shown
}

#[cfg(test)]
mod tests {
    use super::super::words::word_term;
    use super::*;

    fn terms(words: &[&'static str]) -> ShownTerms {
        ShownTerms::new(words.iter().map(|word| (word_term(word), *word, 1.0)))
    }

    #[test]
    fn short_text_is_shown_as_it_is() {
        assert_eq!(excerpt("\n\n  one\ntwo\n\n", 0, 100, &terms(&["two"])), "  one\ntwo");
    }

    #[test]
    fn long_declaration_keeps_its_head_and_the_lines_that_match() {
        let comment = "/// Comment.\n".repeat(20);
        let body: String = (0..50).map(|n| format!("    step({n});\n")).collect();
        let text = format!("{comment}fn run(\n    a: u8,\n) {{\n{body}    cancels(a);\n{body}}}\n");
        let shown = excerpt(&text, comment.len(), 150, &terms(&["cancelled"]));
        assert_eq!(
            shown,
            "/// Comment.\n/// Comment.\n/// Comment.\n/// Comment.\n/// Comment.\n… 15 lines\nfn run(\n    a: u8,\n) {\n… 49 lines\n    step(49);\n    cancels(a);\n    \
             step(0);\n    step(1);\n… 49 lines"
        );
    }

    #[test]
    fn lines_are_passed_over_only_if_they_have_no_word() {
        let words = ["HTTPDate", "x", "parse", "cancelled", "42", "größe", "a_bc"];
        for line in [
            "parseHTTPDate_2",
            "x_min",
            "xMin",
            "a.x",
            "re-parsing",
            "is42nd",
            "cancels it",
            "GRÖSSE",
            "a_bc()",
            "__x__",
        ] {
            for word in words {
                let mut terms = ShownTerms::default();
                super::super::words::for_each_term(word, |found| {
                    let one = ShownTerms::new([(found.term, found.word, 1.0)].into_iter());
                    terms.weights.extend(one.weights);
                    terms.starts.0.extend(one.starts.0);
                });
                terms.weights.sort_by_key(|one| one.0);
                let passed_over = !terms.may_occur(line);
                // Every start is allowed.
                terms.starts.0 = (0..=0x7f).flat_map(|a| (0..=0x7f).map(move |b| [a, b])).collect();
                assert!(!passed_over || terms.score(line) == 0.0, "{word} in {line}");
            }
        }
    }

    #[test]
    fn long_line_is_cut_and_limit_holds() {
        for limit in [1, 10, 100] {
            for text in ["ä".repeat(500), format!("# Title\n{}", "word ".repeat(200)), "a\n".repeat(500)] {
                let shown = excerpt(&text, 0, limit, &terms(&["word"]));
                // The marks of gaps come on top.
                assert!(!shown.is_empty() && shown.len() <= limit + 60, "{limit}: {shown}");
            }
        }
    }
}
