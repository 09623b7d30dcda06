//! The last known state of all files of a tree, to find changes without events.

use std::collections::BTreeMap;
use std::fs::Metadata;

use camino::{Utf8Path, Utf8PathBuf};

#[cfg(not(unix))]
#[path = "file_table/non_unix.rs"]
mod platform;
#[cfg(unix)]
#[path = "file_table/unix.rs"]
mod platform;

/// A hash of a file's time, size and identity; it differs if the file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self(platform::parts(metadata).iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
            (hash ^ part).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        }))
    }
}

/// Identifies a folder while it exists.
pub(super) fn folder_number(metadata: &Metadata) -> (u64, u64) {
    platform::folder(metadata)
}

/// The files of one folder by their names.
pub(super) type Files = BTreeMap<Box<str>, Stamp>;

/// Files by folder, so that each folder's path is stored once. Folders are in byte order: comparing paths by their
/// components is slow.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    folders: BTreeMap<String, Files>,
}

impl FileTable {
    pub(super) fn add_folder(&mut self, folder: &Utf8Path) {
        if !self.has_folder(folder) {
            self.folders.insert(folder.to_string(), Files::new());
        }
    }

    /// Adds a folder with all its files.
    pub(super) fn put_folder(&mut self, folder: Utf8PathBuf, files: Files) {
        self.folders.insert(folder.into_string(), files);
    }

    pub(super) fn has_folder(&self, folder: &Utf8Path) -> bool {
        self.folders.contains_key(folder.as_str())
    }

    pub(super) fn stamp(&self, path: &Utf8Path) -> Option<Stamp> {
        self.folders.get(path.parent()?.as_str())?.get(path.file_name()?).copied()
    }

    /// Returns the previous stamp.
    pub(super) fn put(&mut self, path: &Utf8Path, stamp: Stamp) -> Option<Stamp> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return None;
        };
        self.add_folder(folder);
        self.folders.get_mut(folder.as_str())?.insert(name.into(), stamp)
    }

    pub(super) fn remove_file(&mut self, path: &Utf8Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        self.folders.get_mut(folder.as_str()).is_some_and(|files| files.remove(name).is_some())
    }

    /// Removes and returns a folder with everything below it.
    pub(super) fn take_folder(&mut self, folder: &Utf8Path) -> Self {
        let inside = format!("{}/", folder.as_str().trim_end_matches('/'));
        let below = self.folders.range(inside.clone()..).map(|(one, _)| one);
        let below = below.take_while(|one| one.starts_with(&inside));
        let below: Vec<String> = std::iter::once(folder.to_string()).chain(below.cloned()).collect();
        let folders = below.into_iter().filter_map(|one| self.folders.remove_entry(&one)).collect();
        Self { folders }
    }

    /// Adds all files of another table, which are newer.
    pub(super) fn absorb(&mut self, other: Self) {
        if self.folders.is_empty() {
            *self = other;
            return;
        }
        for (folder, files) in other.folders {
            self.folders.entry(folder).or_default().extend(files);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Utf8PathBuf, Stamp)> {
        self.folders.iter().flat_map(|(folder, files)| {
            files.iter().map(move |(name, stamp)| (Utf8Path::new(folder).join(&**name), *stamp))
        })
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &Utf8Path> {
        self.folders.keys().map(Utf8Path::new)
    }

    pub(super) fn paths(&self) -> Vec<Utf8PathBuf> {
        let mut paths: Vec<Utf8PathBuf> = self.iter().map(|(path, _)| path).collect();
        paths.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_folder_removes_the_folder_and_everything_below_it() {
        let mut table = FileTable::default();
        for path in ["/r/a/x", "/r/a/b/y", "/r/ab/z", "/r/w"] {
            table.put(Utf8Path::new(path), Stamp(1));
        }
        let taken = table.take_folder(Utf8Path::new("/r/a"));
        assert_eq!(taken.paths(), ["/r/a/b/y", "/r/a/x"]);
        assert_eq!(table.paths(), ["/r/ab/z", "/r/w"]);
        table.absorb(taken);
        assert_eq!(table.paths().len(), 4);
        assert_eq!(table.put(Utf8Path::new("/r/w"), Stamp(2)), Some(Stamp(1)));
        assert!(table.remove_file(Utf8Path::new("/r/w")) && !table.remove_file(Utf8Path::new("/r/w")));
    }
}
