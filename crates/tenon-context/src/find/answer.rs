//! The answer to a question: passages by score, as many as the budget allows, and their text form.

use std::fmt::Write as _;

use serde::Serialize;

use super::FileTexts;
use super::closeness::Closeness;
use super::cut::cell_text;
use super::excerpt::excerpt;
use super::rank::{QueryTerm, TermMatch};
use super::segment::{CODE, Counts, FileEntry, HEADING, LEAD, NAME, PROSE, PassageEntry, TITLE};
use super::text_format::{PassageKind, TextFormat};
use super::token_count::Tokenizer;

/// A passage shows at least this much.
const LEAST_BYTES: f32 = 240.0;

/// A passage shows at most this much, however large the budget is.
const LONG_BYTES: usize = 6000;

/// What the line above a passage costs, about.
const HEADER_TOKENS: f32 = 40.0;

/// A shorter passage costs as many tokens when passages are compared by score per token.
const LEAST_TOKENS: f32 = 300.0;

/// A passage with less than this share of the best score is noise.
const LEAST_SCORE: f32 = 0.1;

/// The best passages are compared by how close the words of the question are in them, and how much that counts.
const COMPARED: usize = 10;
const CLOSENESS: f32 = 0.5;

/// After so many passages in a row that do not fit, the answer is full.
const MISSES: usize = 8;

/// A passage that may be part of the answer.
pub(super) struct Candidate {
    pub score: f32,
    pub reason: String,
    pub entry: PassageEntry,
    pub file: FileEntry,
}

/// What an answer is made of.
pub(super) struct FoundCandidates {
    /// By score.
    pub candidates: Vec<Candidate>,
    pub closeness: Closeness,
    pub matching: usize,
    pub notes: Vec<String>,
}

/// A passage of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passage {
    /// Relative to the root; the id of a task or note.
    pub path: String,
    /// Counted from 1; 0 for tasks and notes.
    pub first_line: u32,
    pub last_line: u32,
    pub kind: PassageKind,
    /// The heading path, or kind and name of a symbol.
    pub place: String,
    pub score: f32,
    /// Which words of the query are where.
    pub reason: String,
    pub text: String,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FindAnswer {
    /// By score.
    pub passages: Vec<Passage>,
    /// How many passages have a word of the query.
    pub matching: usize,
    /// Tokens of the text form.
    pub tokens: usize,
    pub notes: Vec<String>,
}

impl Passage {
    /// `docs/a.md:3-9 Title > Part [12.3: name: part; text: word]`, then the text.
    fn block(&self) -> String {
        let mut block = self.address();
        if !self.place.is_empty() {
            let _ = write!(block, " {}", self.place);
        }
        let _ = writeln!(block, " [{:.1}: {}]", self.score, self.reason);
        block.push_str(&self.text);
        block.push('\n');
        block
    }

    /// `docs/a.md:3-9`, or the id of a task or note.
    #[must_use]
    pub fn address(&self) -> String {
        match (self.first_line, self.last_line) {
            (0, _) => self.path.clone(),
            (first, last) if first == last => format!("{}:{first}", self.path),
            (first, last) => format!("{}:{first}-{last}", self.path),
        }
    }
}

impl FindAnswer {
    pub(super) fn empty(notes: Vec<String>) -> Self {
        Self { notes, ..Self::default() }
    }

    /// The text that agents read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut blocks: Vec<String> = self.passages.iter().map(Passage::block).collect();
        let mut end = String::new();
        if self.matching > self.passages.len() {
            let _ = writeln!(end, "{} of {} matching passages", self.passages.len(), self.matching);
        }
        for note in &self.notes {
            let _ = writeln!(end, "note: {note}");
        }
        if !end.is_empty() {
            blocks.push(end);
        }
        let mut text = blocks.join("\n");
        text.truncate(text.trim_end().len());
        text
    }
}

/// `name: slugify; lead: title; text: remove (delete)`: the words in the passage, those of the question in brackets if
/// they differ.
pub(super) fn reason(terms: &[QueryTerm], matches: &[TermMatch]) -> String {
    let mut parts = Vec::new();
    let best = |counts: Counts| {
        let places = [NAME, HEADING, LEAD, PROSE, CODE, TITLE];
        places.into_iter().find(|field| counts[*field] > 0)
    };
    let places: [(&str, &[usize]); 5] = [
        ("name", &[NAME]),
        ("heading", &[HEADING]),
        ("title", &[TITLE]),
        ("lead", &[LEAD]),
        ("text", &[PROSE, CODE]),
    ];
    for (name, fields) in places {
        let here = matches.iter().filter(|one| best(one.counts).is_some_and(|best| fields.contains(&best)));
        let words: Vec<String> = here
            .map(|one| match (one.synonym, &terms[one.number].word) {
                (Some(synonym), word) => format!("{synonym} ({word})"),
                (None, word) => word.clone(),
            })
            .collect();
        if !words.is_empty() {
            parts.push(format!("{name}: {}", words.join(", ")));
        }
    }
    parts.join("; ")
}

/// The bytes that a passage may show: a share of the budget, within limits. The best one shows most, so that a small
/// budget still has room for several.
fn shown_bytes(budget: usize, place: usize) -> usize {
    let (share, most) = match place {
        0 => (0.25, 1600.0),
        1 | 2 => (0.12, 1000.0),
        _ => (0.025, 400.0),
    };
    (budget as f32 * 4.0 * share).clamp(LEAST_BYTES, most) as usize
}

