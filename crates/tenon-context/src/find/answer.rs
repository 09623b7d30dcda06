//! The answer to a question: passages by score, as many as the budget allows, and their text form.

use std::fmt::Write as _;

use serde::Serialize;

use super::FileTexts;
use super::cut::cell_text;
use super::segment::{BODY, Counts, FileEntry, HEADING, NAME, PassageEntry};
use super::text_format::{PassageKind, TextFormat};
use super::token_count::Tokenizer;
use super::words::Term;

/// A longer passage is shown in part: the first ones almost whole, the others enough to tell whether they help.
const SHOWN_BYTES: usize = 2400;
const SHORT_BYTES: usize = 1000;

/// How many passages come first.
const FIRST_PASSAGES: usize = 3;

/// A longer comment above a declaration is shown in part.
const COMMENT_BYTES: usize = 700;

/// A shorter passage costs as many tokens when passages are compared by score per token.
const LEAST_TOKENS: f32 = 200.0;

/// A passage with less than this share of the best score is noise.
const LEAST_SCORE: f32 = 0.15;

/// After so many passages in a row that do not fit, the answer is full.
const MISSES: usize = 20;

/// A passage that may be part of the answer.
pub(super) struct Candidate {
    pub score: f32,
    pub reason: String,
    pub entry: PassageEntry,
    pub file: FileEntry,
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

/// `name: slugify; text: title, url`.
pub(super) fn reason(terms: &[(Term, String)], counts: &[(usize, Counts)]) -> String {
    let mut parts = Vec::new();
    let best = |counts: Counts| match counts {
        counts if counts[NAME] > 0 => NAME,
        counts if counts[HEADING] > 0 => HEADING,
        counts if counts[BODY] > 0 => BODY,
        _ => 0,
    };
    for (field, name) in [(NAME, "name"), (HEADING, "heading"), (0, "title"), (BODY, "text")] {
        let words: Vec<&str> = counts
            .iter()
            .filter(|(_, counts)| best(*counts) == field)
            .map(|(number, _)| terms[*number].1.as_str())
            .collect();
        if !words.is_empty() {
            parts.push(format!("{name}: {}", words.join(", ")));
        }
    }
    parts.join("; ")
}

/// Takes passages by score per token until the budget is full.
pub(super) fn fill(
    candidates: Vec<Candidate>,
    matching: usize,
    notes: Vec<String>,
    budget: usize,
    tokenizer: Tokenizer,
    texts: &mut FileTexts<'_>,
) -> FindAnswer {
    let mut answer = FindAnswer { passages: Vec::new(), matching, tokens: 0, notes };
    let best = candidates.first().map_or(0.0, |first| first.score);
    let mut order: Vec<usize> =
        (0..candidates.len()).filter(|at| candidates[*at].score >= best * LEAST_SCORE).collect();
    let value = |at: usize| {
        let entry = &candidates[at].entry;
        let bytes = ((entry.end - entry.start) as usize).min(SHORT_BYTES);
        candidates[at].score / (bytes as f32 / 4.0).max(LEAST_TOKENS)
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
        let limit = if taken.len() < FIRST_PASSAGES { SHOWN_BYTES } else { SHORT_BYTES };
        let Some(passage) = passage(&candidates[at], limit, texts) else { continue };
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
        if misses >= MISSES || !texts.stale.is_empty() {
            break;
        }
    }
    taken.sort_by_key(|(at, _)| *at);
    answer.passages = taken.into_iter().map(|(_, passage)| passage).collect();
    answer.tokens = tokenizer.count(&answer.text());
    while answer.tokens > budget && !answer.is_bare() {
        if answer.passages.pop().is_none() {
            answer.notes.pop();
        }
        answer.tokens = tokenizer.count(&answer.text());
    }
    if answer.tokens > budget {
        // Not even the count fits.
        answer.matching = 0;
        answer.tokens = 0;
    }
    answer
}

impl FindAnswer {
    fn is_bare(&self) -> bool {
        self.passages.is_empty() && self.notes.is_empty()
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
        text: shown(cell.as_deref().unwrap_or(text), declaration, limit),
    })
}

/// A passage as it is shown: without blank lines around it, a long one in part.
fn shown(text: &str, declaration: usize, limit: usize) -> String {
    let blank = text.len() - text.trim_start_matches(['\n', '\r']).len();
    let (comment, code) = text.split_at_checked(declaration).unwrap_or(("", text));
    let mut shown = String::new();
    let code = if comment.len() > COMMENT_BYTES.min(limit / 2) {
        let (start, hidden) = first_lines(comment, COMMENT_BYTES.min(limit / 2));
        shown.push_str(start.trim_end());
        let _ = writeln!(shown, "\n… {hidden} lines");
        code
    } else {
        text
    };
    let code = if shown.is_empty() { &code[blank.min(code.len())..] } else { code };
    let (start, hidden) = first_lines(code, limit.saturating_sub(shown.len()));
    shown.push_str(start.trim_end());
    if hidden > 0 {
        let _ = write!(shown, "\n… {hidden} lines");
    }
    shown
}

/// The lines within a number of bytes, at least a part of the first, and how many lines are left.
fn first_lines(text: &str, bytes: usize) -> (&str, usize) {
    if text.len() <= bytes {
        return (text, 0);
    }
    let end = match text[..text.floor_char_boundary(bytes)].rfind('\n') {
        Some(end) => end + 1,
        None => text.floor_char_boundary(bytes),
    };
    (&text[..end], text[end..].trim_end().lines().count().max(1))
}
