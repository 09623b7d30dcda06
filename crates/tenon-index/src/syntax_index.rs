//! The index of one workspace: which files it has, and when they are read again.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use tenon_contract::clock::Clock;

use crate::extract::Extractor;
use crate::file_reader::{self, FileRead, content_hash};
use crate::indexed_file::{ContentHash, FileContent};
use crate::store;
use crate::view::{IndexState, View};
use crate::{FileClass, FileStamp, IndexedFile, ParseOutcome, SourceLanguage};

/// What an index needs to know.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// The folder of the workspace. Paths in answers are relative to it.
    pub root: Utf8PathBuf,
    /// The file that keeps the index between processes.
    pub store: Option<Utf8PathBuf>,
    pub clock: Clock,
}

/// Declarations of all source files of a workspace. Shared between threads; questions do not wait for updates.
#[derive(Debug)]
pub struct SyntaxIndex {
    pub(crate) root: Arc<Utf8Path>,
    store: Option<Utf8PathBuf>,
    clock: Clock,
    /// Replaced as a whole, so that a [`View`] stays what it is.
    state: RwLock<Arc<IndexState>>,
    /// One update at a time.
    updates: Mutex<UpdateState>,
    stored: Mutex<StoredFiles>,
    next_number: AtomicU32,
    parsed: AtomicU64,
    unread: AtomicBool,
    /// Held while a question reads the few files that it needs: no other file is parsed meanwhile.
    pub(crate) urgent: RwLock<()>,
}

#[derive(Debug, Default)]
struct UpdateState {
    /// Differs from the store.
    unsaved: bool,
}

#[derive(Debug, Default)]
struct StoredFiles {
    /// The store was read.
    loaded: bool,
    /// What it holds, until the files of the workspace are known.
    files: Option<Arc<IndexState>>,
}

/// A file may change twice within the resolution of time stamps. A younger one is compared by content next time.
const SETTLED_AFTER_NANOS: i64 = 2_000_000_000;

