//! A part of the passage index: files, their passages, and which terms occur in which passage.
//!
//! Postings are bytes: for each term the passages in order, as the difference to the one before, then how often the term
//! occurs: one byte if it occurs in prose alone, else a byte that names the fields, and one for each of them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tenon_index::DeclarationKind;

use super::words::Term;

/// Fields of a passage: title and path of the file, headings or containers above, own name, the three
/// [parts](super::body_parts::BodyParts) of the text.
pub(crate) const FIELDS: usize = 6;
pub(crate) const TITLE: usize = 0;
pub(crate) const HEADING: usize = 1;
pub(crate) const NAME: usize = 2;
pub(crate) const LEAD: usize = 3;
pub(crate) const PROSE: usize = 4;
pub(crate) const CODE: usize = 5;

/// How often a term occurs in each field, at most 255.
pub(crate) type Counts = [u8; FIELDS];

/// Marks the byte that names the fields.
const OTHER_FIELDS: u8 = 0x80;

/// What is known about a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Relative to the root.
    pub path: Box<str>,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    /// Size and time are enough to see a change.
    pub settled: bool,
    pub hash: [u8; 16],
    /// How much its passages count.
    pub weight: f32,
    pub outcome: FileOutcome,
    pub first_passage: u32,
    pub passage_count: u32,
}

/// How far a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileOutcome {
    Whole,
    /// Only the start of a large file.
    Start,
    /// Machine-written code in very long lines.
    Minified,
    Binary,
    Unreadable,
}

/// A passage of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PassageEntry {
    pub file: u32,
    pub kind: super::text_format::PassageKind,
    pub is_test: bool,
    /// What code declares; `None` for everything else.
    pub declares: Option<DeclarationKind>,
    pub start: u32,
    pub end: u32,
    pub first_line: u32,
    pub last_line: u32,
    /// Where the declaration begins, after the comment above it.
    pub declaration: u32,
    pub place: Box<str>,
}

/// Terms in each field of a passage.
pub(crate) type Lengths = [u16; FIELDS];

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Segment {
    pub files: Vec<FileEntry>,
    pub passages: Vec<PassageEntry>,
    /// In the order of `passages`.
    pub lengths: Vec<Lengths>,
    /// Sorted.
    pub terms: Vec<Term>,
    /// Where the postings of each term end.
    pub ends: Vec<u32>,
    pub postings: Vec<u8>,
}

/// One term of one passage, while a segment is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Occurrence {
    pub term: Term,
    pub passage: u32,
    pub counts: Counts,
}

impl Segment {
    pub(crate) fn new(
        files: Vec<FileEntry>,
        passages: Vec<PassageEntry>,
        lengths: Vec<Lengths>,
        mut occurrences: Vec<Occurrence>,
    ) -> Self {
        occurrences.sort_unstable();
        let mut segment = Self { files, passages, lengths, ..Self::default() };
        let mut last = (None, 0);
        for occurrence in occurrences {
            if last.0 != Some(occurrence.term) {
                segment.begin_term(occurrence.term);
                last = (Some(occurrence.term), 0);
            }
            segment.add_posting(occurrence.passage - last.1, occurrence.counts);
            last.1 = occurrence.passage;
        }
        segment.ends.extend((!segment.terms.is_empty()).then_some(segment.postings.len() as u32));
        segment
    }

    fn begin_term(&mut self, term: Term) {
        if !self.terms.is_empty() {
            self.ends.push(self.postings.len() as u32);
        }
        self.terms.push(term);
    }

    fn add_posting(&mut self, distance: u32, counts: Counts) {
        let mut rest = distance;
        while rest >= 0x80 {
            self.postings.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.postings.push(rest as u8);
        let fields = (0..FIELDS).filter(|field| counts[*field] > 0).fold(0, |mask, field| mask | 1 << field);
        if fields == 1 << PROSE && counts[PROSE] < OTHER_FIELDS {
            self.postings.push(counts[PROSE]);
        } else {
            self.postings.push(OTHER_FIELDS | fields);
            self.postings.extend(counts.into_iter().filter(|count| *count > 0));
        }
    }

    /// The passages with a term, in order.
    pub(crate) fn postings(&self, term: Term) -> Postings<'_> {
        let bytes = self.terms.binary_search(&term).map_or(&[][..], |at| self.posting_bytes(at));
        Postings { bytes, passage: 0 }
    }

