//! The checked-out commit of a repository, read from git's files without running git.

use std::path::Path;

use crate::workspace_id::{git_folder, read, worktree_folder};

/// What is checked out. A detached head has no branch, a new repository no commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcsHead {
    pub commit: Option<String>,
    pub branch: Option<String>,
}

impl VcsHead {
    /// The head of the repository whose root is `root`, if there is one.
    #[must_use]
    pub fn read(root: &Path) -> Option<Self> {
        let head = read(&worktree_folder(root)?.join("HEAD"))?;
        let head = head.trim();
        let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
            return Some(Self { commit: hash(head), branch: None });
        };
        let shared = git_folder(root)?;
        // A repository may be hostile: a reference stays inside its folder.
        let is_plain = reference.starts_with("refs/") && !reference.split('/').any(|part| part == "..");
        let loose = is_plain.then(|| read(&shared.join(reference))).flatten();
        let commit = loose.and_then(|text| hash(text.trim())).or_else(|| packed(&shared, reference));
        let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
        Some(Self { commit, branch: Some(branch.chars().take(200).collect()) })
    }
}

fn packed(shared: &Path, reference: &str) -> Option<String> {
    let refs = read(&shared.join("packed-refs"))?;
    let line = refs.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' '));
    hash(line?)
}

fn hash(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn head_is_read_from_loose_and_packed_references() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(VcsHead::read(root), None);
        fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let head =
            |commit: Option<&str>| VcsHead { commit: commit.map(str::to_owned), branch: Some("main".into()) };
        assert_eq!(VcsHead::read(root), Some(head(None)));
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        fs::write(root.join(".git/packed-refs"), format!("# pack-refs\n{old} refs/heads/main\n")).unwrap();
        assert_eq!(VcsHead::read(root), Some(head(Some(&old))));
        fs::write(root.join(".git/refs/heads/main"), format!("{new}\n")).unwrap();
        assert_eq!(VcsHead::read(root), Some(head(Some(&new))));
        fs::write(root.join(".git/HEAD"), format!("{old}\n")).unwrap();
        assert_eq!(VcsHead::read(root), Some(VcsHead { commit: Some(old), branch: None }));
        fs::write(root.join(".git/HEAD"), "ref: refs/../../secret\n").unwrap();
        assert_eq!(VcsHead::read(root).unwrap().commit, None);
    }
}
