//! The segments of the passage index, and which of their files are still valid.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::segment::{FIELDS, FileEntry, FileOutcome, Segment};

/// More small segments are merged.
const MAX_SEGMENTS: usize = 12;

/// All segments and where files are in them.
#[derive(Default)]
pub(super) struct PassageState {
    pub segments: Vec<LiveSegment>,
    pub by_path: BTreeMap<Box<str>, (u32, u32)>,
}

/// A segment with the files that are no longer valid.
pub(super) struct LiveSegment {
    pub data: Segment,
    /// By file.
    pub dead: Vec<bool>,
    /// By passage.
    pub dead_at: Vec<bool>,
    dead_passages: usize,
    /// Of valid passages, by field: the words, and how many have any.
    pub field_words: [u64; FIELDS],
    pub filled_fields: [u64; FIELDS],
    /// Files that were not read as a whole, although they are text.
    pub partly_read: Vec<u32>,
}

impl LiveSegment {
    pub(super) fn new(data: Segment) -> Self {
        let is_partly =
            |file: &FileEntry| matches!(file.outcome, FileOutcome::Start | FileOutcome::Unreadable);
        let files = data.files.iter().enumerate().filter(|(_, file)| is_partly(file));
        let partly_read = files.map(|(number, _)| number as u32).collect();
        let mut segment = Self {
            dead: vec![false; data.files.len()],
            dead_at: vec![false; data.passages.len()],
            dead_passages: 0,
            field_words: [0; FIELDS],
            filled_fields: [0; FIELDS],
            partly_read,
            data,
        };
        for lengths in &segment.data.lengths {
            for (field, length) in lengths.iter().enumerate() {
                segment.field_words[field] += u64::from(*length);
                segment.filled_fields[field] += u64::from(*length > 0);
            }
        }
        segment
    }

    pub(super) fn live_passages(&self) -> usize {
        self.data.passages.len() - self.dead_passages
    }

    fn bury(&mut self, file: usize) {
        if std::mem::replace(&mut self.dead[file], true) {
            return;
        }
        let passages = self.data.passages_of(file);
        self.dead_passages += passages.len();
        for lengths in &self.data.lengths[passages.clone()] {
            for (field, length) in lengths.iter().enumerate() {
                self.field_words[field] -= u64::from(*length);
                self.filled_fields[field] -= u64::from(*length > 0);
            }
        }
        self.dead_at[passages].fill(true);
    }
}

impl PassageState {
    pub(super) fn entry(&self, path: &str) -> Option<&FileEntry> {
        let (segment, file) = self.by_path.get(path)?;
        Some(&self.segments[*segment as usize].data.files[*file as usize])
    }

    pub(super) fn below(&self, folder: &str) -> Vec<Box<str>> {
        let prefix = format!("{folder}/");
        let from = self.by_path.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        from.map(|(path, _)| path).take_while(|path| path.starts_with(&prefix)).cloned().collect()
    }

    /// Whether it was known.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        let known = self.by_path.remove(path);
        if let Some((segment, file)) = known {
            self.segments[segment as usize].bury(file as usize);
        }
        known.is_some()
    }

    /// Notes the time of a file whose content is the same. Whether it was known.
    pub(super) fn touch(&mut self, touched: &FileEntry) -> bool {
        let known = self.by_path.get(&touched.path);
        if let Some((segment, file)) = known {
            let entry = &mut self.segments[*segment as usize].data.files[*file as usize];
            (entry.modified, entry.settled) = (touched.modified, touched.settled);
        }
        known.is_some()
    }

    pub(super) fn add(&mut self, segment: Segment) {
        let number = self.segments.len() as u32;
        for (file, entry) in segment.files.iter().enumerate() {
            self.by_path.insert(entry.path.clone(), (number, file as u32));
        }
        self.segments.push(LiveSegment::new(segment));
    }

    /// Merges segments if there are many, or all of them.
    pub(super) fn compact(&mut self, all: bool) {
        let total: usize = self.segments.iter().map(|segment| segment.data.passages.len()).sum();
        let dead: usize = self.segments.iter().map(|segment| segment.dead_passages).sum();
        let first = self.segments.first().map_or(0, |segment| segment.data.passages.len());
        let rewrite = all && (self.segments.len() > 1 || dead > 0)
            || dead * 3 > total.max(3000)
            || first * 2 < total && self.segments.len() > 1;
        if !rewrite && self.segments.len() <= MAX_SEGMENTS {
            return;
        }
        // Small segments only, unless much of the large one changed.
        let keep = usize::from(!rewrite);
        let rest = self.segments.split_off(keep.min(self.segments.len()));
        let live: Vec<Box<dyn Fn(usize) -> bool + '_>> = rest
            .iter()
            .map(|segment| Box::new(|file: usize| !segment.dead[file]) as Box<dyn Fn(usize) -> bool>)
            .collect();
        let parts: Vec<(&Segment, &dyn Fn(usize) -> bool)> =
            rest.iter().zip(&live).map(|(segment, live)| (&segment.data, &**live)).collect();
        let merged = Segment::merge(&parts);
        self.add(merged);
    }
}
