//! The syntax index on disk, in the postcard format.

use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use tenon_contract::checked_file::CheckedFormat;

use crate::indexed_file::{ContentHash, FileContent};
use crate::language::fingerprint;
use crate::{FileClass, FileStamp, IndexedFile, SourceLanguage};

fn format() -> CheckedFormat {
    CheckedFormat { name: "tenon-index", fingerprint: fingerprint(), max_bytes: 1024 * 1024 * 1024 }
}

#[derive(Serialize)]
struct WrittenFile<'f> {
    path: &'f str,
    language: SourceLanguage,
    hash: ContentHash,
    stamp: FileStamp,
    settled: bool,
    content: &'f FileContent,
}

#[derive(Deserialize)]
struct StoredFile {
    path: Box<str>,
    language: SourceLanguage,
    hash: ContentHash,
    stamp: FileStamp,
    settled: bool,
    content: FileContent,
}

pub(crate) fn write(path: &Utf8Path, root: &Utf8Path, files: &[Arc<IndexedFile>]) -> io::Result<()> {
    let written: Vec<WrittenFile<'_>> = files.iter().map(|file| WrittenFile::new(file)).collect();
    format()
        .write(path, |bytes| postcard::to_extend(&(root.as_str(), written), bytes).map_err(io::Error::other))
}

/// The stored files; none if there is no store, or any doubt about it.
pub(crate) fn read(path: &Utf8Path, root: &Utf8Path) -> Vec<IndexedFile> {
    let format = format();
    let bytes = format.read(path);
    format.payload(&bytes).and_then(|payload| decode(payload, root)).unwrap_or_default()
}

fn decode(payload: &[u8], root: &Utf8Path) -> Option<Vec<IndexedFile>> {
    let (stored_root, stored): (String, Vec<StoredFile>) = postcard::from_bytes(payload).ok()?;
    let sorted = stored.is_sorted_by(|a, b| a.path < b.path);
    let valid = sorted && stored_root == *root && stored.iter().all(|file| file.content.is_valid());
    valid.then(|| stored.into_iter().map(StoredFile::into_indexed).collect())
}

impl<'f> WrittenFile<'f> {
    fn new(file: &'f IndexedFile) -> Self {
        Self {
            path: &file.path,
            language: file.language,
            hash: file.hash,
            stamp: file.stamp,
            settled: file.settled,
            content: &file.content,
        }
    }
}

impl StoredFile {
    fn into_indexed(self) -> IndexedFile {
        IndexedFile {
            number: 0,
            class: FileClass::of(&self.path, self.content.generated),
            path: self.path,
            language: self.language,
            hash: self.hash,
            stamp: self.stamp,
            settled: self.settled,
            content: Arc::new(self.content),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_contract::clock::Clock;

    use super::*;
    use crate::{IndexOptions, SyntaxIndex};

    /// Someone may write a store with a correct hash.
    #[test]
    fn prepared_store_is_rejected_or_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::write(root.join("a.py"), "class A(B):\n    \"\"\"Doc.\"\"\"\n    def c(self): pass\n")
            .unwrap();
        let store = root.join("store");
        let options =
            IndexOptions { root: root.to_owned(), store: Some(store.clone()), clock: Clock::system() };
        let index = SyntaxIndex::open(options);
        index.replace_files(&[root.join("a.py")]);
        index.save().unwrap();
        let format = format();
        let bytes = format.read(&store);
        let whole = format.payload(&bytes).unwrap();
        assert_eq!(decode(whole, root).map(|files| files.len()), Some(1));
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, whole[at].wrapping_add(1)] {
                let mut bytes = whole.to_vec();
                bytes[at] = value;
                for file in decode(&bytes, root).unwrap_or_default() {
                    for symbol in file.symbols() {
                        let texts = (symbol.name_path(), symbol.signature(), symbol.doc(), symbol.body());
                        let bases: Vec<_> = symbol.bases().collect();
                        assert!(symbol.children().count() + symbol.depth() + bases.len() < 100, "{texts:?}");
                    }
                }
            }
        }
    }
}
