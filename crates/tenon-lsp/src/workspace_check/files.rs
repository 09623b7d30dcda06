//! Selects the files of a check.

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::{GateError, RootGate, WorkspacePath};

use tenon_servers::registry::{Capability, Registry};
use tenon_servers::walk::Walk;

/// A path that cannot be checked.
#[derive(Debug, thiserror::Error)]
#[error("cannot check `{path}`")]
pub struct FilesError {
    pub path: Utf8PathBuf,
    #[source]
    pub source: GateError,
}

/// The files below these paths that some server serves; without paths, of the whole workspace. Files given by name are
/// checked even if they are ignored.
pub fn of_paths(
    paths: &[Utf8PathBuf],
    walk: &Walk,
    gate: &RootGate,
    registry: &Registry,
) -> Result<Vec<WorkspacePath>, FilesError> {
    let root = walk.root().to_owned();
    let paths = if paths.is_empty() { std::slice::from_ref(&root) } else { paths };
    let mut files = Vec::new();
    for path in paths {
        let refused = |source| FilesError { path: path.clone(), source };
        if path.is_dir() {
            let folder = gate.admit_folder(path).map_err(refused)?;
            files.extend(
                walk.files_below(folder.as_path())
                    .filter(|file| !is_hidden(file) && is_served(registry, file))
                    .filter_map(|file| gate.admit_path(file).ok()),
            );
        } else {
            files.push(gate.admit_path(path).map_err(refused)?);
        }
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Whether some server reports diagnostics for a file.
pub fn is_served(registry: &Registry, file: &Utf8Path) -> bool {
    registry.for_file(file).any(|entry| entry.has(Capability::Diagnostics))
}

fn is_hidden(file: &Utf8Path) -> bool {
    file.file_name().is_some_and(|name| name.starts_with('.'))
}