impl SyntaxIndex {
    /// Reads nothing yet.
    #[must_use]
    pub fn open(options: IndexOptions) -> Self {
        Self {
            root: options.root.into_boxed_path().into(),
            store: options.store,
            clock: options.clock,
            state: RwLock::default(),
            updates: Mutex::default(),
            stored: Mutex::default(),
            next_number: AtomicU32::new(0),
            parsed: AtomicU64::new(0),
            unread: AtomicBool::new(true),
            urgent: RwLock::default(),
        }
    }

    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// One state of the index.
    #[must_use]
    pub fn view(&self) -> View {
        let state = Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner));
        View { root: Arc::clone(&self.root), state }
    }

    /// Reads the store, if that has not been done. Updates do it as well; this is for callers that have to wait meanwhile.
    pub fn load(&self) {
        drop(self.load_store());
    }

    /// Whether all files have to be parsed, since none were stored. `false` once they are.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Makes `files` the files of the workspace: absolute paths; others than known source files are passed over. Reads
    /// the store on first use. A file with the same size and time as before is not read, one with the same content is
    /// not parsed.
    pub fn replace_files(&self, files: &[Utf8PathBuf]) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.load_store().files.take().unwrap_or_else(|| self.view().state);
        let paths = self.source_paths(files);
        let known = KnownFiles::new(&old, true);
        let new: Vec<Arc<IndexedFile>> = self.read_all(&paths, &known).into_iter().flatten().collect();
        let same = new.len() == old.files.len()
            && new.iter().zip(&old.files).all(|(new, old)| Arc::ptr_eq(new, old));
        updates.unsaved |= !same;
        let new = Arc::new(IndexState::new(new));
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = new;
        self.unread.store(false, Ordering::Relaxed);
    }

    /// Reads again what changed: files that changed, are new or were deleted, and deleted folders.
    pub fn update_files(&self, changed: &[Utf8PathBuf]) {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = self.source_paths(changed);
        let read = {
            // Files of the store are reused, but not listed before `replace_files` names them.
            let stored = self.load_store().files.clone();
            let current = stored.unwrap_or_else(|| self.view().state);
            self.read_all(&paths, &KnownFiles::new(&current, false))
        };
        let folders = changed.iter().filter_map(|path| self.relative(path));
        let gone: Vec<String> = folders.filter(|path| !self.root.join(path).exists()).collect();

        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let same = |path: &str, file: &Option<Arc<IndexedFile>>| match (state.place(path), file) {
            (Ok(place), Some(file)) => Arc::ptr_eq(&state.files[place], file),
            (Err(_), None) => true,
            _ => false,
        };
        let changes: Vec<_> = paths.iter().zip(read).filter(|(path, file)| !same(path, file)).collect();
        let gone: Vec<_> = gone.iter().filter(|path| state.contains_below(path)).collect();
        if changes.is_empty() && gone.is_empty() {
            return;
        }
        updates.unsaved = true;
        // Copies only if a view still uses the old state.
        let state = Arc::make_mut(&mut state);
        for (path, file) in changes {
            match file {
                Some(file) => state.insert(file),
                None => state.remove(path),
            }
        }
        for folder in gone {
            state.remove_below(folder);
        }
    }

    /// Writes the store if the index changed since it was read or written. The old file is replaced as a whole.
    ///
    /// # Errors
    /// If the file cannot be written. The index stays usable.
    pub fn save(&self) -> io::Result<()> {
        let Some(path) = &self.store else { return Ok(()) };
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        if updates.unsaved {
            store::write(path, &self.root, &self.view().state.files)?;
            updates.unsaved = false;
        }
        Ok(())
    }

    /// The declarations of a text as if it were the content of the file at `path`, relative or absolute. `None` if the
    /// language is unknown.
    #[must_use]
    pub fn parse(&self, path: &Utf8Path, text: &str) -> Option<IndexedFile> {
        let relative = self.relative(path).unwrap_or_else(|| path.as_str().to_owned());
        let language = SourceLanguage::of_path(&relative)?;
        let content = Extractor::new().extract(language, text.as_bytes());
        Some(IndexedFile {
            number: u32::MAX,
            class: FileClass::of(&relative, content.generated),
            path: relative.into(),
            language,
            hash: content_hash(text.as_bytes()),
            stamp: FileStamp { size: text.len() as u64, modified: 0 },
            settled: false,
            content: Arc::new(content),
        })
    }

    /// How many files were parsed since this index was opened.
    #[must_use]
    pub fn parsed_files(&self) -> u64 {
        self.parsed.load(Ordering::Relaxed)
    }

    fn load_store(&self) -> MutexGuard<'_, StoredFiles> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if !stored.loaded {
            stored.loaded = true;
            if let Some(path) = &self.store {
                let mut files = store::read(path, &self.root);
                for file in &mut files {
                    file.number = self.next_number();
                }
                self.unread.store(files.is_empty(), Ordering::Relaxed);
                stored.files = Some(Arc::new(IndexState::new(files.into_iter().map(Arc::new).collect())));
            }
        }
        stored
    }

    fn next_number(&self) -> u32 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn relative(&self, path: &Utf8Path) -> Option<String> {
        let path = if path.is_absolute() { path.strip_prefix(&*self.root).ok()? } else { path };
        let parts: Vec<&str> = path.components().map(|part| part.as_str()).collect();
        (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
    }

    /// The relative paths of source files inside the root, sorted. No folder on the way may lead outside.
    pub(crate) fn source_paths(&self, files: &[Utf8PathBuf]) -> Vec<String> {
        let real_root = self.root.canonicalize_utf8().ok();
        let mut folders: BTreeMap<String, bool> = BTreeMap::new();
        let mut inside = |path: &String| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if let Some(known) = folders.get(folder) {
                return *known;
            }
            let real = self.root.join(folder).canonicalize_utf8().ok();
            let inside = match (&real_root, real) {
                (Some(root), Some(real)) => real.starts_with(root),
                // A missing folder has no files; the reader finds out.
                _ => true,
            };
            folders.insert(folder.to_owned(), inside);
            inside
        };
        let source = |path: &Utf8PathBuf| {
            let relative = self.relative(path)?;
            SourceLanguage::of_path(&relative).map(|_| relative)
        };
        let mut paths: Vec<String> = files.iter().filter_map(source).filter(&mut inside).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    fn read_all(&self, paths: &[String], known: &KnownFiles<'_>) -> Vec<Option<Arc<IndexedFile>>> {
        let now = self.now();
        let read = |extractor: &mut Extractor, path: &String| {
            drop(self.urgent.read().unwrap_or_else(PoisonError::into_inner));
            self.read(path, now, known, extractor)
        };
        paths.par_iter().map_init(Extractor::new, read).collect()
    }

    pub(crate) fn now(&self) -> i64 {
        i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX)
    }

    pub(crate) fn read(
        &self,
        path: &str,
        now: i64,
        known: &KnownFiles<'_>,
        extractor: &mut Extractor,
    ) -> Option<Arc<IndexedFile>> {
        let language = SourceLanguage::of_path(path)?;
        let absolute = self.root.join(path);
        let old = known.by_path(path);
        if let Some(old) = old
            && old.settled
            && file_reader::stamp(&absolute) == Some(old.stamp)
        {
            return Some(Arc::clone(old));
        }
        let (hash, stamp, settled, content) = match file_reader::read(&absolute) {
            FileRead::Missing => return None,
            FileRead::TooLarge(stamp) => {
                (Default::default(), stamp, true, Arc::new(FileContent::empty(ParseOutcome::TooLarge)))
            }
            FileRead::Unreadable(stamp) => {
                (Default::default(), stamp, false, Arc::new(FileContent::empty(ParseOutcome::Unreadable)))
            }
            FileRead::Content { bytes, stamp, settled } => {
                let hash = content_hash(&bytes);
                let content = known.by_hash(language, hash, old);
                let content = content.unwrap_or_else(|| {
                    self.parsed.fetch_add(1, Ordering::Relaxed);
                    Arc::new(extractor.extract(language, &bytes))
                });
                let settled = settled && now.saturating_sub(stamp.modified) > SETTLED_AFTER_NANOS;
                (hash, stamp, settled, content)
            }
        };
        if let Some(old) = old
            && (old.hash, old.stamp, old.settled) == (hash, stamp, settled)
            && Arc::ptr_eq(&old.content, &content)
        {
            return Some(Arc::clone(old));
        }
        Some(Arc::new(IndexedFile {
            number: self.next_number(),
            path: path.into(),
            language,
            hash,
            stamp,
            settled,
            class: FileClass::of(path, content.generated),
            content,
        }))
    }
}

