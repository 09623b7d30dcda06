//! Finds files by the names in them: what references cannot find, because the server does not have the old text any more, does
//! not support references, or does not count the files to the project.

use std::sync::Arc;

use camino::Utf8Path;
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::{Inner, MAX_TEXT_BYTES, Orchestrator};
use crate::call_context::CallContext;
use crate::client::Client;
use crate::identifiers;

/// Words with which an import begins, or that it contains.
pub(super) const IMPORT_WORDS: [&str; 6] = ["import", "from", "export", "use", "include", "require"];

/// What files are searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NameSearch {
    /// Any of these identifiers.
    pub(super) words: Vec<String>,
    /// An import of a module.
    pub(super) module: Option<ModuleImport>,
}

/// An import of a module, and one of these names, unless there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModuleImport {
    /// The names by which imports may call the module.
    pub(super) modules: Vec<String>,
    /// Whether a relative import of a folder may mean it.
    pub(super) is_folder: bool,
    pub(super) names: Vec<String>,
}

/// The files that were found, and how many there was no time for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedFiles {
    pub(super) files: Vec<WorkspacePath>,
    pub(super) not_searched: usize,
}

impl NameSearch {
    pub(super) fn words(words: Vec<String>) -> Self {
        Self { words, module: None }
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.module.is_none()
    }

    fn matches(&self, text: &str) -> bool {
        self.words.iter().any(|word| identifiers::contains(text, word))
            || self.module.as_ref().is_some_and(|module| module.matches(text))
    }
}

impl ModuleImport {
    pub(super) fn of(path: &Utf8Path, names: Vec<String>) -> Self {
        let stem = path.file_stem().unwrap_or_default();
        let is_folder = ["__init__", "index", "mod", "lib"].contains(&stem);
        let folder = path.parent().and_then(Utf8Path::file_name).filter(|_| is_folder);
        let modules = [Some(stem), folder].into_iter().flatten().map(str::to_owned).collect();
        Self { modules, is_folder, names }
    }

    fn matches(&self, text: &str) -> bool {
        let named = |line: &str| self.modules.iter().any(|module| identifiers::contains(line, module));
        let relative = |line: &str| {
            let mut quoted = line.split(['\'', '"', ' ']).filter(|part| part.starts_with('.'));
            self.is_folder && quoted.any(|part| part.chars().all(|c| c == '.' || c == '/'))
        };
        let imports = |line: &str| IMPORT_WORDS.iter().any(|word| identifiers::contains(line, word));
        (self.names.is_empty() || self.names.iter().any(|name| identifiers::contains(text, name)))
            && text.lines().any(|line| (named(line) || relative(line)) && imports(line))
    }
}

impl Orchestrator {
    /// The files of a server, other than the edited one, that match.
    pub(super) async fn files_named(
        &self,
        client: &Arc<Client>,
        edited: &WorkspacePath,
        search: NameSearch,
        call: &CallContext,
    ) -> NamedFiles {
        if search.is_empty() {
            return NamedFiles::default();
        }
        let (inner, client, edited, until) =
            (Arc::clone(&self.0), Arc::clone(client), edited.clone(), call.deadline);
        spawn_blocking(move || inner.files_named(&client, &edited, &search, until)).await.unwrap_or_default()
    }

    /// Those of these files that contain an identifier.
    pub(super) async fn files_containing(
        &self,
        files: Vec<WorkspacePath>,
        word: String,
    ) -> Vec<WorkspacePath> {
        let inner = Arc::clone(&self.0);
        let search = NameSearch::words(vec![word]);
        let matching =
            spawn_blocking(move || files.into_iter().filter(|path| inner.has_match(path, &search)).collect());
        matching.await.unwrap_or_default()
    }
}

impl Inner {
    fn files_named(
        &self,
        client: &Client,
        edited: &WorkspacePath,
        search: &NameSearch,
        until: Instant,
    ) -> NamedFiles {
        let mut found = NamedFiles::default();
        for file in self.files() {
            if client.entry().language_id(&file).is_none() || file == edited.as_path() {
                continue;
            }
            if Instant::now() >= until {
                found.not_searched += 1;
                continue;
            }
            if let Ok(path) = self.gate.admit_path(&file)
                && self.has_match(&path, search)
            {
                found.files.push(path);
            }
        }
        found
    }

    /// Servers see no larger files.
    fn has_match(&self, path: &WorkspacePath, search: &NameSearch) -> bool {
        self.gate.read_to_string(path, MAX_TEXT_BYTES).is_ok_and(|text| search.matches(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_of_a_module_are_recognized() {
        let module = |path: &str, name: &str| ModuleImport::of(Utf8Path::new(path), vec![name.to_owned()]);
        let app = module("/x/flask/app.py", "Flask");
        assert!(app.matches("from flask.app import Flask\n"));
        assert!(app.matches("from .app import (\n    Flask,\n)\n"));
        assert!(!app.matches("from .apps import Flask\n"));
        assert!(!app.matches("from .app import other\n"));
        let package = module("/x/flask/__init__.py", "Flask");
        assert!(package.matches("from . import Flask\n") && package.matches("from flask import Flask\n"));
        let index = module("/x/src/index.ts", "take");
        assert!(
            index.matches("import { take } from '..';") && index.matches("import { take } from '../index'")
        );
        assert!(!index.matches("import { take } from './take'"));
    }
}
