//! Putting a finished cache in place, whole or not at all.
//!
//! A build writes to a hidden sibling of its target, `.tenon-build-<key>-<process>-<n>`, and takes a lock on it that
//! dies with the process. A sibling without its lock is what a killed build left behind, and the next build for the
//! same target removes it. The finished folder is renamed into place; an existing cache changes places with it in
//! one step and is then removed. Where the system has no such step, the old cache is first set aside as
//! `.tenon-old-<key>`; if the process dies right there, the next who opens the cache puts it back.
//!
//! `<key>` is a hash of the target's name, which keeps the siblings of several caches apart and their names short.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenon_contract::id::sha256_hex;

use crate::error::Error;
use crate::exchange::{NotExchanged, exchange, rename_new};
use crate::system::{self, identity};

const BUILD: &str = ".tenon-build-";
const OLD: &str = ".tenon-old-";

/// Whether a name is that of unfinished or abandoned work.
pub(crate) fn is_ours(name: &OsStr) -> bool {
    [BUILD, OLD].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// Puts back a cache that was set aside by a replacement which never came to its end. Says whether it did.
pub(crate) fn heal(cache: &Path) -> bool {
    Target::of(cache).is_some_and(|target| rename_new(&target.old(), cache).is_ok())
}

/// Where a cache is to stand: a name in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    parent: PathBuf,
    name: OsString,
}

impl Target {
    /// `None` for paths that end in no name, such as `/` and `..`.
    pub(crate) fn of(cache: &Path) -> Option<Self> {
        let name = cache.file_name()?.to_owned();
        let parent = match cache.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Some(Self { parent, name })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    fn key(&self) -> String {
        sha256_hex(self.name.as_encoded_bytes())[..16].to_owned()
    }

    fn old(&self) -> PathBuf {
        self.parent.join(format!("{OLD}{}", self.key()))
    }

    fn builds(&self) -> String {
        format!("{BUILD}{}-", self.key())
    }

    /// Removes what killed builds left behind. What cannot be removed is left to the next one: it is in nobody's way.
    fn sweep(&self) {
        let builds = self.builds();
        for entry in fs::read_dir(&self.parent).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(builds.as_bytes()) {
                let path = entry.path();
                // Held until the folder is gone, so that nobody takes it for his own meanwhile.
                let folder = system::open_folder(&path).ok().flatten();
                if folder.as_ref().is_some_and(|folder| folder.try_lock().is_ok()) {
                    remove(&path);
                }
            }
        }
        if self.path().symlink_metadata().is_ok() {
            remove(&self.old());
        }
    }
}

/// A folder in the making. Dropped before it is put in place, it leaves nothing behind.
pub(crate) struct Staging {
    target: Target,
    folder: PathBuf,
    /// Folders made on the way to the target, outermost first.
    parents: Vec<PathBuf>,
    in_place: bool,
    /// Held as long as the folder is ours; absent where folders cannot be locked.
    _lock: Option<File>,
}

impl Staging {
    /// Makes an empty folder next to the target, and the folders above it that are not there.
    pub(crate) fn new(target: Target) -> Result<Self, Error> {
        let parents = make_parents(&target.parent)?;
        target.sweep();
        let made = Self::make(&target);
        match made {
            Ok((folder, lock)) => Ok(Self { target, folder, parents, in_place: false, _lock: lock }),
            Err(error) => {
                remove_parents(&parents);
                Err(Error::io("write to", &target.parent)(error))
            }
        }
    }

