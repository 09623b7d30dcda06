//! Texts that are not files: tasks and notes, ranked together with the passages of files.

use super::cut::CutPassage;
use super::passage_index::passage_terms;
use super::passage_state::LiveSegment;
use super::segment::{FileEntry, FileOutcome, Occurrence, PassageEntry, Segment};
use super::text_format::{PassageKind, TextFormat};

/// A task or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraText {
    pub kind: PassageKind,
    /// What answers name it by: `TASK-003`.
    pub id: String,
    pub title: String,
    pub text: String,
}

/// Tasks and notes in the form that questions need. Built once, used by many.
#[derive(Default)]
pub struct ExtraTexts {
    texts: Vec<ExtraText>,
    segment: Option<LiveSegment>,
}

impl ExtraTexts {
    /// Of several texts with one id the first counts.
    #[must_use]
    pub fn new(mut texts: Vec<ExtraText>) -> Self {
        texts.sort_by(|a, b| a.id.cmp(&b.id));
        texts.dedup_by(|a, b| a.id == b.id);
        let (mut files, mut passages, mut lengths, mut occurrences) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, text) in texts.iter().enumerate() {
            let number = number as u32;
            let cut = CutPassage {
                bytes: 0..text.text.len(),
                lines: 0..0,
                place: text.title.clone(),
                name: text.title.clone(),
                heading: String::new(),
                declares: None,
                is_test: false,
                declaration: 0,
            };
            let (terms, length) = passage_terms(&text.id, &cut, TextFormat::Plain, &text.text);
            occurrences.extend(terms.into_iter().map(|(term, counts)| Occurrence {
                term,
                passage: number,
                counts,
            }));
            lengths.push(length);
            passages.push(PassageEntry {
                file: number,
                kind: text.kind,
                is_test: false,
                declares: None,
                start: 0,
                end: text.text.len() as u32,
                first_line: 0,
                last_line: 0,
                declaration: 0,
                place: cut.place.into(),
            });
            files.push(FileEntry {
                path: text.id.as_str().into(),
                size: 0,
                modified: 0,
                settled: true,
                hash: [0; 16],
                weight: 1.0,
                outcome: FileOutcome::Whole,
                first_passage: number,
                passage_count: 1,
            });
        }
        let segment = (!texts.is_empty())
            .then(|| LiveSegment::new(Segment::new(files, passages, lengths, occurrences)));
        Self { texts, segment }
    }

    pub(super) fn segment(&self) -> Option<&LiveSegment> {
        self.segment.as_ref()
    }

    pub(super) fn text(&self, id: &str) -> Option<&str> {
        let at = self.texts.binary_search_by(|text| text.id.as_str().cmp(id)).ok()?;
        Some(&self.texts[at].text)
    }
}