    fn posting_bytes(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        self.postings.get(start..self.ends[at] as usize).unwrap_or_default()
    }

    pub(crate) fn passages_of(&self, file: usize) -> Range<usize> {
        let entry = &self.files[file];
        entry.first_passage as usize..(entry.first_passage + entry.passage_count) as usize
    }

    /// One segment with the files of several that are still valid.
    pub(crate) fn merge(parts: &[(&Self, &dyn Fn(usize) -> bool)]) -> Self {
        let mut merged = Self::default();
        // For each part, the new number of each passage.
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        for (part, is_live) in parts {
            let mut renumbered = vec![u32::MAX; part.passages.len()];
            for (index, file) in part.files.iter().enumerate().filter(|(index, _)| is_live(*index)) {
                let first_passage = merged.passages.len() as u32;
                for at in part.passages_of(index) {
                    renumbered[at] = merged.passages.len() as u32;
                    merged.lengths.push(part.lengths[at]);
                    merged
                        .passages
                        .push(PassageEntry { file: merged.files.len() as u32, ..part.passages[at].clone() });
                }
                merged.files.push(FileEntry { first_passage, ..file.clone() });
            }
            numbers.push(renumbered);
        }
        let mut terms: Vec<(Term, u32, u32)> = Vec::new();
        for (number, (part, _)) in parts.iter().enumerate() {
            terms.extend(part.terms.iter().enumerate().map(|(at, term)| (*term, number as u32, at as u32)));
        }
        terms.sort_unstable();
        let mut at = 0;
        while at < terms.len() {
            let term = terms[at].0;
            let same = terms[at..].iter().take_while(|entry| entry.0 == term).count();
            let mut last = 0;
            let mut is_new = true;
            for (_, number, place) in &terms[at..at + same] {
                let part = parts[*number as usize].0;
                let postings = Postings { bytes: part.posting_bytes(*place as usize), passage: 0 };
                for (passage, counts) in postings {
                    let renumbered =
                        numbers[*number as usize].get(passage as usize).copied().unwrap_or(u32::MAX);
                    if renumbered != u32::MAX {
                        if is_new {
                            merged.begin_term(term);
                            is_new = false;
                        }
                        merged.add_posting(renumbered - last, counts);
                        last = renumbered;
                    }
                }
            }
            at += same;
        }
        merged.ends.extend((!merged.terms.is_empty()).then_some(merged.postings.len() as u32));
        merged
    }

    /// Whether all numbers are in range. A store on disk may hold anything.
    pub(crate) fn is_valid(&self) -> bool {
        let passages = self.passages.len();
        let mut first = 0;
        let files = self.files.iter().all(|file| {
            let fits = file.first_passage as usize == first && file.weight.is_finite();
            first += file.passage_count as usize;
            fits
        });
        files
            && first == passages
            && self.lengths.len() == passages
            && self
                .passages
                .iter()
                .all(|passage| (passage.file as usize) < self.files.len() && passage.start <= passage.end)
            && self.terms.len() == self.ends.len()
            && self.terms.is_sorted_by(|a, b| a < b)
            && self.ends.is_sorted()
            && self.ends.last().map_or(0, |end| *end as usize) == self.postings.len()
    }

    /// Bytes in memory, without the overhead of allocations.
    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self.files.iter().map(|file| file.path.len()).sum::<usize>()
            + self.passages.iter().map(|passage| passage.place.len()).sum::<usize>();
        self.files.len() * size_of::<FileEntry>()
            + self.passages.len() * (size_of::<PassageEntry>() + size_of::<Lengths>())
            + self.terms.len() * 12
            + self.postings.len()
            + texts
    }
}

/// Passages with a term, and how often it occurs. Ends early on damaged bytes.
pub(crate) struct Postings<'s> {
    bytes: &'s [u8],
    passage: u32,
}

impl Iterator for Postings<'_> {
    type Item = (u32, Counts);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut distance, mut shift) = (0_u32, 0);
        loop {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            distance |= u32::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        self.passage = self.passage.checked_add(distance)?;
        let (count, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let mut counts = [0; FIELDS];
        if *count < OTHER_FIELDS {
            counts[PROSE] = *count;
            return Some((self.passage, counts));
        }
        for field in (0..FIELDS).filter(|field| *count & 1 << field != 0) {
            let (count, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            counts[field] = *count;
        }
        Some((self.passage, counts))
    }
}
