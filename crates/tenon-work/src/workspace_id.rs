//! The workspace id of a folder, when the configuration gives none.
//!
//! A clone of a repository is named after the remote, `host/owner/repo`, so that two machines share one workspace; any
//! other folder after the folder name and a hash of the real path.

use std::path::{Path, PathBuf};

use tenon_contract::id::sha256_hex;
use tenon_contract::regular_file;

use crate::name::WorkspaceName;

/// The largest file of a repository that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The id of the workspace at `root`, which should be a real path.
#[must_use]
pub fn workspace_id(root: &Path) -> WorkspaceName {
    remote(root).as_deref().and_then(normalised).unwrap_or_else(|| by_folder(root))
}

fn by_folder(root: &Path) -> WorkspaceName {
    let folder = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let folder: String = folder.chars().map(plain).take(100).collect();
    let folder = folder.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let folder = if folder.is_empty() { "folder" } else { folder };
    let hash = sha256_hex(root.as_os_str().as_encoded_bytes());
    WorkspaceName::parse(&format!("{folder}-{}", &hash[..8]))
        .expect("built from characters that names may hold")
}

/// The URL of `origin`, or else of the first remote.
fn remote(root: &Path) -> Option<String> {
    let config = read(&git_folder(root)?.join("config"))?;
    let mut first = None;
    let mut section = None;
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.strip_prefix("remote \"").and_then(|rest| rest.split('"').next());
            section = name.map(str::to_owned);
        } else if let Some(name) = &section
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            if name == "origin" {
                return Some(value.trim().to_owned());
            }
            first.get_or_insert(value.trim().to_owned());
        }
    }
    first
}

/// The folder that all worktrees of the repository at `root` share: that of the main worktree, or of a bare repository.
/// Without worktrees it is `root`.
///
/// A repository may claim to be a worktree of another one. So the other one must name it, too.
#[must_use]
pub fn repository_folder(root: &Path) -> PathBuf {
    main_folder(root).unwrap_or_else(|| root.to_owned())
}

fn main_folder(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    let folder = root.join(read(&dot_git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let common = folder.join(read(&folder.join("commondir"))?.trim()).canonicalize().ok()?;
    let named = Path::new(read(&folder.join("gitdir"))?.trim()).canonicalize().ok()?;
    let is_worktree =
        folder.parent() == Some(&common.join("worktrees")) && named == dot_git.canonicalize().ok()?;
    if !is_worktree {
        return None;
    }
    match common.file_name() {
        Some(name) if name == ".git" => common.parent().map(Path::to_owned),
        _ => Some(common),
    }
}

/// Where git keeps what belongs to this worktree alone: `.git`, or what it points at.
pub(crate) fn worktree_folder(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = read(&dot_git)?;
    Some(root.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Where git keeps the configuration: `.git`, or what it points at in a worktree or submodule.
pub(crate) fn git_folder(root: &Path) -> Option<PathBuf> {
    let folder = worktree_folder(root)?;
    match read(&folder.join("commondir")) {
        Some(common) => Some(folder.join(common.trim())),
        None => Some(folder),
    }
}

/// A file of the repository, which may be hostile.
pub(crate) fn read(path: &Path) -> Option<String> {
    String::from_utf8(regular_file::read(path, MAX_BYTES).ok()?).ok()
}

/// `host/owner/repo` of any spelling of a remote; nothing for a path on this machine.
fn normalised(url: &str) -> Option<WorkspaceName> {
    let rest = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.to_owned(),
        // `git@host:owner/repo`; a single letter before the colon is a drive.
        None => match url.split_once(':') {
            Some((host, path)) if host.len() > 1 && !host.contains('/') => format!("{host}/{path}"),
            _ => return None,
        },
    };
    let (authority, path) = rest.split_once('/')?;
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().to_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    if host.is_empty() || path.is_empty() {
        return None;
    }
    WorkspaceName::parse(&format!("{host}/{path}")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_spelling_of_a_remote_is_the_same_workspace() {
        for url in [
            "https://github.com/owner/repo.git",
            "https://user:secret@GitHub.com/owner/repo",
            "ssh://git@github.com:22/owner/repo.git/",
            "git@github.com:owner/repo.git",
            "git://github.com/owner/repo",
        ] {
            assert_eq!(normalised(url).unwrap().as_str(), "github.com/owner/repo", "{url}");
        }
        for local in
            ["/srv/repo.git", "../repo", "file:///srv/repo", "C:\\repo", "https://host", "host:", "h:ö/x"]
        {
            assert!(normalised(local).is_none(), "{local}");
        }
    }

    #[test]
    fn folder_is_named_after_the_remote_or_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("my project");
        fs::create_dir_all(root.join(".git")).unwrap();
        let id = workspace_id(&root);
        assert!(id.as_str().starts_with("my-project-"), "{id}");
        assert_eq!(id.as_str().len(), "my-project-".len() + 8);
        fs::write(
            root.join(".git/config"),
            "[core]\n\tbare = false\n[remote \"up\"]\n\turl = git@a.b:c/d\n[remote \"origin\"]\n\turl = git@h.org:o/r.git\n",
        )
        .unwrap();
        assert_eq!(workspace_id(&root).as_str(), "h.org/o/r");
    }

    #[test]
    fn worktree_shares_the_folder_of_the_repository_that_names_it() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (main, worktree, liar) = (base.join("main"), base.join("two"), base.join("liar"));
        let entry = main.join(".git/worktrees/two");
        for folder in [&entry, &worktree, &liar] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(entry.join("commondir"), "../..\n").unwrap();
        fs::write(entry.join("gitdir"), format!("{}\n", worktree.join(".git").display())).unwrap();
        for root in [&worktree, &liar] {
            fs::write(root.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        }
        assert_eq!(repository_folder(&main), main);
        assert_eq!(repository_folder(&worktree), main);
        assert_eq!(repository_folder(&liar), liar);
        assert_eq!(repository_folder(&base), base);
    }

    #[test]
    fn worktree_is_the_workspace_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("main/.git");
        fs::create_dir_all(git.join("worktrees/two")).unwrap();
        fs::write(git.join("config"), "[remote \"origin\"]\nurl=https://h.org/o/r\n").unwrap();
        fs::write(git.join("worktrees/two/commondir"), "../..\n").unwrap();
        let root = folder.path().join("two");
        fs::create_dir(&root).unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}\n", git.join("worktrees/two").display())).unwrap();
        assert_eq!(workspace_id(&root).as_str(), "h.org/o/r");
    }
}
