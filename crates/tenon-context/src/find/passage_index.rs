//! The passages of a workspace: which files are read, when they are read again, and what is kept on disk.
//!
//! The caller names the files. A file with the same size and time is not read again, one with the same content is not
//! cut again. Same files, same answers, whatever the order of updates before: scores use only what all files hold.
//! While many files are read, questions are answered from those that are known so far.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, TryLockError};
use std::time::UNIX_EPOCH;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tenon_contract::clock::Clock;
use tenon_contract::regular_file;
use tenon_index::{FileClass, IndexedFile, SyntaxIndex, View};

use super::body_parts::BodyParts;
use super::cut::{CutPassage, cell_text, cut, title};
use super::passage_state::{LiveSegment, PassageState};
use super::passage_store;
use super::segment::{
    CODE, Counts, FIELDS, FileEntry, FileOutcome, HEADING, LEAD, Lengths, NAME, Occurrence, PROSE,
    PassageEntry, Segment, TITLE,
};
use super::text_format::{PassageKind, TextFormat, path_weight};
use super::words::{Term, for_each_term};

/// Of a larger file only the start is read.
const LARGE_BYTES: u64 = 4 * 1024 * 1024;
const START_BYTES: u64 = 256 * 1024;

/// Other texts are data above this size, of which the start is enough.
const DATA_BYTES: u64 = 512 * 1024;

/// A file may change twice within the resolution of time stamps. A younger one is compared by content next time.
const SETTLED_AFTER_NANOS: i64 = 2_000_000_000;

/// Code with a longer line is machine-written.
const MAX_LINE_BYTES: usize = 5000;

/// The files that are cut into one segment before segments are merged.
const BATCH_FILES: usize = 1000;

/// Passages of tests, and of generated and vendored files, count less.
const TEST_WEIGHT: f64 = 0.5;
const FOREIGN_WEIGHT: f64 = 0.3;
/// Large texts are logs and data, with many repetitions.
const LARGE_WEIGHT: f32 = 0.3;

/// See the module. Shared between threads.
pub struct PassageIndex {
    root: Utf8PathBuf,
    store: Option<Utf8PathBuf>,
    clock: Clock,
    pub(super) state: RwLock<PassageState>,
    updates: Mutex<UpdateState>,
    /// How far the running update is.
    read_files: AtomicUsize,
    files_to_read: AtomicUsize,
    is_closing: AtomicBool,
}

#[derive(Default)]
struct UpdateState {
    loaded: bool,
    unsaved: bool,
}

/// A file after it was read and cut.
struct ReadFile {
    entry: FileEntry,
    passages: Vec<PassageEntry>,
    lengths: Vec<Lengths>,
    /// The passage is counted from 0 in each file.
    occurrences: Vec<Occurrence>,
}

/// What an update found about a file.
enum Checked {
    Missing,
    Unchanged,
    /// Another time, but the same content.
    Touched(FileEntry),
    Changed(Box<ReadFile>),
}

/// What an index knows, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageTotals {
    pub files: usize,
    pub passages: usize,
    /// In memory.
    pub bytes: usize,
}

