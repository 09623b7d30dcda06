//! One state of the index: what questions are asked of.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use camino::Utf8Path;

use crate::find::{self, Matches, SymbolFilter};
use crate::mentions;
use crate::name_table::NameTable;
use crate::{IndexedFile, SymbolQuery, SymbolRef};

/// A declaration in one version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId {
    pub(crate) file: u32,
    pub(crate) index: u32,
}

impl SymbolId {
    pub(crate) const FIRST: Self = Self { file: 0, index: 0 };
    pub(crate) const LAST: Self = Self { file: u32::MAX, index: u32::MAX };
}

#[derive(Clone, Debug, Default)]
pub(crate) struct IndexState {
    /// Sorted by the bytes of their paths.
    pub files: Vec<Arc<IndexedFile>>,
    pub by_number: BTreeMap<u32, Arc<IndexedFile>>,
    pub names: NameTable,
    /// In the order of `files`; computed on demand.
    pub reference_counts: OnceLock<Vec<u32>>,
}

impl IndexState {
    pub(crate) fn new(files: Vec<Arc<IndexedFile>>) -> Self {
        Self {
            by_number: files.iter().map(|file| (file.number, Arc::clone(file))).collect(),
            names: NameTable::new(files.iter().map(|file| &**file)),
            reference_counts: OnceLock::new(),
            files,
        }
    }

    pub(crate) fn place(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|file| (*file.path).cmp(path))
    }

    pub(crate) fn insert(&mut self, file: Arc<IndexedFile>) {
        self.reference_counts.take();
        self.names.insert(&file);
        self.by_number.insert(file.number, Arc::clone(&file));
        match self.place(&file.path) {
            Ok(place) => {
                let old = std::mem::replace(&mut self.files[place], file);
                self.names.remove(&old);
                self.by_number.remove(&old.number);
            }
            Err(place) => self.files.insert(place, file),
        }
    }

    pub(crate) fn remove(&mut self, path: &str) {
        if let Ok(place) = self.place(path) {
            self.remove_range(place..place + 1);
        }
    }

    pub(crate) fn contains_below(&self, folder: &str) -> bool {
        !self.below(folder).is_empty()
    }

    pub(crate) fn remove_below(&mut self, folder: &str) {
        self.remove_range(self.below(folder));
    }

    fn remove_range(&mut self, range: Range<usize>) {
        self.reference_counts.take();
        for old in self.files.drain(range) {
            self.names.remove(&old);
            self.by_number.remove(&old.number);
        }
    }

    /// The places of the files below a folder.
    fn below(&self, folder: &str) -> Range<usize> {
        let folder = folder.trim_matches('/');
        if folder.is_empty() || folder == "." {
            return 0..self.files.len();
        }
        // `0` is the byte after `/`.
        let (first, last) = (format!("{folder}/"), format!("{folder}0"));
        let place = |bound: &str| self.files.partition_point(|file| &*file.path < bound);
        place(&first)..place(&last)
    }
}

/// One state of the index. Cheap to take; later updates do not change it and do not wait for it.
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) root: Arc<Utf8Path>,
    pub(crate) state: Arc<IndexState>,
}

impl View {
    /// All indexed files, by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &IndexedFile> + DoubleEndedIterator {
        self.state.files.iter().map(|file| &**file)
    }

    /// A file by its path relative to the root, with `/`.
    #[must_use]
    pub fn file(&self, relative: &str) -> Option<&IndexedFile> {
        self.state.place(relative).ok().map(|place| &*self.state.files[place])
    }

    /// The files below a folder, by path. The root is `` or `.`.
    pub fn below(&self, folder: &str) -> impl ExactSizeIterator<Item = &IndexedFile> {
        self.state.files[self.state.below(folder)].iter().map(|file| &**file)
    }

    /// The files whose path is `path` or ends in it at a folder boundary: `query.py`, `models/query.py`.
    pub fn files_by_trailing_path(&self, path: &str) -> impl Iterator<Item = &IndexedFile> {
        let path = path.trim_start_matches("./").to_owned();
        self.files().filter(move |file| find::ends_with_path(file.path(), &path))
    }

    /// The best matches of a query, ranked. See [`Matches`].
    #[must_use]
    pub fn find(&self, query: &SymbolQuery, filter: &SymbolFilter) -> Matches<'_> {
        find::find(self, query, filter)
    }

    /// Whether a declaration has exactly this name.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        let mut candidates = self.state.names.candidates(name).filter_map(|id| self.symbol(id));
        candidates.any(|symbol| symbol.name() == name)
    }

    /// `None` if the file changed since the id was given.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<SymbolRef<'_>> {
        self.state.by_number.get(&id.file)?.symbol(id.index)
    }

    /// The innermost declaration of a file whose lines contain `line`, counted from 1.
    #[must_use]
    pub fn enclosing(&self, file: &str, line: u32) -> Option<SymbolRef<'_>> {
        self.file(file)?.enclosing(line)
    }

    /// For "did you mean": declarations with similar names, the nearest first, one for each name.
    #[must_use]
    pub fn nearest_names(&self, name: &str, at_most: usize) -> Vec<SymbolRef<'_>> {
        find::nearest_names(self, name, at_most)
    }

    /// The files that contain every word of `name`, by path. Answers without reading files; see [`IndexedFile::mentions`].
    #[must_use]
    pub fn files_mentioning(&self, name: &str) -> Vec<&IndexedFile> {
        self.files().filter(|file| file.mentions(name)).collect()
    }

    /// Declarations that name a base with this last segment, by path and line. In Rust these are `impl` blocks, whose
    /// name is that of the type.
    #[must_use]
    pub fn subtypes_by_name(&self, name: &str) -> Vec<SymbolRef<'_>> {
        mentions::subtypes(self, name)
    }

    /// All files with the number of other files that mention a name which the file declares at top level and which few
    /// files declare (words of prose do not count); the most referenced first, then by path. Kept until the index changes.
    #[must_use]
    pub fn reference_counts(&self) -> Vec<(&IndexedFile, u32)> {
        let counts =
            self.state.reference_counts.get_or_init(|| mentions::reference_counts(&self.state.files));
        let mut list: Vec<(&IndexedFile, u32)> = self.files().zip(counts.iter().copied()).collect();
        // Stable: files are sorted by path already.
        list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        list
    }
}
