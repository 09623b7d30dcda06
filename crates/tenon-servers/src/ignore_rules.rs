//! Which paths are excluded from a workspace: ignored, in hidden folders, or filled by tools.
//!
//! Ignore files (`.gitignore`, `.ignore`, git's own excludes) apply even without a repository, and so do the patterns of
//! the configuration. Only files of the workspace count, and those of the repository around it if the user owns that:
//! another user with a folder above must not decide what is checked. An ignore file may be hostile, so a link, a pipe or
//! a device is not read, and of a huge one only the beginning.

use std::collections::BTreeMap;
use std::fs::FileType;
use std::io;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tenon_contract::regular_file;

/// The ignore files; later ones take precedence.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Files that mark the folder they are in as a virtualenv or a cache.
const MARKS: [&str; 2] = ["pyvenv.cfg", "CACHEDIR.TAG"];

/// The most bytes and lines of an ignore file that are read.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_LINES: usize = 10_000;

/// What a folder contains.
#[derive(Debug)]
pub struct Listing {
    /// What is not ignored, in no order.
    pub entries: Vec<(Utf8DirEntry, FileType)>,
    /// Whether the folder itself is ignored, since it is marked as a virtualenv or a cache and no rule includes it.
    pub is_marked: bool,
}

/// The rules of one tree, read as its folders are walked.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    by_folder: BTreeMap<Utf8PathBuf, Gitignore>,
    /// From the configuration; these take precedence over all others.
    configured: Option<Gitignore>,
    /// The user's global rules and the repository's private ones; all others take precedence.
    general: Vec<Gitignore>,
}

impl IgnoreRules {
    /// The rules from above a root, and the global ones.
    pub fn for_root(root: &Utf8Path, configured: Option<Gitignore>) -> Self {
        let mut rules = Self { by_folder: BTreeMap::new(), configured, general: vec![Gitignore::global().0] };
        for folder in root.ancestors().take(1 + folders_above(root)) {
            if folder != root {
                rules.load(folder);
            }
            let mut builder = GitignoreBuilder::new(folder);
            if add_file(&mut builder, &folder.join(".git/info/exclude")) {
                rules.general.extend(builder.build());
            }
        }
        rules
    }

    /// Reads the rule files of a folder.
    pub fn load(&mut self, folder: &Utf8Path) {
        self.load_files(folder, RULE_FILES);
    }

    fn load_files(&mut self, folder: &Utf8Path, names: impl IntoIterator<Item = &'static str>) {
        let mut builder = GitignoreBuilder::new(folder);
        let mut is_any = false;
        for name in names {
            is_any |= add_file(&mut builder, &folder.join(name));
        }
        if is_any && let Ok(rules) = builder.build() {
            self.by_folder.insert(folder.to_owned(), rules);
        }
    }

    /// Reads a folder and its rules. One pass, since most folders have no rule file: looking for each by name would take
    /// longer than reading the folder.
    pub fn list(&mut self, folder: &Utf8Path) -> io::Result<Listing> {
        let entries = folder.read_dir_utf8()?.filter_map(Result::ok);
        let mut entries: Vec<(Utf8DirEntry, FileType)> =
            entries.filter_map(|entry| entry.file_type().ok().map(|kind| (entry, kind))).collect();
        let has = |name: &str| entries.iter().any(|(entry, _)| entry.file_name() == name);
        let is_marked = MARKS.iter().any(|mark| has(mark) && folder.join(mark).is_file())
            && self.decision(folder, true).is_none();
        let rule_files: Vec<&'static str> = RULE_FILES.into_iter().filter(|name| has(name)).collect();
        self.load_files(folder, rule_files);
        let nearest = self.nearest(folder);
        entries.retain(|(entry, kind)| self.decide(&nearest, entry.path(), kind.is_dir()) != Some(true));
        Ok(Listing { entries, is_marked })
    }

    /// Whether a change of this file changes what is ignored.
    pub fn is_rule_file(path: &Utf8Path) -> bool {
        path.file_name().is_some_and(|name| RULE_FILES.contains(&name) || MARKS.contains(&name))
    }

