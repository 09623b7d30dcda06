//! Which folders use a workspace of the store (decision 0606).
//!
//! The name of a workspace comes from a git remote or from a client's argument, and either may name the workspace of another
//! folder. So a workspace belongs to the folder that used it first, and the user links others. Worktrees of one repository
//! count as one folder.
//!
//! One JSON file per store and workspace in the user's state, created once and replaced by a rename. A damaged file links no
//! folder.

use std::collections::BTreeSet;
use std::io::{self, Write};

use camino::Utf8PathBuf;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use tenon_contract::id::sha256_hex_joined;
use tenon_work::{StoreLocation, WorkspaceName};

/// The version of the format.
const VERSION: u32 = 1;

/// The links of one folder to the workspaces of one store.
#[derive(Debug)]
pub(super) struct WorkspaceLinks {
    folder: Utf8PathBuf,
    store: String,
    /// The folder that all worktrees of the repository share.
    own: Utf8PathBuf,
}

/// To whom a workspace belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Own,
    Other,
    Free,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkRecord {
    version: u32,
    workspace: String,
    folders: BTreeSet<Utf8PathBuf>,
}

impl WorkspaceLinks {
    pub(super) fn new(folder: Utf8PathBuf, store: &StoreLocation, own: Utf8PathBuf) -> Self {
        Self { folder, store: store.to_string(), own }
    }

    pub(super) fn ownership(&self, workspace: &WorkspaceName) -> io::Result<Ownership> {
        Ok(match self.read(workspace)? {
            None => Ownership::Free,
            Some(record) if record.folders.contains(&self.own) => Ownership::Own,
            Some(_) => Ownership::Other,
        })
    }

    /// Takes a free workspace. Returns whether it is this folder's now: another process may be faster.
    pub(super) fn claim(&self, workspace: &WorkspaceName) -> io::Result<bool> {
        match self.write(workspace, BTreeSet::from([self.own.clone()]), false) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(self.ownership(workspace)? == Ownership::Own)
            }
            written => written.map(|()| true),
        }
    }

    /// Adds this folder, by the user's word.
    pub(super) fn link(&self, workspace: &WorkspaceName) -> io::Result<()> {
        let mut folders = self.read(workspace)?.map(|record| record.folders).unwrap_or_default();
        folders.insert(self.own.clone());
        self.write(workspace, folders, true)
    }

    /// Removes this folder. The workspace stays closed to folders that are not linked. Returns whether it was linked.
    pub(super) fn unlink(&self, workspace: &WorkspaceName) -> io::Result<bool> {
        let mut folders = self.read(workspace)?.map(|record| record.folders).unwrap_or_default();
        let was_linked = folders.remove(&self.own);
        if was_linked {
            self.write(workspace, folders, true)?;
        }
        Ok(was_linked)
    }

    fn read(&self, workspace: &WorkspaceName) -> io::Result<Option<LinkRecord>> {
        let text = match fs::read_to_string(self.file_of(workspace)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let closed =
            LinkRecord { version: VERSION, workspace: workspace.to_string(), folders: BTreeSet::new() };
        let record = serde_json::from_str(&text).ok();
        let valid = |record: &LinkRecord| record.version == VERSION && record.workspace == workspace.as_str();
        Ok(Some(record.filter(valid).unwrap_or(closed)))
    }

    fn write(
        &self,
        workspace: &WorkspaceName,
        folders: BTreeSet<Utf8PathBuf>,
        replace: bool,
    ) -> io::Result<()> {
        let record = LinkRecord { version: VERSION, workspace: workspace.to_string(), folders };
        fs::create_dir_all(&self.folder)?;
        let mut next = tempfile::NamedTempFile::new_in(&self.folder)?;
        next.write_all(&serde_json::to_vec(&record).expect("strings serialise"))?;
        next.as_file().sync_all()?;
        let path = self.file_of(workspace);
        match replace {
            true => next.persist(path)?,
            false => next.persist_noclobber(path)?,
        };
        Ok(())
    }

    fn file_of(&self, workspace: &WorkspaceName) -> Utf8PathBuf {
        let hash = sha256_hex_joined(&[&self.store, &workspace.as_str()]);
        self.folder.join(format!("{}.json", &hash[..32]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(folder: &tempfile::TempDir, own: &str) -> WorkspaceLinks {
        let folder = Utf8PathBuf::from_path_buf(folder.path().join("workspaces")).unwrap();
        WorkspaceLinks::new(folder, &StoreLocation::Sqlite("/s.db".into()), own.into())
    }

    #[test]
    fn workspace_belongs_to_the_first_folder_until_another_is_linked() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (links(&folder, "/a"), links(&folder, "/b"));
        let name = WorkspaceName::parse("h.org/o/r").unwrap();
        assert_eq!(first.ownership(&name).unwrap(), Ownership::Free);
        assert!(first.claim(&name).unwrap() && first.claim(&name).unwrap());
        assert!(!second.claim(&name).unwrap());
        assert_eq!(second.ownership(&name).unwrap(), Ownership::Other);
        second.link(&name).unwrap();
        assert_eq!(first.ownership(&name).unwrap(), Ownership::Own);
        assert_eq!(second.ownership(&name).unwrap(), Ownership::Own);
        assert!(first.unlink(&name).unwrap() && second.unlink(&name).unwrap());
        assert!(!second.unlink(&name).unwrap());
        assert_eq!(second.ownership(&name).unwrap(), Ownership::Other, "it does not become free");
    }

    #[test]
    fn damaged_file_links_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let own = links(&folder, "/a");
        let name = WorkspaceName::parse("w").unwrap();
        own.claim(&name).unwrap();
        for text in ["", "{}", "{\"version\":2,\"workspace\":\"w\",\"folders\":[\"/a\"]}"] {
            fs::write(own.file_of(&name), text).unwrap();
            assert_eq!(own.ownership(&name).unwrap(), Ownership::Other, "{text}");
        }
    }
}
