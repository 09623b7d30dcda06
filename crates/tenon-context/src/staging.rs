//! Moves a finished cache into place atomically.
//!
//! A build writes to a hidden sibling of the target, `.tenon-build-<key>-<process>-<n>`, and holds a lock on it that
//! ends with the process. An unlocked sibling is left over from a killed build, and the next build of the same target
//! removes it. The finished folder is renamed into place; an existing cache is exchanged with it atomically and then
//! removed. Without atomic exchange, the old cache is first renamed to `.tenon-old-<key>`; if the process dies at that
//! point, the next reader or build rolls the replacement back.
//!
//! `<key>` is a hash of the target's name: short, and different for each cache in a folder.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tenon_contract::id::sha256_hex;

use crate::atomic_rename::{AtomicRenameError, exchange, rename_new};
use crate::error::Error;
use crate::manifest::DOCUMENTS;
use crate::system::{self, identity};

const BUILD: &str = ".tenon-build-";
const OLD: &str = ".tenon-old-";

/// Threads that remove the documents of an old cache.
const REMOVING_THREADS: usize = 8;

/// Whether a name belongs to an unfinished or abandoned build.
pub(crate) fn is_staging_name(name: &OsStr) -> bool {
    [BUILD, OLD].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// Restores the old cache after an interrupted replacement. Returns whether it did.
pub(crate) fn roll_back_replacement(cache: &Path) -> bool {
    Target::of(cache).is_some_and(|target| rename_new(&target.old(), cache).is_ok())
}

/// The path of the cache to build: a name in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    parent: PathBuf,
    name: OsString,
}

impl Target {
    /// `None` for paths without a final name, such as `/` and `..`.
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

    /// Removes a folder, first under a name that no build uses: another build may remove it at the same time, and a third
    /// may then begin with its name.
    fn discard(&self, folder: &Path) {
        for n in 0_u64.. {
            let discarded = self.parent.join(format!("{}removed-{}-{n}", self.builds(), std::process::id()));
            match rename_new(folder, &discarded) {
                Err(error) if is_occupied(&error) => continue,
                // Another build has removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => return,
                Err(_) => return remove(folder),
                Ok(()) => {}
            }
            // A file system may take a millisecond for each file, and several at once.
            system::remove_files(&discarded.join(DOCUMENTS), REMOVING_THREADS);
            return remove(&discarded);
        }
    }

    /// Removes leftovers of killed builds. Failures are ignored: the next build tries again.
    fn remove_leftovers(&self) {
        let builds = self.builds();
        for entry in fs::read_dir(&self.parent).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(builds.as_bytes()) {
                let path = entry.path();
                // The lock is held until the folder is removed, so that no other build can take it.
                let folder = system::open_folder(&path).ok().flatten();
                if folder.as_ref().is_some_and(|folder| folder.try_lock().is_ok()) {
                    self.discard(&path);
                }
            }
        }
        if self.path().symlink_metadata().is_ok() {
            remove(&self.old());
        }
    }
}

/// A cache folder under construction. Removed on drop unless it was moved into place.
pub(crate) struct Staging {
    target: Target,
    folder: PathBuf,
    /// Parent folders that this build created, outermost first.
    parents: Vec<PathBuf>,
    in_place: bool,
    /// Held while the folder is under construction; absent if folders cannot be locked.
    _lock: Option<File>,
}

impl Staging {
    /// Creates an empty folder next to the target, and missing parent folders.
    pub(crate) fn new(target: Target) -> Result<Self, Error> {
        let parents = make_parents(&target.parent)?;
        target.remove_leftovers();
        match Self::create(&target) {
            Ok((folder, lock)) => Ok(Self { target, folder, parents, in_place: false, _lock: lock }),
            Err(error) => {
                remove_parents(&parents);
                Err(Error::io("write to", &target.parent)(error))
            }
        }
    }

