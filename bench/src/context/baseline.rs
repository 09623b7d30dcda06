//! Baselines for the quality of `context.find`: plain BM25 over sections, and word search over lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::error::BenchError;

/// Source files have no sections; they are cut into windows.
const WINDOW_LINES: usize = 30;

/// Lines of a file, counted from 1, both included.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub path: String,
    pub first: usize,
    pub last: usize,
}

struct Section {
    lines: Lines,
    counts: BTreeMap<String, usize>,
    words: usize,
    bytes: usize,
}

/// See the module.
pub(super) struct Baseline {
    sections: Vec<Section>,
    lines: Vec<(Lines, BTreeSet<String>, usize)>,
    frequency: BTreeMap<String, usize>,
    mean: f64,
    budget: usize,
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

impl Baseline {
    pub(super) fn read(root: &Path, paths: &[String], budget: usize) -> Result<Self, BenchError> {
        let mut baseline =
            Self { sections: Vec::new(), lines: Vec::new(), frequency: BTreeMap::new(), mean: 1.0, budget };
        for path in paths {
            let text = String::from_utf8_lossy(&fs::read(root.join(path))?).into_owned();
            let all: Vec<&str> = text.lines().collect();
            let starts = starts(path, &all);
            for (at, start) in starts.iter().enumerate() {
                let end = starts.get(at + 1).copied().unwrap_or(all.len());
                if end > *start {
                    baseline.add(path, *start, &all[*start..end]);
                }
            }
            for (number, line) in all.iter().enumerate() {
                let lines = Lines { path: path.clone(), first: number + 1, last: number + 1 };
                baseline.lines.push((lines, words(line).collect(), line.len()));
            }
        }
        let total: usize = baseline.sections.iter().map(|section| section.words).sum();
        baseline.mean = total as f64 / baseline.sections.len().max(1) as f64;
        Ok(baseline)
    }

    fn add(&mut self, path: &str, start: usize, text: &[&str]) {
        let lines = Lines { path: path.to_owned(), first: start + 1, last: start + text.len() };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for word in text.iter().flat_map(|line| words(line)) {
            *counts.entry(word).or_default() += 1;
        }
        for word in counts.keys() {
            *self.frequency.entry(word.clone()).or_default() += 1;
        }
        let words = counts.values().sum();
        let bytes = text.iter().map(|line| line.len() + 1).sum();
        self.sections.push(Section { lines, counts, words, bytes });
    }

    pub(super) fn bm25(&self, question: &str) -> Vec<Lines> {
        let asked: BTreeSet<String> = words(question).collect();
        let count = self.sections.len() as f64;
        let score = |section: &Section| -> f64 {
            let of = |word: &String| {
                let tf = *section.counts.get(word)? as f64;
                let df = self.frequency[word] as f64;
                let idf = (1.0 + (count - df + 0.5) / (df + 0.5)).ln();
                Some(idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * section.words as f64 / self.mean)))
            };
            asked.iter().filter_map(of).sum()
        };
        let scored = self.sections.iter().map(|section| (score(section), &section.lines, section.bytes));
        self.within_budget(scored.collect())
    }

    pub(super) fn word_search(&self, question: &str) -> Vec<Lines> {
        let asked: BTreeSet<String> = words(question).collect();
        let scored = self.lines.iter().map(|(lines, words, bytes)| {
            (words.intersection(&asked).count() as f64, lines, *bytes + lines.path.len())
        });
        self.within_budget(scored.collect())
    }

    /// By score; what does not fit is left out.
    fn within_budget(&self, mut scored: Vec<(f64, &Lines, usize)>) -> Vec<Lines> {
        scored.retain(|(score, _, _)| *score > 0.0);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = self.budget * 4;
        let mut taken = Vec::new();
        for (_, lines, bytes) in scored {
            if bytes <= left {
                left -= bytes;
                taken.push(lines.clone());
            }
        }
        taken
    }
}

/// Where sections begin: at headings of documents, every few lines of code.
fn starts(path: &str, all: &[&str]) -> Vec<usize> {
    let is_underline = |line: &str| {
        let mark = line.chars().next().filter(char::is_ascii_punctuation);
        line.len() >= 3 && mark.is_some_and(|mark| line.trim_end().chars().all(|c| c == mark))
    };
    let is_start = |line: usize| {
        if path.ends_with(".md") {
            return all[line].starts_with('#');
        }
        let is_title = !all[line].trim().is_empty() && !is_underline(all[line]);
        is_title && all.get(line + 1).is_some_and(|under| is_underline(under))
    };
    let is_document = [".md", ".rst", ".txt"].iter().any(|extension| path.ends_with(extension));
    let mut starts: Vec<usize> = match is_document {
        true => (1..all.len()).filter(|line| is_start(*line)).collect(),
        false => (1..all.len()).filter(|line| line % WINDOW_LINES == 0).collect(),
    };
    starts.insert(0, 0);
    starts
}