/// Raises the scores of the best passages by how close the words of the question are in them.
fn compare_closely(candidates: &mut [Candidate], closeness: &Closeness, texts: &mut FileTexts<'_>) {
    let best = candidates.len().min(COMPARED);
    for candidate in &mut candidates[..best] {
        let place = candidate.entry.place.clone();
        if let Some(text) = texts.text(candidate) {
            candidate.score *= 1.0 + CLOSENESS * closeness.of(&place, text);
        }
    }
    candidates[..best].sort_by(|a, b| b.score.total_cmp(&a.score));
}

/// Takes passages by score per token until the budget is full. What is left then goes to the best ones.
pub(super) fn fill(
    found: FoundCandidates,
    budget: usize,
    tokenizer: Tokenizer,
    texts: &mut FileTexts<'_>,
) -> FindAnswer {
    let FoundCandidates { mut candidates, closeness, matching, notes } = found;
    compare_closely(&mut candidates, &closeness, texts);
    let mut answer = FindAnswer { passages: Vec::new(), matching, tokens: 0, notes };
    let best = candidates.first().map_or(0.0, |first| first.score);
    let mut order: Vec<usize> =
        (0..candidates.len()).filter(|at| candidates[*at].score >= best * LEAST_SCORE).collect();
    let value = |at: usize| {
        let entry = &candidates[at].entry;
        let bytes = ((entry.end - entry.start) as usize).min(shown_bytes(budget, at));
        candidates[at].score / (bytes as f32 / 4.0 + HEADER_TOKENS).max(LEAST_TOKENS)
    };
    // The best one is always first.
    order.sort_by(|a, b| {
        (*b == 0).cmp(&(*a == 0)).then_with(|| value(*b).total_cmp(&value(*a))).then_with(|| a.cmp(b))
    });
    // The last lines are counted with the whole text; they have to fit as well.
    let end = tokenizer.count(&answer.text()) + 12;
    let (mut used, mut misses) = (end, 0);
    let mut taken: Vec<(usize, Passage)> = Vec::new();
    for at in order {
        let Some(passage) = passage(&candidates[at], shown_bytes(budget, at), texts) else { continue };
        if taken.iter().any(|(_, other)| other.text == passage.text && !passage.text.is_empty()) {
            continue;
        }
        let tokens = tokenizer.count(&passage.block()) + 1;
        if used + tokens <= budget {
            used += tokens;
            taken.push((at, passage));
            misses = 0;
        } else {
            if taken.is_empty()
                && let Some(short) = shortened(passage, budget.saturating_sub(used), tokenizer)
            {
                used += tokenizer.count(&short.block());
                taken.push((at, short));
            }
            misses += 1;
        }
        if misses >= MISSES || texts.is_given_up() {
            break;
        }
    }
    taken.sort_by_key(|(at, _)| *at);
    for (at, passage) in &mut taken {
        if let Some(longer) = self::passage(&candidates[*at], LONG_BYTES, texts) {
            let more = tokenizer.count(&longer.block()).saturating_sub(tokenizer.count(&passage.block())) + 1;
            if used + more <= budget {
                used += more;
                *passage = longer;
            }
        }
    }
    answer.passages = taken.into_iter().map(|(_, passage)| passage).collect();
    answer.shrink(budget, tokenizer);
    answer
}

impl FindAnswer {
    /// Adds what the reader has to know. Passages give way to it.
    pub fn add_note(&mut self, note: &str, budget: usize, tokenizer: Tokenizer) {
        self.notes.push(note.to_owned());
        self.shrink(budget, tokenizer);
    }

    /// Removes passages, then notes, until the text fits.
    fn shrink(&mut self, budget: usize, tokenizer: Tokenizer) {
        self.tokens = tokenizer.count(&self.text());
        while self.tokens > budget && (self.passages.pop().is_some() || self.notes.pop().is_some()) {
            self.tokens = tokenizer.count(&self.text());
        }
        if self.tokens > budget {
            // Not even the count fits.
            (self.matching, self.tokens) = (0, 0);
        }
    }
}

/// A passage with the lines that fit, at least its first line.
fn shortened(mut passage: Passage, budget: usize, tokenizer: Tokenizer) -> Option<Passage> {
    let lines: Vec<String> = passage.text.lines().map(str::to_owned).collect();
    for kept in (0..lines.len()).rev() {
        passage.text = lines[..kept].join("\n");
        passage.text.push_str(if kept > 0 { "\n…" } else { "…" });
        if tokenizer.count(&passage.block()) < budget {
            return Some(passage);
        }
    }
    None
}

fn passage(candidate: &Candidate, limit: usize, texts: &mut FileTexts<'_>) -> Option<Passage> {
    let Candidate { score, reason, entry, file } = candidate;
    let terms = texts.terms;
    let text = texts.text(candidate)?;
    let is_notebook =
        entry.kind == PassageKind::Docs && TextFormat::of_path(&file.path) == Some(TextFormat::Notebook);
    let cell = if is_notebook { cell_text(text) } else { None };
    let declaration = (entry.declaration.saturating_sub(entry.start)) as usize;
    Some(Passage {
        path: file.path.to_string(),
        first_line: entry.first_line,
        last_line: entry.last_line,
        kind: entry.kind,
        place: entry.place.to_string(),
        score: *score,
        reason: reason.clone(),
        text: excerpt(cell.as_deref().unwrap_or(text), declaration, limit, terms),
    })
}
