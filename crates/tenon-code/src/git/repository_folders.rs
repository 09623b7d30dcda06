//! Finds the folders of a repository, without git and without its configuration taking effect.
//!
//! A `.git` file (worktree, submodule) is followed only if the folder that it names leads back to it. An unpacked archive
//! could otherwise name any repository of the user.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::regular_file;

use super::GitError;
use super::working_file::ObjectFormat;

/// The largest configuration that is read.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// The largest `HEAD`, `.git`, `gitdir` or `commondir` file that is read.
const MAX_LINK_BYTES: u64 = 8 * 1024;

/// Where a repository keeps its parts.
#[derive(Debug)]
pub(super) struct RepositoryFolders {
    /// The top of the working files.
    pub(super) top: Utf8PathBuf,
    /// Has `HEAD` and the index of these working files.
    pub(super) git: Utf8PathBuf,
    /// Has objects, refs and configuration, for all worktrees.
    pub(super) common: Utf8PathBuf,
    pub(super) format: ObjectFormat,
    /// The refs are in a `reftable` folder.
    pub(super) reftable: bool,
}

impl RepositoryFolders {
    /// The repository of the nearest folder with a `.git`, from `root` upwards.
    pub(super) fn find(root: &Utf8Path) -> Result<Self, GitError> {
        for top in root.ancestors() {
            let link = top.join(".git");
            match fs::symlink_metadata(&link) {
                Ok(found) if found.is_file() => return Self::linked(top, &link),
                Ok(_) => return Self::plain(top, &link),
                Err(_) if is_bare(top) => return Err(GitError::Bare),
                Err(_) => {}
            }
        }
        Err(GitError::NotARepository)
    }

    /// `.git` is a folder, or a link to one below the working files.
    fn plain(top: &Utf8Path, link: &Utf8Path) -> Result<Self, GitError> {
        let git = real(link)?;
        if !git.starts_with(top) {
            return Err(GitError::ForeignLink { link: link.to_owned() });
        }
        let config = read(&git.join("config"), MAX_CONFIG_BYTES)?;
        if value(&config, "core", "bare").is_some_and(|bare| bare.eq_ignore_ascii_case("true")) {
            return Err(GitError::Bare);
        }
        Self::new(top, git.clone(), git, &config)
    }

    /// `.git` is a file that names the folder: a worktree or a submodule.
    fn linked(top: &Utf8Path, link: &Utf8Path) -> Result<Self, GitError> {
        let foreign = || GitError::ForeignLink { link: link.to_owned() };
        let text = read(link, MAX_LINK_BYTES)?;
        let named = text.strip_prefix("gitdir:").map(str::trim).ok_or_else(foreign)?;
        let git = real(&top.join(named)).map_err(|_| foreign())?;
        let common = match fs::symlink_metadata(git.join("commondir")) {
            Ok(_) => {
                let named = read(&git.join("commondir"), MAX_LINK_BYTES)?;
                let common = real(&git.join(named.trim())).map_err(|_| foreign())?;
                let back = read(&git.join("gitdir"), MAX_LINK_BYTES).map_err(|_| foreign())?;
                let leads_back = real(&git.join(back.trim())).ok() == real(link).ok();
                if !leads_back || git.parent() != Some(&common.join("worktrees")) {
                    return Err(foreign());
                }
                common
            }
            Err(_) => git.clone(),
        };
        let config = read(&common.join("config"), MAX_CONFIG_BYTES)?;
        let is_worktree = common != git;
        let is_submodule = || {
            let back = value(&config, "core", "worktree");
            back.is_some_and(|back| real(&git.join(back)).is_ok_and(|back| back == top))
        };
        if !is_worktree && !git.starts_with(top) && !is_submodule() {
            return Err(foreign());
        }
        Self::new(top, git, common, &config)
    }

    fn new(top: &Utf8Path, git: Utf8PathBuf, common: Utf8PathBuf, config: &str) -> Result<Self, GitError> {
        let format = match value(config, "extensions", "objectformat").as_deref() {
            None | Some("sha1") => ObjectFormat::Sha1,
            Some("sha256") => ObjectFormat::Sha256,
            Some(_) => return Err(GitError::Unsupported("unknown object format")),
        };
        let reftable = match value(config, "extensions", "refstorage").as_deref() {
            None | Some("files") => false,
            Some("reftable") if git == common => true,
            Some("reftable") => {
                return Err(GitError::Unsupported("a worktree of a repository with reftables"));
            }
            Some(_) => return Err(GitError::Unsupported("unknown format of refs")),
        };
        for (folder, part) in [(&git, "HEAD"), (&git, "index"), (&common, "objects"), (&common, "refs")] {
            let part = folder.join(part);
            match real(&part) {
                Ok(real) if real.starts_with(folder) => {}
                Ok(_) => return Err(GitError::ForeignLink { link: part }),
                Err(GitError::Read { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && part.file_name() == Some("index") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { top: top.to_owned(), git, common, format, reftable })
    }

    /// What `HEAD` says.
    pub(super) fn head(&self) -> Result<String, GitError> {
        read(&self.git.join("HEAD"), MAX_LINK_BYTES)
    }
}

/// Whether a folder is a repository without working files.
fn is_bare(folder: &Utf8Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

fn real(path: &Utf8Path) -> Result<Utf8PathBuf, GitError> {
    path.canonicalize_utf8().map_err(|source| GitError::Read { path: path.to_owned(), source })
}

/// Reads a small regular file. Bytes that are not UTF-8 are replaced.
fn read(path: &Utf8Path, max_bytes: u64) -> Result<String, GitError> {
    let failed = |source| GitError::Read { path: path.to_owned(), source };
    let bytes = regular_file::read(path, max_bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last value of a key in a section without subsection. Includes are not followed.
fn value(config: &str, section: &str, key: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        let line = match line.strip_prefix('[') {
            Some(header) => {
                let (name, rest) = header.split_once(']')?;
                inside = name.trim().eq_ignore_ascii_case(section);
                rest.trim()
            }
            None => line,
        };
        if !inside || line.starts_with(['#', ';']) {
            continue;
        }
        let (name, text) = line.split_once('=').unwrap_or((line, "true"));
        if name.trim().eq_ignore_ascii_case(key) {
            let text = text.split([';', '#']).next().unwrap_or_default();
            found = Some(text.trim().trim_matches('"').to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn last_value_of_the_section_counts() {
        let config = "[core]\n\tbare = false ; no\n[Extensions] objectFormat = sha256\n[core \"x\"]\nbare = true\n[include]\npath = /x\n[core]\nworktree = \"../a b\"\n";
        assert_eq!(value(config, "core", "bare").as_deref(), Some("false"));
        assert_eq!(value(config, "extensions", "objectformat").as_deref(), Some("sha256"));
        assert_eq!(value(config, "core", "worktree").as_deref(), Some("../a b"));
        assert_eq!(value(config, "core", "fsmonitor"), None);
    }
}