    fn make(target: &Target) -> io::Result<(PathBuf, Option<File>)> {
        let prefix = target.builds();
        for n in 0_u64.. {
            let folder = target.parent.join(format!("{prefix}{}-{n}", std::process::id()));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let Some(lock) = system::open_folder(&folder)? else {
                return Ok((folder, None));
            };
            // Between its making and its locking somebody may have taken the folder for an abandoned one. File
            // systems without locks answer with another error; there nothing is ever taken for abandoned.
            let taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            let there = folder
                .symlink_metadata()
                .is_ok_and(|now| lock.metadata().is_ok_and(|ours| identity(&ours) == identity(&now)));
            if !taken && there {
                return Ok((folder, Some(lock)));
            }
        }
        unreachable!("nobody takes 2^64 folders away")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Puts the folder in place where nothing is.
    pub(crate) fn place_new(&mut self) -> Result<(), Error> {
        let target = self.target.path();
        match rename_new(&self.folder, &target) {
            Err(error) if is_occupied(&error) => Err(Error::TargetExists { cache: target }),
            Err(error) => Err(Error::io("put in place", target)(error)),
            Ok(()) => self.placed(),
        }
    }

    /// Puts the folder in place, and removes the cache that was there.
    pub(crate) fn replace(&mut self) -> Result<(), Error> {
        let target = self.target.path();
        let failed = |error| Error::io("put in place", &target)(error);
        match exchange(&self.folder, &target) {
            Ok(()) => {
                self.placed()?;
                remove(&self.folder);
                Ok(())
            }
            Err(NotExchanged::Unsupported) => {
                replace_in_two_steps(&self.folder, &target, &self.target.old()).map_err(failed)?;
                self.placed()?;
                remove(&self.target.old());
                Ok(())
            }
            Err(NotExchanged::Failed(error)) => Err(failed(error)),
        }
    }

    /// The name in the parent folder is part of the cache: it is made to last before anything else is said.
    fn placed(&mut self) -> Result<(), Error> {
        self.in_place = true;
        let parent = &self.target.parent;
        system::sync(parent).map_err(Error::io("sync", parent))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.in_place {
            remove(&self.folder);
            remove_parents(&self.parents);
        }
    }
}

/// Sets the old cache aside, then puts the new one in place. A reader that comes between puts the old one back, and
/// the two steps begin again.
fn replace_in_two_steps(new: &Path, target: &Path, old: &Path) -> io::Result<()> {
    loop {
        remove(old);
        fs::rename(target, old)?;
        match rename_new(new, target) {
            Err(error) if is_occupied(&error) => {}
            Err(error) => {
                rename_new(old, target)?;
                return Err(error);
            }
            Ok(()) => return Ok(()),
        }
    }
}

fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory)
}

/// Makes the folder and those above it, and says which were not there.
fn make_parents(parent: &Path) -> Result<Vec<PathBuf>, Error> {
    let absent = |path: &&Path| *path != Path::new("") && path.symlink_metadata().is_err();
    let mut parents: Vec<PathBuf> = parent.ancestors().take_while(absent).map(Path::to_owned).collect();
    parents.reverse();
    if let Err(error) = fs::create_dir_all(parent) {
        remove_parents(&parents);
        return Err(Error::io("make the folder", parent)(error));
    }
    Ok(parents)
}

/// Removes folders that were made in vain, unless somebody has put something there.
fn remove_parents(parents: &[PathBuf]) {
    for parent in parents.iter().rev() {
        if fs::remove_dir(parent).is_err() {
            return;
        }
    }
}

fn remove(path: &Path) {
    // Whatever is in the way of this is in the way of nobody else; the next build tries again.
    let _: io::Result<()> = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the system cannot exchange two folders.
    #[test]
    fn two_steps_end_where_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["new", "target", "old"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("is"), name).unwrap();
        }
        replace_in_two_steps(&at("new"), &at("target"), &at("old")).unwrap();
        assert_eq!(fs::read_to_string(at("target/is")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("old/is")).unwrap(), "target");
        assert!(!at("new").exists());
    }

    #[test]
    fn two_steps_that_cannot_be_taken_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("target")).unwrap();
        assert!(replace_in_two_steps(&at("absent"), &at("target"), &at("old")).is_err());
        assert!(at("target").exists() && !at("old").exists());
    }
}
