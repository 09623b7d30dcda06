//! Creates files, links and folders from one string.
//!
//! ```text
//! //- src/a.py
//! def f(): ...
//! //- link -> src/a.py
//! //- empty/
//! ```
//!
//! A line `//- path` starts a file, `//- path -> target` is a symbolic link and `//- path/` an empty folder. Common
//! indentation is removed, so that the string can be indented inside a test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A folder that a test may write to.
#[derive(Debug, Clone)]
pub struct FileTree {
    root: PathBuf,
}

impl FileTree {
    /// The folder at `root`, created if it does not exist.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        fs::create_dir_all(&root).unwrap_or_else(|error| panic!("cannot make {}: {error}", root.display()));
        Self { root }
    }

    /// Creates what `description` lists.
    pub fn fill(&self, description: &str) {
        for entry in parse(description) {
            match entry {
                Entry::File { path, text } => self.write(path, &text),
                Entry::Folder { path } => {
                    fs::create_dir_all(self.path(path)).expect("a fixture's folder can be made");
                }
                Entry::Link { path, target } => {
                    self.make_parent(path);
                    symlink(target, self.path(path)).expect("a fixture's link can be made");
                }
            }
        }
    }

    /// Copies every file of the folder `source`.
    pub fn copy_from(&self, source: &Path) {
        let mut folders = vec![source.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries =
                fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            for entry in entries {
                let path = entry.expect("a fixture's folder can be listed").path();
                let relative = path.strip_prefix(source).expect("the walk stays below its start").to_owned();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    self.make_parent(&relative);
                    fs::copy(&path, self.path(relative)).expect("a fixture's file can be copied");
                }
            }
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    pub fn write(&self, relative: impl AsRef<Path>, text: &str) {
        let relative = relative.as_ref();
        self.make_parent(relative);
        let written = fs::write(self.path(relative), text);
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", relative.display()));
    }

    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        let relative = relative.as_ref();
        let text = fs::read_to_string(self.path(relative));
        text.unwrap_or_else(|error| panic!("cannot read {}: {error}", relative.display()))
    }

    fn make_parent(&self, relative: impl AsRef<Path>) {
        let path = self.path(relative);
        let parent = path.parent().expect("a path below the root has a parent");
        fs::create_dir_all(parent).expect("a fixture's folder can be made");
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    File { path: &'a str, text: String },
    Folder { path: &'a str },
    Link { path: &'a str, target: &'a str },
}

fn parse(description: &str) -> Vec<Entry<'_>> {
    let written = |line: &&str| !line.trim().is_empty();
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let common = description.lines().filter(written).map(indentation).min().unwrap_or(0);
    let mut entries = Vec::new();
    for line in description.lines() {
        let line = line.get(common..).unwrap_or("");
        match (line.strip_prefix("//- "), entries.last_mut()) {
            (Some(marker), _) => entries.push(start(marker.trim())),
            (None, Some(Entry::File { text, .. })) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {
                assert!(line.trim().is_empty(), "a fixture starts with `//- path`, not with `{line}`")
            }
        }
    }
    entries
}

fn start(marker: &str) -> Entry<'_> {
    if let Some((path, target)) = marker.split_once(" -> ") {
        return Entry::Link { path, target };
    }
    match marker.strip_suffix('/') {
        Some(path) => Entry::Folder { path },
        None => Entry::File { path: marker, text: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository_root;

    #[test]
    fn description_creates_files_links_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let tree = FileTree::at(folder.path().join("w"));
        tree.fill(
            "
            //- src/a.py
            def f():
                return 1

            //- src/b.py
            //- link -> src/a.py
            //- empty/
            ",
        );
        assert_eq!(tree.read("src/a.py"), "def f():\n    return 1\n\n");
        assert_eq!(tree.read("src/b.py"), "");
        assert_eq!(tree.read("link"), tree.read("src/a.py"));
        assert!(tree.path("empty").is_dir());
    }

    #[test]
    #[should_panic(expected = "a fixture starts with")]
    fn text_before_the_first_file_is_rejected() {
        parse("stray\n//- a\n");
    }

    #[test]
    fn folders_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let tree = FileTree::at(folder.path());
        tree.copy_from(&repository_root().join("examples/polyglot"));
        assert!(tree.path("python/parcel/returns.py").is_file());
        assert!(tree.path("web/src/returns.ts").is_file());
    }
}