impl PassageIndex {
    /// Reads nothing yet. `store` is the file that keeps the index between processes.
    #[must_use]
    pub fn open(root: Utf8PathBuf, store: Option<Utf8PathBuf>, clock: Clock) -> Self {
        Self {
            root,
            store,
            clock,
            state: RwLock::default(),
            updates: Mutex::default(),
            read_files: AtomicUsize::new(0),
            files_to_read: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    #[must_use]
    pub fn totals(&self) -> PassageTotals {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        PassageTotals {
            files: state.by_path.len(),
            passages: state.segments.iter().map(LiveSegment::live_passages).sum(),
            bytes: state.segments.iter().map(|segment| segment.data.bytes()).sum(),
        }
    }

    /// Reads the store, if that has not been done.
    pub fn load(&self) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        self.load_store(&mut updates);
    }

    fn load_store(&self, updates: &mut UpdateState) {
        if std::mem::replace(&mut updates.loaded, true) {
            return;
        }
        if let Some(segment) = self.store.as_ref().and_then(|store| passage_store::read(store, &self.root)) {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            *state = PassageState::default();
            state.add(segment);
        }
    }

    /// Makes `files` the files of the workspace: absolute paths. `syntax` knows the declarations of source files.
    pub fn replace_files(&self, files: &[Utf8PathBuf], syntax: &SyntaxIndex) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        self.load_store(&mut updates);
        let mut paths: Vec<&str> = files.iter().filter_map(|path| self.relative(path)).collect();
        paths.sort_unstable();
        paths.dedup();
        let gone: Vec<Box<str>> = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state.by_path.keys().filter(|path| paths.binary_search(&&***path).is_err()).cloned().collect()
        };
        self.apply(&paths, &gone, syntax, &mut updates);
    }

    /// How many files of how many the running update has read.
    #[must_use]
    pub fn update_progress(&self) -> (usize, usize) {
        (self.read_files.load(Ordering::Relaxed), self.files_to_read.load(Ordering::Relaxed))
    }

    /// Ends a running update soon. What it has read so far stays valid.
    pub fn stop_updates(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// As [`PassageIndex::update_files`], unless another update is running.
    pub(super) fn try_update_files(&self, changed: &[Utf8PathBuf], syntax: &SyntaxIndex) -> bool {
        let mut updates = match self.updates.try_lock() {
            Ok(updates) => updates,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.update_locked(changed, syntax, &mut updates);
        true
    }

    /// Reads again what changed: files that changed, are new or were deleted, and deleted folders.
    pub fn update_files(&self, changed: &[Utf8PathBuf], syntax: &SyntaxIndex) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        self.update_locked(changed, syntax, &mut updates);
    }

    fn update_locked(&self, changed: &[Utf8PathBuf], syntax: &SyntaxIndex, updates: &mut UpdateState) {
        self.load_store(updates);
        let paths: Vec<&str> = changed.iter().filter_map(|path| self.relative(path)).collect();
        let gone: Vec<Box<str>> = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let missing = paths.iter().filter(|path| !self.root.join(path).exists());
            missing.flat_map(|folder| state.below(folder)).collect()
        };
        self.apply(&paths, &gone, syntax, updates);
    }

    /// Writes the store if the index changed since it was read or written.
    ///
    /// # Errors
    /// If the file cannot be written. The index stays usable.
    pub fn save(&self) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        if !updates.unsaved {
            return Ok(());
        }
        self.state.write().unwrap_or_else(PoisonError::into_inner).compact(true);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let empty = Segment::default();
        let whole = state.segments.first().map_or(&empty, |segment| &segment.data);
        passage_store::write(store, &self.root, whole)?;
        updates.unsaved = false;
        Ok(())
    }

    fn relative<'p>(&self, path: &'p Utf8Path) -> Option<&'p str> {
        let relative = if path.is_absolute() { path.strip_prefix(&self.root).ok()? } else { path };
        let is_inside = relative.components().all(|part| !matches!(part.as_str(), "." | ".."));
        (is_inside && !relative.as_str().is_empty()).then_some(relative.as_str())
    }

    fn apply(&self, paths: &[&str], gone: &[Box<str>], syntax: &SyntaxIndex, updates: &mut UpdateState) {
        let view = syntax.view();
        let now = i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX);
        // Documents are read faster than code, and answer more questions.
        let (documents, others): (Vec<&str>, Vec<&str>) =
            paths.iter().copied().partition(|path| is_document(path));
        let ordered: Vec<&str> = documents.into_iter().chain(others).collect();
        self.read_files.store(0, Ordering::Relaxed);
        self.files_to_read.store(ordered.len(), Ordering::Relaxed);
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for path in gone {
                updates.unsaved |= state.remove(path);
            }
        }
        for batch in ordered.chunks(BATCH_FILES) {
            if self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            let known: Vec<Option<FileEntry>> = {
                let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
                batch.iter().map(|path| state.entry(path).cloned()).collect()
            };
            let work: Vec<(&&str, Option<FileEntry>)> = batch.iter().zip(known).collect();
            let checked: Vec<Checked> = work
                .into_par_iter()
                .map(|(path, known)| self.check(path, known, now, syntax, &view))
                .collect();
            self.apply_batch(batch, checked, updates);
            self.read_files.fetch_add(batch.len(), Ordering::Relaxed);
        }
        self.state.write().unwrap_or_else(PoisonError::into_inner).compact(false);
    }

    fn apply_batch(&self, batch: &[&str], checked: Vec<Checked>, updates: &mut UpdateState) {
        let (mut removed, mut touched, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for (path, checked) in batch.iter().zip(checked) {
            match checked {
                Checked::Missing => removed.push(*path),
                Checked::Unchanged => {}
                Checked::Touched(entry) => touched.push(entry),
                Checked::Changed(file) => {
                    removed.push(path);
                    read.push(*file);
                }
            }
        }
        let segment = (!read.is_empty()).then(|| segment_of(read));
        if removed.is_empty() && touched.is_empty() && segment.is_none() {
            return;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for entry in touched {
            updates.unsaved |= state.touch(&entry);
        }
        for path in removed {
            updates.unsaved |= state.remove(path);
        }
        if let Some(segment) = segment {
            updates.unsaved = true;
            state.add(segment);
        }
    }

    /// Reads a file if it changed.
    fn check(
        &self,
        path: &str,
        known: Option<FileEntry>,
        now: i64,
        syntax: &SyntaxIndex,
        view: &View,
    ) -> Checked {
        let Some(format) = TextFormat::of_path(path) else { return Checked::Missing };
        let absolute = self.root.join(path);
        let Some((size, modified)) = stamp(&absolute) else { return Checked::Missing };
        if known
            .as_ref()
            .is_some_and(|known| known.settled && (known.size, known.modified) == (size, modified))
        {
            return Checked::Unchanged;
        }
        let limit = if format == TextFormat::Other { DATA_BYTES } else { LARGE_BYTES };
        let is_large = size > limit;
        let bytes = regular_file::read_start(&absolute, if is_large { START_BYTES } else { limit + 1 });
        let mut entry = FileEntry {
            path: path.into(),
            size,
            modified,
            settled: now.saturating_sub(modified) > SETTLED_AFTER_NANOS
                && stamp(&absolute) == Some((size, modified)),
            hash: [0; 16],
            weight: 1.0,
            outcome: FileOutcome::Whole,
            first_passage: 0,
            passage_count: 0,
        };
        let empty = |mut entry: FileEntry, outcome: FileOutcome| {
            entry.outcome = outcome;
            Checked::Changed(Box::new(ReadFile {
                entry,
                passages: Vec::new(),
                lengths: Vec::new(),
                occurrences: Vec::new(),
            }))
        };
        let Ok(bytes) = bytes else { return empty(entry, FileOutcome::Unreadable) };
        entry.hash.copy_from_slice(&Sha256::digest(&bytes)[..16]);
        if let Some(known) = known.filter(|known| (known.size, known.hash) == (size, entry.hash)) {
            let is_same = (known.modified, known.settled) == (modified, entry.settled);
            return if is_same { Checked::Unchanged } else { Checked::Touched(entry) };
        }
        if is_binary(&bytes) {
            return empty(entry, FileOutcome::Binary);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = if is_large { &text[..text.rfind('\n').map_or(text.len(), |end| end + 1)] } else { &text };
        if format.kind() != PassageKind::Docs && text.split('\n').any(|line| line.len() > MAX_LINE_BYTES) {
            return empty(entry, FileOutcome::Minified);
        }
        if is_large {
            entry.outcome = FileOutcome::Start;
        }
        let parsed;
        let symbols = match format {
            TextFormat::Code(_) => match view.file(path).filter(|file| file.content_hash() == entry.hash) {
                Some(file) => Some(file),
                None => {
                    parsed = syntax.parse(Utf8Path::new(path), text);
                    parsed.as_ref()
                }
            },
            _ => None,
        };
        entry.weight = weight(path, symbols);
        if is_large {
            entry.weight *= LARGE_WEIGHT;
        }
        Checked::Changed(Box::new(read_file(entry, format, text, symbols)))
    }
}

fn is_document(path: &str) -> bool {
    TextFormat::of_path(path).is_some_and(|format| format.kind() == PassageKind::Docs)
}

/// How much the passages of a file count.
fn weight(path: &str, symbols: Option<&IndexedFile>) -> f32 {
    let class = symbols.map_or_else(|| FileClass::of_path(path), IndexedFile::class);
    let class = match class {
        FileClass::Source => 1.0,
        FileClass::Test => TEST_WEIGHT,
        FileClass::Generated | FileClass::Vendored => FOREIGN_WEIGHT,
    };
    (class * path_weight(path)) as f32
}

/// The bytes of a file that its passages are part of.
pub(super) fn read_limit(file: &FileEntry) -> u64 {
    if file.outcome == FileOutcome::Start { START_BYTES } else { LARGE_BYTES + 1 }
}

/// Size and time of a regular file. A link is not followed.
pub(super) fn stamp(path: &Utf8Path) -> Option<(u64, i64)> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let modified = match metadata.modified().ok()?.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    };
    Some((metadata.len(), modified))
}

