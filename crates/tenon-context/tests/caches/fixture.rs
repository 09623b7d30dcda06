//! A temporary folder with sources and a cache.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenon_context::{CachePool, CacheSummary, Error, Existing, Query, resolve};
use tenon_contract::clock::Clock;

/// A temporary folder with `sources` and `cache`.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// In `/dev/shm` if available: fast enough for a thousand builds.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { folder: folder.unwrap() }
    }

    /// Sources with these documents, and a cache built from them.
    pub(crate) fn with(documents: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        fixture.write_all(documents);
        fixture.build().unwrap();
        fixture
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

    pub(crate) fn build(&self) -> Result<CacheSummary, Error> {
        self.build_over(Existing::Keep)
    }

    pub(crate) fn rebuild(&self) -> Result<CacheSummary, Error> {
        self.build_over(Existing::Replace)
    }

    fn build_over(&self, existing: Existing) -> Result<CacheSummary, Error> {
        tenon_context::build(&self.sources(), &self.cache(), existing, &noon())
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.cache().join(file)).unwrap()
    }

    /// The answer from disk.
    pub(crate) fn resolve(&self, query: &str, budget: u64) -> Result<String, Error> {
        resolve(&self.cache(), Query::new(query)?, budget).map(|selection| selection.to_json())
    }

    /// The answer from a pool.
    pub(crate) fn resolve_in(&self, pool: &CachePool, query: &str, budget: u64) -> Result<String, Error> {
        pool.resolve(&self.cache(), Query::new(query)?, budget).map(|selection| selection.to_json())
    }

    /// The sorted names in the folder.
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

/// A fixed clock.
pub(crate) fn noon() -> Clock {
    Clock::fixed("2026-01-02T12:00:00Z".parse().unwrap()).0
}
