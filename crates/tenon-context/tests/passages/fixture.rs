//! A workspace folder with its indexes.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;
use tenon_context::{ExtraTexts, FindAnswer, FindRequest, PassageIndex};
use tenon_contract::clock::Clock;
use tenon_index::{IndexOptions, SyntaxIndex};

pub(crate) struct Workspace {
    folder: TempDir,
    pub(crate) syntax: SyntaxIndex,
}

impl Workspace {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let root = Utf8PathBuf::from_path_buf(root).unwrap();
        let options = IndexOptions { root, store: None, clock: Clock::system() };
        let workspace = Self { folder, syntax: SyntaxIndex::open(options) };
        for (path, text) in files {
            workspace.write(path, text.as_bytes());
        }
        workspace
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        self.syntax.root()
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Utf8PathBuf {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// All files, without the store.
    pub(crate) fn files(&self) -> Vec<Utf8PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path().to_owned()),
                    false => found.push(entry.path().to_owned()),
                }
            }
        }
        found
    }

    /// An index without a store that knows all files.
    pub(crate) fn index(&self) -> PassageIndex {
        let index = PassageIndex::open(self.root().to_owned(), None, Clock::system());
        index.replace_files(&self.files(), &self.syntax);
        index
    }

    /// An index that keeps its store outside of the workspace.
    pub(crate) fn stored_index(&self, store: &Utf8Path) -> PassageIndex {
        PassageIndex::open(self.root().to_owned(), Some(store.to_owned()), Clock::system())
    }

    pub(crate) fn ask(&self, index: &PassageIndex, query: &str) -> FindAnswer {
        self.ask_request(index, &FindRequest { query: query.to_owned(), ..FindRequest::default() })
    }

    pub(crate) fn ask_request(&self, index: &PassageIndex, request: &FindRequest) -> FindAnswer {
        index.find(request, &ExtraTexts::default(), &self.syntax).unwrap()
    }

    /// The addresses of the answer.
    pub(crate) fn places(&self, index: &PassageIndex, query: &str) -> Vec<String> {
        self.ask(index, query).passages.iter().map(|passage| passage.address()).collect()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}
