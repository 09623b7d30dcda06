//! Sources and caches to test with.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenon_context::{Error, Existing, Library, Query, Summary, resolve};
use tenon_contract::clock::Clock;

/// A folder with `sources` and `cache` in it.
pub(crate) struct Desk {
    folder: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// In memory where the system has that: quick enough for a thousand builds.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { folder: folder.unwrap() }
    }

    /// A desk with documents on it and a cache of them.
    pub(crate) fn with(documents: &[(&str, &str)]) -> Self {
        let desk = Self::new();
        desk.write_all(documents);
        desk.build().unwrap();
        desk
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn sources(&self) -> PathBuf {
        self.path().join("sources")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.sources().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn write_all(&self, documents: &[(&str, &str)]) {
        fs::create_dir_all(self.sources()).unwrap();
        for (name, content) in documents {
            self.write(name, content);
        }
    }

    pub(crate) fn build(&self) -> Result<Summary, Error> {
        self.build_over(Existing::Keep)
    }

    pub(crate) fn rebuild(&self) -> Result<Summary, Error> {
        self.build_over(Existing::Replace)
    }

    fn build_over(&self, existing: Existing) -> Result<Summary, Error> {
        tenon_context::build(&self.sources(), &self.cache(), existing, &noon())
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.cache().join(file)).unwrap()
    }

    /// The answer of a reader that keeps nothing.
    pub(crate) fn resolve(&self, query: &str, budget: u64) -> Result<String, Error> {
        resolve(&self.cache(), Query::new(query)?, budget).map(|selection| selection.to_json())
    }

    /// The answer from memory.
    pub(crate) fn ask(&self, library: &Library, query: &str, budget: u64) -> Result<String, Error> {
        library.resolve(&self.cache(), Query::new(query)?, budget).map(|selection| selection.to_json())
    }

    /// What lies on the desk, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.path())
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A clock that has stopped.
pub(crate) fn noon() -> Clock {
    Clock::fixed("2026-01-02T12:00:00Z".parse().unwrap()).0
}
