//! Errors of files that import a deleted file.
//!
//! Servers resolve imports on disk, where a deleted file is missing for the text before, too. Diagnostics that name it cannot
//! be older than its deletion.

use camino::Utf8Path;
use tenon_lsp::model::Diagnostic;
use tenon_lsp::orchestrator::{ChangedText, FileCheck};

/// The names by which other files import the deleted files of a change.
#[derive(Debug, Default)]
pub(crate) struct DeletedModules<'a>(Vec<&'a str>);

impl<'a> DeletedModules<'a> {
    pub(crate) fn new(changed: &'a [ChangedText]) -> Self {
        let deleted = changed.iter().filter(|change| change.after.is_none());
        Self(deleted.filter_map(|change| module_name(change.path.as_path())).collect())
    }

    /// The diagnostics of a file, without those before the change that name a deleted file.
    pub(crate) fn remove_from(&self, file: &FileCheck) -> FileCheck {
        let mut file = file.clone();
        if self.0.is_empty() {
            return file;
        }
        for before in file.servers.iter_mut().filter_map(|server| server.before.as_mut()) {
            before.retain(|found| !self.is_named_by(found));
        }
        file
    }

    fn is_named_by(&self, found: &Diagnostic) -> bool {
        let is_word = |one: char| one.is_alphanumeric() || one == '_';
        found.message.split(|one| !is_word(one)).any(|word| self.0.contains(&word))
    }
}

/// A file's own name, or that of the folder for an index file.
fn module_name(file: &Utf8Path) -> Option<&str> {
    match file.file_stem()? {
        "__init__" | "index" | "mod" => file.parent()?.file_name(),
        name => Some(name),
    }
}