/// The files before an update, to reuse what did not change.
pub(crate) struct KnownFiles<'s> {
    state: &'s IndexState,
    /// Sorted. For files that moved; empty if not wanted.
    by_hash: Vec<(ContentHash, &'s Arc<IndexedFile>)>,
}

impl<'s> KnownFiles<'s> {
    pub(crate) fn new(state: &'s IndexState, moved: bool) -> Self {
        let readable = state.files.iter().filter(|file| moved && file.hash != ContentHash::default());
        let mut by_hash: Vec<_> = readable.map(|file| (file.hash, file)).collect();
        by_hash.sort_by_key(|(hash, _)| *hash);
        Self { state, by_hash }
    }

    fn by_path(&self, path: &str) -> Option<&'s Arc<IndexedFile>> {
        self.state.place(path).ok().map(|place| &self.state.files[place])
    }

    fn by_hash(
        &self,
        language: SourceLanguage,
        hash: ContentHash,
        old: Option<&Arc<IndexedFile>>,
    ) -> Option<Arc<FileContent>> {
        let same = |file: &&Arc<IndexedFile>| file.hash == hash && file.language == language;
        if let Some(old) = old.filter(same) {
            return Some(Arc::clone(&old.content));
        }
        let first = self.by_hash.partition_point(|(known, _)| *known < hash);
        let candidates =
            self.by_hash[first..].iter().take_while(|(known, _)| *known == hash).map(|(_, file)| *file);
        candidates.into_iter().find(same).map(|file| Arc::clone(&file.content))
    }
}
