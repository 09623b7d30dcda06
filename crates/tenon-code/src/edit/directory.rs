//! A directory below the root: reads files and replaces them atomically.
//!
//! A directory is opened beneath the root without following links, and its files relative to it: even if paths are renamed or
//! linked meanwhile, all writes stay below the root. A file is replaced by renaming a synced temporary file over it. A crash
//! leaves the old file and the temporary one, which the next process that writes into the directory removes.

#[cfg(not(unix))]
#[path = "directory/non_unix.rs"]
mod platform;
#[cfg(unix)]
#[path = "directory/unix.rs"]
mod platform;

pub(super) use platform::{DirectoryHandle, PreparedFile};
use tenon_contract::clock::Entropy;
use tenon_lsp::watch::UNFINISHED_EDIT;

/// A file at the time it was read.
#[derive(Debug)]
pub(super) struct FileSnapshot {
    pub(super) bytes: Vec<u8>,
    /// Whether its mode and the system allow writing.
    pub(super) writable: bool,
    stamp: platform::Stamp,
}

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum ReadFailure {
    NotAFile,
    TooLarge,
    Io(std::io::Error),
}

/// Why a file was not replaced.
#[derive(Debug)]
pub(super) enum WriteFailure {
    /// It changed since it was read.
    Changed,
    Io(std::io::Error),
}

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<std::io::Error> for WriteFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl DirectoryHandle {
    /// Replaces the file that was read, or creates a new one.
    pub(super) fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        found: Option<&FileSnapshot>,
        entropy: &Entropy,
    ) -> Result<(), WriteFailure> {
        let prepared = self.prepare(bytes, found, entropy)?;
        let done = self.commit(&prepared, name, found);
        if done.is_err() {
            self.discard(&prepared);
        }
        done
    }
}

/// The bytes of an open file, unless there are more than `limit`.
fn bounded(file: impl std::io::Read, length: u64, limit: u64) -> Result<Vec<u8>, ReadFailure> {
    if length > limit {
        return Err(ReadFailure::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // It may grow while it is read.
    std::io::Read::read_to_end(&mut std::io::Read::take(file, limit + 1), &mut bytes)?;
    if bytes.len() as u64 > limit { Err(ReadFailure::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use camino::Utf8Path;

    use super::*;

    fn root() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn path(folder: &tempfile::TempDir) -> &Utf8Path {
        Utf8Path::from_path(folder.path()).unwrap()
    }

    fn open(root: &tempfile::TempDir, below: &str) -> DirectoryHandle {
        DirectoryHandle::open(path(root), Utf8Path::new(below)).unwrap()
    }

    #[test]
    fn file_that_changed_since_it_was_read_is_not_replaced() {
        let root = root();
        fs::write(root.path().join("a"), "one").unwrap();
        let folder = open(&root, "");
        let found = folder.read("a", 100).unwrap().unwrap();
        fs::write(root.path().join("a"), "someone else's").unwrap();
        let replaced = folder.replace("a", b"two", Some(&found), &Entropy::system());
        assert!(matches!(replaced, Err(WriteFailure::Changed)), "{replaced:?}");
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "someone else's");
        let created = folder.replace("a", b"two", None, &Entropy::system());
        assert!(matches!(created, Err(WriteFailure::Changed)), "{created:?}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn created_directories_are_removed_on_failure() {
        let root = root();
        let (folder, created) = DirectoryHandle::create(path(&root), Utf8Path::new("a/b/c")).unwrap();
        folder.replace("f", b"x", None, &Entropy::system()).unwrap();
        fs::remove_file(root.path().join("a/b/c/f")).unwrap();
        drop(folder);
        created.undo();
        assert!(!root.path().join("a").exists());
        let (_, created) = DirectoryHandle::create(path(&root), Utf8Path::new("a/b")).unwrap();
        fs::write(root.path().join("a/other"), "").unwrap();
        created.undo();
        assert!(root.path().join("a/other").exists() && !root.path().join("a/b").exists());
    }

    #[test]
    fn leftovers_are_removed_unless_they_are_locked() {
        let root = root();
        let at = |name: &str| root.path().join(format!("{UNFINISHED_EDIT}{name}"));
        for name in ["dead", "alive"] {
            fs::write(at(name), "half").unwrap();
        }
        let alive = fs::File::open(at("alive")).unwrap();
        alive.lock().unwrap();
        open(&root, "").clean();
        assert!(!at("dead").exists() && at("alive").exists());
        assert_eq!(fs::read_to_string(at("alive")).unwrap(), "half");
    }

    #[cfg(unix)]
    #[test]
    fn links_below_the_root_are_not_followed() {
        let (root, outside) = (root(), root());
        fs::write(outside.path().join("f"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("f"), root.path().join("f")).unwrap();
        assert!(DirectoryHandle::open(path(&root), Utf8Path::new("out")).is_err());
        assert!(DirectoryHandle::create(path(&root), Utf8Path::new("out/new")).is_err());
        let folder = open(&root, "");
        assert!(folder.read("f", 100).is_err());
        assert!(matches!(folder.replace("f", b"", None, &Entropy::system()), Err(WriteFailure::Changed)));
        assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "secret");
        assert!(!outside.path().join("new").exists());
    }

    #[cfg(unix)]
    #[test]
    fn mode_is_preserved() {
        use std::os::unix::fs::PermissionsExt;
        let root = root();
        let file = root.path().join("run");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        let folder = open(&root, "");
        let found = folder.read("run", 100).unwrap().unwrap();
        folder.replace("run", b"two", Some(&found), &Entropy::system()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o751);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(!folder.read("run", 100).unwrap().unwrap().writable, "even for root");
    }
}
