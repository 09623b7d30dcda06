//! Which paths are excluded from the workspace: ignored, hidden, or filled by tools. The same rules as
//! [`tenon_servers::walk`], for single paths.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The ignore files; later ones take precedence.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Files that mark the folder they are in as a virtualenv or a cache.
const MARKS: [&str; 2] = ["pyvenv.cfg", "CACHEDIR.TAG"];

/// The ignore rules of one tree, read as its folders are walked.
#[derive(Debug, Default)]
pub(super) struct Rules {
    by_folder: BTreeMap<Utf8PathBuf, Gitignore>,
    /// From the configuration; these take precedence over all others.
    configured: Option<Gitignore>,
    /// The user's global rules and the repository's private ones; all others take precedence.
    general: Vec<Gitignore>,
}

impl Rules {
    /// The rules from above a root, and the global ones.
    pub(super) fn for_root(root: &Utf8Path, patterns: &[String]) -> Self {
        let mut configured = GitignoreBuilder::new(root);
        for pattern in patterns {
            // The configuration was validated; an invalid pattern excludes nothing.
            let _ = configured.add_line(None, pattern);
        }
        let mut rules = Self {
            by_folder: BTreeMap::new(),
            configured: configured.build().ok().filter(|rules| !rules.is_empty()),
            general: vec![Gitignore::global().0],
        };
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
                // Invalid patterns are skipped.
                builder.add(file);
                any = true;
            }
        }
        if any && let Ok(rules) = builder.build() {
            self.by_folder.insert(folder.to_owned(), rules);
        }
    }

    /// Whether a change of this file changes what is ignored.
    pub(super) fn is_rule_file(path: &Utf8Path) -> bool {
        path.file_name().is_some_and(|name| RULE_FILES.contains(&name) || MARKS.contains(&name))
    }

    /// Whether a path is ignored, given that its folder is not. The nearest rule decides.
    pub(super) fn is_ignored(&self, path: &Utf8Path, is_folder: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        if is_folder && (name.starts_with('.') || name == "node_modules") {
            return true;
        }
        if self.configured.as_ref().is_some_and(|rules| rules.matched(path, is_folder).is_ignore()) {
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
        is_folder && MARKS.iter().any(|mark| path.join(mark).is_file())
    }
}
