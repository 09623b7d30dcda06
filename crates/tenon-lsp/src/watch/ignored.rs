//! Which paths are no part of the workspace: ignore files, version control, caches.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Folders that hold copies, caches or history, whether or not someone ignores them.
const NEVER: [&str; 10] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".cache",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
];

/// The files that say what to ignore, the stronger one last.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The ignore rules of one tree, read as its folders are walked.
#[derive(Debug, Default)]
pub(super) struct Rules {
    by_folder: BTreeMap<Utf8PathBuf, Gitignore>,
    /// The user's own, and the repository's private ones; weaker than all others.
    general: Vec<Gitignore>,
}

impl Rules {
    /// The rules from above a root, and those that stand in no folder.
    pub(super) fn for_root(root: &Utf8Path) -> Self {
        let mut rules = Self { by_folder: BTreeMap::new(), general: vec![Gitignore::global().0] };
        for folder in root.ancestors() {
            if folder != root {
                rules.load(folder);
            }
            let exclude = folder.join(".git/info/exclude");
            if exclude.is_file() {
                let mut builder = GitignoreBuilder::new(folder);
                builder.add(exclude);
                rules.general.extend(builder.build());
            }
        }
        rules
    }

    /// Reads the rule files of a folder.
    pub(super) fn load(&mut self, folder: &Utf8Path) {
        let mut builder = GitignoreBuilder::new(folder);
        let mut any = false;
        for name in RULE_FILES {
            let file = folder.join(name);
            if file.is_file() {
                // A pattern that is none is left out; the others count.
                builder.add(file);
                any = true;
            }
        }
        if any && let Ok(rules) = builder.build() {
            self.by_folder.insert(folder.to_owned(), rules);
        }
    }

    /// Whether this path is a rule file, so that a change of it changes what is ignored.
    pub(super) fn is_rule_file(path: &Utf8Path) -> bool {
        path.file_name().is_some_and(|name| RULE_FILES.contains(&name))
    }

    /// Whether a path in a folder that is not ignored is ignored itself. The nearest rule decides.
    pub(super) fn is_ignored(&self, path: &Utf8Path, is_folder: bool) -> bool {
        if is_folder && path.file_name().is_some_and(|name| NEVER.contains(&name)) {
            return true;
        }
        let nearest = path.ancestors().skip(1).filter_map(|folder| self.by_folder.get(folder));
        for rules in nearest.chain(&self.general) {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}
