//! Finds the files of a workspace that differ from a git revision.

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::workspace_check::files::is_served;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

use crate::git::{BlobId, GitError, GitRepository, Revision};

/// A file that some server serves and that differs from the revision.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    pub path: WorkspacePath,
    /// The text in the revision; `None` for a new file.
    pub before: Option<BlobId>,
    /// Whether the file is on disk.
    pub exists: bool,
}

/// The files that differ from a revision, new and deleted ones included, by path.
pub async fn since(
    repository: &GitRepository,
    revision: &Revision,
    walk: &Walk,
    gate: &RootGate,
    registry: &Registry,
) -> Result<Vec<ChangedFile>, GitError> {
    let root = walk.root().to_owned();
    let listing = walk.clone();
    let listed: Vec<Utf8PathBuf> =
        tokio::task::spawn_blocking(move || listing.files().collect()).await.unwrap_or_default();
    let wanted = |path: &Utf8Path| {
        let path = root.join(path);
        !walk.excludes(&path) && is_served(registry, &path)
    };
    let changes = repository.changes(revision, listed, wanted).await?;
    let admitted = changes.into_iter().filter_map(|change| {
        let full = root.join(&change.path);
        let path = if change.exists { gate.admit_path(full) } else { gate.admit_target(full) };
        Some(ChangedFile { path: path.ok()?, before: change.before, exists: change.exists })
    });
    Ok(admitted.collect())
}
