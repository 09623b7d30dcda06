//! The private folder of the cookie, and the folders that killed processes left behind.
//!
//! The folder is locked while it is in use. The kernel releases the lock however its holder ends, so a folder without a lock
//! is a leftover, and the next watch removes it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

const PREFIX: &str = "tenon-watch-";

/// How often to try: another process may take a new folder for a leftover before it is locked.
const ATTEMPTS: usize = 10;

/// A folder that only its owner uses.
pub(super) struct CookieFolder {
    folder: TempDir,
    /// `None` where folders cannot be locked.
    _lock: Option<File>,
}

impl CookieFolder {
    /// In memory if possible: a rename there never waits for a disk. The order of events does not depend on where the
    /// files are.
    pub(super) fn create() -> io::Result<Self> {
        Self::create_in(Path::new("/dev/shm")).or_else(|_| Self::create_in(&std::env::temp_dir()))
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let folder = private(Builder::new().prefix(PREFIX)).tempdir_in(parent)?;
            if let Some(locked) = Self::locked(folder) {
                return Ok(locked);
            }
        }
        Err(io::Error::other("another process removes new folders"))
    }

    /// `None` if another process removed the folder or is about to.
    fn locked(folder: TempDir) -> Option<Self> {
        let lock = File::open(folder.path()).ok();
        let is_ours = lock.as_ref().is_none_or(|lock| lock.try_lock().is_ok()) && folder.path().is_dir();
        is_ours.then_some(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes what killed processes left behind, next to this folder.
    pub(super) fn remove_leftovers(parent: &Path) {
        for leftover in leftovers(parent) {
            // The lock is held until the folder is gone, so that no process uses it.
            if let Ok(lock) = File::open(&leftover)
                && lock.try_lock().is_ok()
            {
                let _ = std::fs::remove_dir_all(&leftover);
            }
        }
    }
}

fn leftovers(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    named
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(unix)]
fn private<'a, 'b>(builder: &'a mut Builder<'b, 'b>) -> &'a mut Builder<'b, 'b> {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn private<'a, 'b>(builder: &'a mut Builder<'b, 'b>) -> &'a mut Builder<'b, 'b> {
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_another_process_removes_before_it_is_locked_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::remove_dir(folder.path()).unwrap();
        assert!(CookieFolder::locked(folder).is_none());
    }

    #[test]
    fn leftovers_are_removed_and_folders_in_use_stay() {
        let parent = tempfile::tempdir().unwrap();
        let used = CookieFolder::create_in(parent.path()).unwrap();
        let leftover = parent.path().join(format!("{PREFIX}left"));
        std::fs::create_dir(&leftover).unwrap();
        std::fs::write(leftover.join("7"), "").unwrap();
        let other = parent.path().join("other");
        std::fs::create_dir(&other).unwrap();
        CookieFolder::remove_leftovers(parent.path());
        assert!(used.path().is_dir() && other.is_dir() && !leftover.exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
