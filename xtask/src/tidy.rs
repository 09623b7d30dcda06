//! The rules of the tree that no compiler checks.
//!
//! Which crate may depend on which, a `//!` sentence at the top of each file, no unfinished code, no paths of one machine.
//! `cargo xtask tidy` prints every offence; the test below fails on any.

mod arrows;
mod invariants;
mod lines;
mod links;
mod manifests;
mod phrases;
mod type_names;
mod unix;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Error, log, print, repository};

/// One broken rule at one location.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    location: String,
    rule: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.rule)
    }
}

/// A text file of the tree.
struct SourceFile {
    /// Relative to the repository, with `/`.
    path: String,
    text: String,
}

impl SourceFile {
    fn offence(&self, line: usize, rule: impl Into<String>) -> Offence {
        Offence { location: format!("{}:{line}", self.path), rule: rule.into() }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

pub(crate) fn run() -> Result<bool, Error> {
    let offences = offences()?;
    for offence in &offences {
        print(&offence.to_string());
    }
    if offences.is_empty() {
        log("the tree is tidy");
    }
    Ok(offences.is_empty())
}

/// Every offence in the tree, sorted.
fn offences() -> Result<Vec<Offence>, Error> {
    let mut offences = arrows::check()?;
    let files = files(repository())?;
    for file in &files {
        lines::check(file, &mut offences);
    }
    invariants::check(&files, &mut offences);
    links::check(&files, &mut offences);
    manifests::check(&files, &mut offences);
    phrases::check(&files, &mut offences);
    type_names::check(&files, &mut offences);
    unix::check(&files, &mut offences);
    offences.sort();
    offences.dedup();
    Ok(offences)
}

/// The text files below `root`, sorted, without build output and installed packages.
fn files(root: &Path) -> Result<Vec<SourceFile>, Error> {
    const SKIPPED: [&str; 6] = [".git", "target", "node_modules", ".venv", "__pycache__", ".cache"];
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            // In a linked worktree `.git` is a file.
            if SKIPPED.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.extend(read(root, entry.path()));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Reads a file as text. `None` if it is not UTF-8.
fn read(root: &Path, path: PathBuf) -> Option<SourceFile> {
    let text = fs::read_to_string(&path).ok()?;
    let path = path.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some(SourceFile { path, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let offences: Vec<String> = offences().unwrap().iter().map(Offence::to_string).collect();
        assert!(offences.is_empty(), "\n{}", offences.join("\n"));
    }
}
