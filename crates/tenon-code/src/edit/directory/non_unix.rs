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

    /// Replaces the file that was read, or creates a new one.
    pub(in crate::edit) fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        found: Option<&FileSnapshot>,
        entropy: &Entropy,
    ) -> Result<(), WriteFailure> {
        let unfinished = self.0.join(format!("{UNFINISHED_EDIT}{}", entropy.id()));
        let mut file = File::create_new(&unfinished)?;
        let done = (|| {
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            let now = fs::symlink_metadata(self.0.join(name)).ok();
            if now.as_ref().map(Stamp::of) != found.map(|found| found.stamp.clone()) {
                return Err(WriteFailure::Changed);
            }
            Ok(fs::rename(&unfinished, self.0.join(name))?)
        })();
        if done.is_err() {
            // If this fails, the file is removed later as a leftover.
            let _ = fs::remove_file(&unfinished);
        }
        done
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
