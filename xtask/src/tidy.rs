//! The rules of the tree that no compiler checks.
//!
//! They keep what the design promises: which crate may know which, one sentence on top of each
//! file, nothing half done, nothing of one machine. `cargo xtask tidy` prints every offence; the
//! test below fails on any.

mod arrows;
mod lines;
mod links;
mod unix;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::shell::{Failure, print, repository, say};

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    place: String,
    rule: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
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
        Offence { place: format!("{}:{line}", self.path), rule: rule.into() }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

pub(crate) fn run() -> Result<ExitCode, Failure> {
    let offences = offences()?;
    for offence in &offences {
        print(&offence.to_string());
    }
    if offences.is_empty() {
        say("the tree is tidy");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Every offence in the tree, sorted.
fn offences() -> Result<Vec<Offence>, Failure> {
    let mut offences = arrows::check()?;
    let files = files(repository())?;
    for file in &files {
        lines::check(file, &mut offences);
    }
    links::check(&files, &mut offences);
    unix::check(&files, &mut offences);
    offences.sort();
    offences.dedup();
    Ok(offences)
}

/// The text files below `root`, sorted, without what tools build or install.
fn files(root: &Path) -> Result<Vec<SourceFile>, Failure> {
    const SKIPPED: [&str; 6] = [".git", "target", "node_modules", ".venv", "__pycache__", ".cache"];
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.extend(read(root, entry.path()));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// A file as text; what is not UTF-8 has no lines to check.
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