    /// Whether a path is ignored, given that its folder is not. The nearest rule decides.
    pub fn is_ignored(&self, path: &Utf8Path, is_folder: bool) -> bool {
        let decision = self.decision(path, is_folder);
        decision.unwrap_or_else(|| is_folder && MARKS.iter().any(|mark| path.join(mark).is_file()))
    }

    /// Whether the rules ignore a path; `None` if none of them matches.
    fn decision(&self, path: &Utf8Path, is_folder: bool) -> Option<bool> {
        let nearest = path.parent().map(|folder| self.nearest(folder)).unwrap_or_default();
        self.decide(&nearest, path, is_folder)
    }

    /// The rules of the folders from this one upwards.
    fn nearest(&self, folder: &Utf8Path) -> Vec<&Gitignore> {
        if self.by_folder.is_empty() {
            return Vec::new();
        }
        folder.ancestors().filter_map(|folder| self.by_folder.get(folder)).collect()
    }

    /// As [`IgnoreRules::decision`], with the rules that are nearest to the path's folder.
    fn decide(&self, nearest: &[&Gitignore], path: &Utf8Path, is_folder: bool) -> Option<bool> {
        let name = path.file_name().unwrap_or_default();
        if is_folder && (name.starts_with('.') || name == "node_modules") {
            return Some(true);
        }
        if self.configured.as_ref().is_some_and(|rules| rules.matched(path, is_folder).is_ignore()) {
            return Some(true);
        }
        nearest.iter().copied().chain(&self.general).find_map(|rules| match rules.matched(path, is_folder) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        })
    }
}

/// Adds the patterns of a file. `false` if there is no such file.
fn add_file(builder: &mut GitignoreBuilder, file: &Utf8Path) -> bool {
    let Ok(bytes) = regular_file::read_start(file, MAX_BYTES) else {
        return false;
    };
    add_lines(builder, file, String::from_utf8_lossy(&bytes).lines());
    true
}

/// Adds patterns; invalid ones are skipped.
pub(crate) fn add_lines<'a>(
    builder: &mut GitignoreBuilder,
    file: &Utf8Path,
    lines: impl IntoIterator<Item = &'a str>,
) {
    for line in lines.into_iter().take(MAX_LINES) {
        let _ = builder.add_line(Some(file.into()), line);
    }
}

/// How many folders above the root belong to the same repository, if the user owns them all.
fn folders_above(root: &Utf8Path) -> usize {
    if root.join(".git").symlink_metadata().is_ok() {
        return 0;
    }
    let above = root.ancestors().skip(1).take_while(|folder| regular_file::is_own(folder));
    let repository = above.enumerate().find(|(_, folder)| folder.join(".git").symlink_metadata().is_ok());
    repository.map_or(0, |(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, root)
    }

    fn rules(root: &Utf8Path) -> IgnoreRules {
        let mut rules = IgnoreRules::for_root(root, None);
        rules.load(root);
        rules
    }

    #[test]
    fn ignore_file_above_counts_only_in_the_same_repository() {
        let (_folder, top) = tree(&[(".gitignore", "*.py\n"), ("repo/a.py", ""), ("repo/sub/b.py", "")]);
        let root = top.join("repo/sub");
        assert!(!rules(&root).is_ignored(&root.join("b.py"), false));
        std::fs::create_dir(top.join(".git")).unwrap();
        assert!(rules(&root).is_ignored(&root.join("b.py"), false));
        std::fs::create_dir(top.join("repo/.git")).unwrap();
        assert!(!rules(&root).is_ignored(&root.join("b.py"), false));
    }

    #[cfg(unix)]
    #[test]
    fn special_ignore_files_are_not_read() {
        let (_folder, root) = tree(&[("rules", "*.py\n"), ("a.py", "")]);
        std::os::unix::fs::symlink(root.join("rules"), root.join(".gitignore")).unwrap();
        nix::unistd::mkfifo(root.join(".ignore").as_std_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join(".git/info/exclude")).unwrap();
        assert!(!rules(&root).is_ignored(&root.join("a.py"), false));
    }

    #[test]
    fn huge_ignore_file_is_read_in_part() {
        let (_folder, root) = tree(&[(".gitignore", &format!("*.py\n{}", "x/*.rs\n".repeat(300_000)))]);
        assert!(rules(&root).is_ignored(&root.join("a.py"), false));
    }
}
