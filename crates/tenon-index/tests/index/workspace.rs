//! A workspace in a temporary folder.

use std::fmt::Write;
use std::fs::File;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Clock;
use tenon_index::{IndexOptions, Matches, SymbolFilter, SymbolQuery, SyntaxIndex, View};

pub(crate) struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let workspace = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(workspace.root()).unwrap();
        for (path, text) in files {
            workspace.write(path, text);
        }
        workspace
    }

    fn folder(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    pub(crate) fn root(&self) -> Utf8PathBuf {
        self.folder().join("root")
    }

    /// Beside the root.
    pub(crate) fn outside(&self, name: &str) -> Utf8PathBuf {
        self.folder().join(name)
    }

    pub(crate) fn store(&self) -> Utf8PathBuf {
        self.outside("cache/index")
    }

    pub(crate) fn path(&self, path: &str) -> Utf8PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes a file an hour old, so that size and time decide whether it changed.
    pub(crate) fn age(&self, path: &str) {
        let file = File::options().write(true).open(self.path(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    }

    /// All entries that are not folders, as a walk that does not follow links finds them.
    pub(crate) fn files(&self) -> Vec<Utf8PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().unwrap() {
                let entry = entry.unwrap();
                let folder = entry.file_type().unwrap().is_dir();
                if folder { folders.push(entry.into_path()) } else { files.push(entry.into_path()) }
            }
        }
        files
    }

    pub(crate) fn open(&self) -> SyntaxIndex {
        SyntaxIndex::open(IndexOptions {
            root: self.root(),
            store: Some(self.store()),
            clock: Clock::system(),
        })
    }

    /// Without a store.
    pub(crate) fn fresh(&self) -> SyntaxIndex {
        let index =
            SyntaxIndex::open(IndexOptions { root: self.root(), store: None, clock: Clock::system() });
        index.replace_files(&self.files());
        index
    }
}

/// Everything that an index answers, as text.
pub(crate) fn dump(view: &View) -> String {
    let mut text = String::new();
    for file in view.files() {
        writeln!(text, "{} {:?} {:?} {:?}", file.path(), file.language(), file.class(), file.outcome())
            .unwrap();
        writeln!(text, "  {:?} {} {}", file.content_hash(), file.line_count(), file.stamp().size).unwrap();
        for symbol in file.symbols() {
            let bases: Vec<_> = symbol.bases().collect();
            writeln!(
                text,
                "  {} {} {:?} {:?} {:?} {:?} {:?} {} {bases:?}",
                symbol.kind(),
                symbol.name_path(),
                symbol.range(),
                symbol.name_position(),
                symbol.body(),
                symbol.signature(),
                symbol.doc(),
                symbol.is_test(),
            )
            .unwrap();
        }
    }
    for (file, count) in view.reference_counts() {
        writeln!(text, "{count} {}", file.path()).unwrap();
    }
    text
}

pub(crate) fn find<'v>(view: &'v View, name: &str) -> Matches<'v> {
    view.find(&SymbolQuery::parse(name).unwrap(), &SymbolFilter::default())
}

/// `path#name.path` of each match.
pub(crate) fn found(view: &View, name: &str) -> Vec<String> {
    let matches = find(view, name);
    matches.symbols.iter().map(|symbol| format!("{}#{}", symbol.path(), symbol.name_path())).collect()
}