    fn create(target: &Target) -> io::Result<(PathBuf, Option<File>)> {
        let prefix = target.builds();
        for n in 0_u64.. {
            let folder = target.parent.join(format!("{prefix}{}-{n}", std::process::id()));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            let Some(lock) = system::open_folder(&folder)? else {
                return Ok((folder, None));
            };
            // Before it was locked, another build may have taken the folder for a leftover. File systems without
            // locks return another error; there, no folder is ever taken for a leftover.
            let locked_elsewhere = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            let still_exists = folder.symlink_metadata().is_ok_and(|current| {
                lock.metadata().is_ok_and(|locked| identity(&locked) == identity(&current))
            });
            if !locked_elsewhere && still_exists {
                return Ok((folder, Some(lock)));
            }
        }
        unreachable!("2^64 attempts cannot all fail")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Moves the folder to the target, which must not exist.
    pub(crate) fn place_new(&mut self) -> Result<(), Error> {
        let target = self.target.path();
        match rename_new(&self.folder, &target) {
            Err(error) if is_occupied(&error) => Err(Error::TargetExists { cache: target }),
            Err(error) => Err(Error::io("create", target)(error)),
            Ok(()) => self.placed(),
        }
    }

    /// Moves the folder to the target and removes the old cache.
    pub(crate) fn replace(&mut self) -> Result<(), Error> {
        let target = self.target.path();
        let failed = |error| Error::io("replace", &target)(error);
        match exchange(&self.folder, &target) {
            Ok(()) => {
                self.placed()?;
                self.target.discard(&self.folder);
                Ok(())
            }
            Err(AtomicRenameError::Unsupported) => {
                replace_in_two_steps(&self.folder, &target, &self.target.old()).map_err(failed)?;
                self.placed()?;
                self.target.discard(&self.target.old());
                Ok(())
            }
            Err(AtomicRenameError::Failed(error)) => Err(failed(error)),
        }
    }

    /// Syncs the parent folder, which contains the new name, before success is reported.
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

/// Moves the old cache away, then the new one into place. If a reader rolls back in between, starts over.
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

/// Creates the folder and its missing parents. Returns the created ones.
fn make_parents(parent: &Path) -> Result<Vec<PathBuf>, Error> {
    let absent = |path: &&Path| *path != Path::new("") && path.symlink_metadata().is_err();
    let mut parents: Vec<PathBuf> = parent.ancestors().take_while(absent).map(Path::to_owned).collect();
    parents.reverse();
    if let Err(error) = fs::create_dir_all(parent) {
        remove_parents(&parents);
        return Err(Error::io("create the folder", parent)(error));
    }
    Ok(parents)
}

/// Removes created parent folders that are still empty.
fn remove_parents(parents: &[PathBuf]) {
    for parent in parents.iter().rev() {
        if fs::remove_dir(parent).is_err() {
            return;
        }
    }
}

fn remove(path: &Path) {
    // Best effort: the next build tries again.
    let _: io::Result<()> = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path for systems without atomic exchange.
    #[test]
    fn replacement_in_two_steps_moves_both_caches() {
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

    /// The documents are removed first, by several threads, which must not leave the folder.
    #[cfg(unix)]
    #[test]
    fn removal_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("kept")).unwrap();
        fs::write(at("kept/a"), "a").unwrap();
        for cache in ["linked", "real"] {
            fs::create_dir(at(cache)).unwrap();
        }
        std::os::unix::fs::symlink(at("kept"), at("linked/documents")).unwrap();
        fs::create_dir_all(at("real/documents/inner")).unwrap();
        for n in 0..100 {
            fs::write(at("real/documents").join(n.to_string()), "x").unwrap();
        }
        std::os::unix::fs::symlink(at("kept/a"), at("real/documents/link")).unwrap();
        let target = Target::of(&at("cache")).unwrap();
        target.discard(&at("linked"));
        target.discard(&at("real"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(at("kept/a").exists() && !at("linked").exists() && !at("real").exists());
    }

    #[test]
    fn failed_replacement_in_two_steps_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("target")).unwrap();
        assert!(replace_in_two_steps(&at("absent"), &at("target"), &at("old")).is_err());
        assert!(at("target").exists() && !at("old").exists());
    }
}
