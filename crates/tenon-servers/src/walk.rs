//! Walks the files of a workspace that are not ignored and not in hidden folders, always in the same order.
//!
//! Ignore files (`.gitignore`, `.ignore`, git's own excludes) apply even without a repository, and so do the patterns of
//! the configuration. Folders that tools fill are always skipped: `node_modules`, virtualenvs and caches (`CACHEDIR.TAG`).
//! Links are not followed: they could leave the workspace or form cycles.

use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

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
        let excluded = self.excluded.clone();
        WalkBuilder::new(folder)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .hidden(false)
            .filter_entry(move |entry| {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                let counts = || !(is_folder && (hidden || is_filled_by_tools(entry.path())));
                entry.depth() == 0 || counts() && !excluded.matched(entry.path(), is_folder).is_ignore()
            })
            .build()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok())
    }

    /// Whether the configuration's patterns exclude a path or a folder above it.
    pub fn excludes(&self, file: &Utf8Path) -> bool {
        file.starts_with(&self.root) && self.excluded.matched_path_or_any_parents(file, false).is_ignore()
    }
}

fn is_filled_by_tools(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "node_modules")
        || ["pyvenv.cfg", "CACHEDIR.TAG"].iter().any(|mark| folder.join(mark).is_file())
}