fn is_binary(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(8192)];
    start.contains(&0)
}

fn read_file(
    mut entry: FileEntry,
    format: TextFormat,
    text: &str,
    symbols: Option<&IndexedFile>,
) -> ReadFile {
    let cut = cut(format, text, symbols);
    entry.passage_count = cut.len() as u32;
    let title = format!(
        "{} {}",
        title(format, text),
        entry.path.rsplit_once('.').map_or(&*entry.path, |(stem, _)| stem)
    );
    let mut read = ReadFile {
        entry,
        passages: Vec::with_capacity(cut.len()),
        lengths: Vec::new(),
        occurrences: Vec::new(),
    };
    for (number, passage) in cut.into_iter().enumerate() {
        let body = &text[passage.bytes.clone()];
        let decoded = if format == TextFormat::Notebook { cell_text(body) } else { None };
        let (terms, lengths) = passage_terms(&title, &passage, format, decoded.as_deref().unwrap_or(body));
        read.occurrences.extend(terms.into_iter().map(|(term, counts)| Occurrence {
            term,
            passage: number as u32,
            counts,
        }));
        read.passages.push(PassageEntry {
            file: 0,
            kind: format.kind(),
            is_test: passage.is_test,
            declares: passage.declares,
            start: passage.bytes.start as u32,
            end: passage.bytes.end as u32,
            first_line: passage.lines.start,
            last_line: passage.lines.end,
            declaration: passage.declaration as u32,
            place: passage.place.into(),
        });
        read.lengths.push(lengths);
    }
    read
}

