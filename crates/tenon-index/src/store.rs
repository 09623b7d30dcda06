//! The index on disk: one file, replaced as a whole, that is read only if nothing about it is in doubt.
//!
//! Layout: a first line that names the format, the fingerprint of languages and code, the hash of the rest, and the rest
//! in the postcard format. A file that is damaged or from elsewhere counts as missing: everything is parsed again.

use std::io::{self, Write};
use std::sync::Arc;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenon_contract::regular_file;

use crate::indexed_file::{ContentHash, FileContent};
use crate::language::fingerprint;
use crate::{FileClass, FileStamp, IndexedFile, SourceLanguage};

const FORMAT: &[u8] = b"tenon-index\n";
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = FORMAT.len() + 2 * HASH_BYTES;
/// A larger store is not read and not written.
const MAX_STORE_BYTES: u64 = 1024 * 1024 * 1024;

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
    let mut bytes = Vec::new();
    bytes.extend_from_slice(FORMAT);
    bytes.extend_from_slice(&fingerprint());
    bytes.extend_from_slice(&[0; HASH_BYTES]);
    let mut bytes = postcard::to_extend(&(root.as_str(), written), bytes).map_err(io::Error::other)?;
    if bytes.len() as u64 > MAX_STORE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("index exceeds {MAX_STORE_BYTES} bytes"),
        ));
    }
    let hash = Sha256::digest(&bytes[HEADER_BYTES..]);
    bytes[HEADER_BYTES - HASH_BYTES..HEADER_BYTES].copy_from_slice(&hash);

    let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The stored files; none if there is no store, or any doubt about it.
pub(crate) fn read(path: &Utf8Path, root: &Utf8Path) -> Vec<IndexedFile> {
    let bytes = regular_file::read(path, MAX_STORE_BYTES).unwrap_or_default();
    decode(&bytes, root).unwrap_or_default()
}

fn decode(bytes: &[u8], root: &Utf8Path) -> Option<Vec<IndexedFile>> {
    let rest = bytes.strip_prefix(FORMAT)?.strip_prefix(&fingerprint())?;
    let (hash, payload) = rest.split_at_checked(HASH_BYTES)?;
    if Sha256::digest(payload)[..] != *hash {
        return None;
    }
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
        let whole = std::fs::read(&store).unwrap();
        assert_eq!(decode(&whole, root).map(|files| files.len()), Some(1));
        for at in HEADER_BYTES..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, whole[at].wrapping_add(1)] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let hash = Sha256::digest(&bytes[HEADER_BYTES..]);
                bytes[HEADER_BYTES - HASH_BYTES..HEADER_BYTES].copy_from_slice(&hash);
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
