//! The folder that git takes for the repository: links to its data, and a configuration of ours.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::GitError;
use super::repository_folders::RepositoryFolders;
use super::working_file::ObjectFormat;

#[derive(Debug)]
pub(super) struct PrivateFolder {
    folder: tempfile::TempDir,
    index: Utf8PathBuf,
}

impl PrivateFolder {
    pub(super) fn create(folders: &RepositoryFolders) -> Result<Self, GitError> {
        let failed = |source| GitError::Read { path: folders.git.clone(), source };
        let folder = tempfile::Builder::new().prefix("tenon-git-").tempdir().map_err(failed)?;
        let path = Utf8Path::from_path(folder.path())
            .ok_or(GitError::Unsupported("the temporary folder is not UTF-8"))?;
        let write = |name: &str, text: &str| fs::write(path.join(name), text).map_err(failed);
        write("HEAD", &folders.head()?)?;
        write("config", &config(folders))?;
        for part in ["objects", "refs", "packed-refs", "logs", "reftable", "shallow"] {
            link(&folders.common.join(part), &path.join(part)).map_err(failed)?;
        }
        // A split index has its base beside it.
        for entry in folders.git.read_dir_utf8().map_err(failed)?.filter_map(Result::ok) {
            if entry.file_name().starts_with("sharedindex.") {
                link(entry.path(), &path.join(entry.file_name())).map_err(failed)?;
            }
        }
        Ok(Self { folder, index: folders.git.join("index") })
    }

    pub(super) fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(super) fn index(&self) -> &Utf8Path {
        &self.index
    }
}

fn config(folders: &RepositoryFolders) -> String {
    let mut text = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n".to_owned();
    if folders.format == ObjectFormat::Sha256 {
        text.push_str("\tobjectFormat = sha256\n");
    }
    if folders.reftable {
        text.push_str("\trefStorage = reftable\n");
    }
    text
}

/// Links to a part that exists.
#[cfg(unix)]
fn link(part: &Utf8Path, at: &Utf8Path) -> io::Result<()> {
    match part.try_exists()? {
        true => std::os::unix::fs::symlink(part, at),
        false => Ok(()),
    }
}

#[cfg(not(unix))]
fn link(_: &Utf8Path, _: &Utf8Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "needs symbolic links"))
}
