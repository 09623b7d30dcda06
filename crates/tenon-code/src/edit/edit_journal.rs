//! The record of a change of several files while it is written, in a file of Tenon's state folder.
//!
//! A process that ends in between leaves its record, and with it the texts before: the next start or edit undoes the change.
//! A record is locked by its process, so that no other one undoes a change that is still being written.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tenon_contract::clock::Entropy;
use tenon_contract::id::sha256_hex;

/// The ending of a complete record.
const RECORD: &str = "json";
/// The ending of a record that is being written.
const UNFINISHED: &str = "new";
/// The ending of a file that is not a record.
const INVALID: &str = "invalid";
/// A larger record is invalid: text takes at most six bytes in JSON, and a change has at most 64 MiB.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedFile {
    /// Relative to the root.
    pub(super) file: String,
    /// The text before, with its byte order mark.
    pub(super) before: String,
    /// The hash of the bytes after.
    pub(super) after_sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    root: Utf8PathBuf,
    files: Vec<RecordedFile>,
}

/// The records of one root.
#[derive(Debug)]
pub(super) struct EditJournal {
    folder: Utf8PathBuf,
    root: Utf8PathBuf,
}

/// A change that has begun and is not finished.
#[derive(Debug)]
pub(super) struct OpenRecord {
    pub(super) files: Vec<RecordedFile>,
    path: Utf8PathBuf,
    _lock: File,
}

impl EditJournal {
    /// The records of `root` below `folder`.
    pub(super) fn new(folder: &Utf8Path, root: &Utf8Path) -> Self {
        let name = &sha256_hex(root.as_str())[..16];
        Self { folder: folder.join(name), root: root.to_owned() }
    }

    /// Records a change before its first file is replaced.
    pub(super) fn begin(&self, files: Vec<RecordedFile>, entropy: &Entropy) -> io::Result<OpenRecord> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{}.{RECORD}", entropy.id()));
        let unfinished = path.with_extension(UNFINISHED);
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut lock = options.open(&unfinished)?;
        let record = Record { root: self.root.clone(), files };
        let written = (|| {
            // Without file locks, another process could undo the change while it is written.
            lock.try_lock().map_err(io::Error::from)?;
            lock.write_all(&serde_json::to_vec(&record)?)?;
            lock.sync_all()?;
            fs::rename(&unfinished, &path)?;
            sync_folder(&self.folder)
        })();
        match written {
            Ok(()) => Ok(OpenRecord { files: record.files, path, _lock: lock }),
            Err(error) => {
                let _ = fs::remove_file(&unfinished);
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// The changes that processes left unfinished when they ended.
    pub(super) fn unfinished(&self) -> Vec<OpenRecord> {
        let entries = self.folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<Utf8PathBuf> = entries.map(|entry| entry.into_path()).collect();
        paths.sort_unstable();
        paths.into_iter().filter_map(|path| self.take(path)).collect()
    }

    /// The record of a process that has ended.
    fn take(&self, path: Utf8PathBuf) -> Option<OpenRecord> {
        let ending = path.extension().filter(|ending| [RECORD, UNFINISHED].contains(ending))?;
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return None;
        }
        let mut lock = File::options().read(true).write(true).open(&path).ok()?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
        if ending == UNFINISHED {
            // Its process ended before it replaced a file.
            let _ = fs::remove_file(&path);
            return None;
        }
        // Another process may have finished it meanwhile.
        if !path.exists() {
            return None;
        }
        match self.read(&mut lock) {
            Ok(files) => Some(OpenRecord { files, path, _lock: lock }),
            Err(error) => {
                tracing::warn!(%path, %error, "the record of an unfinished change is invalid");
                let _ = fs::rename(&path, path.with_extension(INVALID));
                None
            }
        }
    }

    fn read(&self, file: &mut File) -> io::Result<Vec<RecordedFile>> {
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let record: Record = serde_json::from_slice(&bytes)?;
        match record.root == self.root {
            true => Ok(record.files),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "it belongs to another root")),
        }
    }
}

impl OpenRecord {
    /// Removes the record: all files have their old or their new text.
    pub(super) fn finish(self) -> io::Result<()> {
        fs::remove_file(&self.path)?;
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Utf8Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(folder: &tempfile::TempDir) -> EditJournal {
        EditJournal::new(Utf8Path::from_path(folder.path()).unwrap(), Utf8Path::new("/nowhere/a"))
    }

    fn files() -> Vec<RecordedFile> {
        vec![RecordedFile {
            file: "a".to_owned(),
            before: "\u{feff}x\r\n".to_owned(),
            after_sha256: "0".repeat(64),
        }]
    }

    #[test]
    fn record_of_an_ended_process_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(&folder);
        assert!(journal.unfinished().is_empty());
        let running = journal.begin(files(), &Entropy::system()).unwrap();
        assert!(journal.unfinished().is_empty(), "its process runs");
        drop(running);
        let left = journal.unfinished();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].files, files());
        assert!(journal.unfinished().is_empty(), "it is being undone");
        left.into_iter().for_each(|record| record.finish().unwrap());
        assert!(journal.unfinished().is_empty());
    }

    #[test]
    fn unfinished_and_invalid_records_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let journal = journal(&folder);
        journal.begin(files(), &Entropy::system()).unwrap().finish().unwrap();
        let at = |name: &str| journal.folder.join(name);
        let other = Record { root: "/nowhere/b".into(), files: files() };
        fs::write(at("half.new"), "{").unwrap();
        fs::write(at("other.json"), serde_json::to_vec(&other).unwrap()).unwrap();
        fs::write(at("broken.json"), "{\"root\":\"/nowhere/a\",\"files\":[{\"file\":7}]}").unwrap();
        fs::write(at("note.txt"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("other.json"), at("link.json")).unwrap();
        assert!(journal.unfinished().is_empty());
        assert!(!at("half.new").exists());
        assert!(at("other.invalid").exists() && at("broken.invalid").exists() && at("note.txt").exists());
    }
}
