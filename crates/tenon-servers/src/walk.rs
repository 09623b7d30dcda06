//! Walks the files of a workspace that [`IgnoreRules`] do not exclude, always in the same order.
//!
//! Links are not followed: they could leave the workspace or form cycles.

use camino::{Utf8Path, Utf8PathBuf};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::ignore_rules::{IgnoreRules, Listing};

/// An invalid ignore pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid ignore pattern `{pattern}`: {why}")]
pub struct BadPattern {
    pub pattern: String,
    pub why: String,
}

/// The root to walk and the patterns to skip.
#[derive(Debug, Clone)]
pub struct Walk {
    root: Utf8PathBuf,
    excluded: Gitignore,
}

impl Walk {
    /// `patterns` have the format of `.gitignore`, relative to the root.
    pub fn new(root: &Utf8Path, patterns: &[String]) -> Result<Self, BadPattern> {
        let mut builder = GitignoreBuilder::new(root);
        for pattern in patterns {
            builder
                .add_line(None, pattern)
                .map_err(|error| BadPattern { pattern: pattern.clone(), why: error.to_string() })?;
        }
        let excluded = builder
            .build()
            .map_err(|error| BadPattern { pattern: patterns.join(" "), why: error.to_string() })?;
        Ok(Self { root: root.to_owned(), excluded })
    }

    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// All files of the workspace, folder by folder, in byte order of their names. Includes hidden files in visible folders,
    /// since configuration is often hidden.
    pub fn files(&self) -> impl Iterator<Item = Utf8PathBuf> + use<> {
        self.files_below(&self.root)
    }

    /// The same for one folder of the workspace.
    pub fn files_below(&self, folder: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
        let mut rules = IgnoreRules::for_root(&self.root, Some(self.excluded.clone()));
        for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
            rules.load(above);
        }
        let mut walk = FileWalk { rules, folders: Vec::new() };
        if let Ok(listing) = walk.rules.list(folder) {
            walk.enter(listing);
        }
        walk
    }

    /// Whether the configuration's patterns exclude a path or a folder above it.
    pub fn excludes(&self, file: &Utf8Path) -> bool {
        file.starts_with(&self.root) && self.excluded.matched_path_or_any_parents(file, false).is_ignore()
    }
}

/// A walk in progress.
struct FileWalk {
    rules: IgnoreRules,
    /// The entries that are left in the current folder and in those above it, the next one last.
    folders: Vec<Vec<FileEntry>>,
}

struct FileEntry {
    path: Utf8PathBuf,
    is_folder: bool,
}

impl FileWalk {
    fn enter(&mut self, listing: Listing) {
        let mut entries: Vec<FileEntry> = listing
            .entries
            .into_iter()
            .filter(|(_, kind)| kind.is_dir() || kind.is_file())
            .map(|(entry, kind)| FileEntry { path: entry.into_path(), is_folder: kind.is_dir() })
            .collect();
        entries.sort_unstable_by(|one, other| other.path.file_name().cmp(&one.path.file_name()));
        self.folders.push(entries);
    }
}

impl Iterator for FileWalk {
    type Item = Utf8PathBuf;

    fn next(&mut self) -> Option<Utf8PathBuf> {
        loop {
            match self.folders.last_mut()?.pop() {
                Some(FileEntry { path, is_folder: false }) => return Some(path),
                Some(FileEntry { path, .. }) => match self.rules.list(&path) {
                    Ok(listing) if !listing.is_marked => self.enter(listing),
                    Ok(_) | Err(_) => {}
                },
                None => {
                    self.folders.pop();
                }
            }
        }
    }
}