/// The terms of a passage with their counts, and the lengths of the fields.
pub(super) fn passage_terms(
    title: &str,
    passage: &CutPassage,
    format: TextFormat,
    body: &str,
) -> (BTreeMap<Term, Counts>, Lengths) {
    let mut terms: BTreeMap<Term, Counts> = BTreeMap::new();
    let mut lengths = [0_u16; FIELDS];
    let parts = BodyParts::of(format, body);
    let texts = [
        (TITLE, title),
        (HEADING, passage.heading.as_str()),
        (NAME, passage.name.as_str()),
        (LEAD, parts.lead()),
        (PROSE, &parts.prose),
        (CODE, &parts.code),
    ];
    for (field, text) in texts {
        for_each_term(text, |found| {
            let count = &mut terms.entry(found.term).or_default()[field];
            *count = count.saturating_add(1);
            lengths[field] = lengths[field].saturating_add(u16::from(!found.is_whole));
        });
    }
    (terms, lengths)
}

fn segment_of(read: Vec<ReadFile>) -> Segment {
    let (mut files, mut passages, mut lengths, mut occurrences) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for file in read {
        let first_passage = passages.len() as u32;
        let number = files.len() as u32;
        occurrences.extend(
            file.occurrences
                .into_iter()
                .map(|one| Occurrence { passage: one.passage + first_passage, ..one }),
        );
        passages.extend(file.passages.into_iter().map(|passage| PassageEntry { file: number, ..passage }));
        lengths.extend(file.lengths);
        files.push(FileEntry { first_passage, ..file.entry });
    }
    Segment::new(files, passages, lengths, occurrences)
}
