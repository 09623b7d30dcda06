//! The answer to a question for a name before all files are parsed: only files that contain the name can declare it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;

use camino::Utf8PathBuf;
use regex::bytes::Regex;

use crate::extract::Extractor;
use crate::file_reader::{self, FileRead};
use crate::syntax_index::KnownFiles;
use crate::view::IndexState;
use crate::{IndexedFile, SymbolQuery, SyntaxIndex, View};

impl SyntaxIndex {
    /// A view of those of `files` that contain the name of a query. It has every exact match, but not every other one.
    /// Parsing of other files stops meanwhile. `None` if the query names a line, or if names of this kind are not always
    /// written the same way, such as `operator==`.
    #[must_use]
    pub fn view_of_name(&self, files: &[Utf8PathBuf], query: &SymbolQuery) -> Option<View> {
        let name = query.name().filter(|name| is_identifier(name))?;
        let written = Regex::new(&regex::escape(name)).ok()?;
        let _urgent = self.urgent.write().unwrap_or_else(PoisonError::into_inner);
        let paths = self.source_paths(files);
        let next = AtomicUsize::new(0);
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let read: thread::Result<Vec<_>> = thread::scope(|scope| {
            let read = || self.read_naming(&paths, &next, &written);
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
            running.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        let mut found: Vec<Arc<IndexedFile>> = read.ok()?.into_iter().flatten().collect();
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Some(View { root: Arc::clone(&self.root), state: Arc::new(IndexState::new(found)) })
    }

    fn read_naming(&self, paths: &[String], next: &AtomicUsize, written: &Regex) -> Vec<Arc<IndexedFile>> {
        let none = IndexState::default();
        let known = KnownFiles::new(&none, false);
        let mut extractor = Extractor::new();
        let mut found = Vec::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let FileRead::Content { bytes, .. } = file_reader::read(&self.root.join(path))
                && written.is_match(&bytes)
            {
                found.extend(self.read(path, self.now(), &known, &mut extractor));
            }
        }
        found
    }
}

fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
