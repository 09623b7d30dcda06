//! Directories on systems other than Unix, with the standard library alone.
//!
//! Without directory descriptors, a path is checked for links right before it is used, which leaves a short race.

use std::fs::{self, File};
use std::io::{self, Write};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::clock::Entropy;

use super::{FileSnapshot, ReadFailure, UNFINISHED_EDIT, WriteFailure, bounded};

/// See [`super`].
#[derive(Debug)]
pub(in crate::edit) struct DirectoryHandle(Utf8PathBuf);

/// A file's modification time and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    changed: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self { size: metadata.len(), changed: metadata.modified().ok() }
    }
}

/// See [`DirectoryHandle::prepare`].
#[derive(Debug)]
pub(in crate::edit) struct PreparedFile(Utf8PathBuf);

/// Directories that were created for a file.
#[derive(Debug, Default)]
pub(in crate::edit) struct CreatedDirectories(Vec<Utf8PathBuf>);

impl CreatedDirectories {
    /// Removes them, unless they are in use.
    pub(in crate::edit) fn undo(self) {
        for folder in self.0.into_iter().rev() {
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

impl DirectoryHandle {
    pub(in crate::edit) fn open(root: &Utf8Path, below: &Utf8Path) -> io::Result<Self> {
        let folder = root.join(below);
        match fs::canonicalize(&folder)? == folder.as_std_path() {
            true => Ok(Self(folder)),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Like [`DirectoryHandle::open`], creating missing directories.
    pub(in crate::edit) fn create(
        root: &Utf8Path,
        below: &Utf8Path,
    ) -> io::Result<(Self, CreatedDirectories)> {
        let mut created = CreatedDirectories::default();
        let mut at = root.to_owned();
        for name in below.components() {
            at.push(name.as_str());
            match fs::create_dir(&at) {
                Ok(()) => created.0.push(at.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    created.undo();
                    return Err(error);
                }
            }
        }
        match Self::open(root, below) {
            Ok(folder) => Ok((folder, created)),
            Err(error) => {
                created.undo();
                Err(error)
            }
        }
    }

    /// Reads a regular file; `None` if the name does not exist.
    pub(in crate::edit) fn read(&self, name: &str, limit: u64) -> Result<Option<FileSnapshot>, ReadFailure> {
        let path = self.0.join(name);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Err(ReadFailure::NotAFile),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let bytes = bounded(File::open(&path)?, metadata.len(), limit)?;
        Ok(Some(FileSnapshot {
            bytes,
            writable: !metadata.permissions().readonly(),
            stamp: Stamp::of(&metadata),
        }))
    }

    /// Writes and syncs a temporary file that is to replace the file that was read, or to become a new one.
    pub(in crate::edit) fn prepare(
        &self,
        bytes: &[u8],
        _found: Option<&FileSnapshot>,
        entropy: &Entropy,
    ) -> io::Result<PreparedFile> {
        let prepared = PreparedFile(self.0.join(format!("{UNFINISHED_EDIT}{}", entropy.id())));
        let mut file = File::create_new(&prepared.0)?;
        let filled = file.write_all(bytes).and_then(|()| file.sync_all());
        match filled {
            Ok(()) => Ok(prepared),
            Err(error) => {
                drop(file);
                self.discard(&prepared);
                Err(error)
            }
        }
    }

    /// Puts a prepared file in the place of the file that was read, or of none.
    pub(in crate::edit) fn commit(
        &self,
        prepared: &PreparedFile,
        name: &str,
        found: Option<&FileSnapshot>,
    ) -> Result<(), WriteFailure> {
        let now = fs::symlink_metadata(self.0.join(name)).ok();
        if now.as_ref().map(Stamp::of) != found.map(|found| found.stamp.clone()) {
            return Err(WriteFailure::Changed);
        }
        Ok(fs::rename(&prepared.0, self.0.join(name))?)
    }

    /// Removes a prepared file. If this fails, it is removed later as a leftover.
    pub(in crate::edit) fn discard(&self, prepared: &PreparedFile) {
        let _ = fs::remove_file(&prepared.0);
    }

    /// Renames need no further step here.
    #[expect(clippy::unused_self, reason = "Unix needs the directory")]
    pub(in crate::edit) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Removes temporary files of crashed processes; running ones hold a lock.
    pub(in crate::edit) fn clean(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED_EDIT))
        {
            let unlocked = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
            if unlocked {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
