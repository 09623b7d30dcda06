//! PATH, without the entries that would make a lookup depend on the workspace.

use std::ffi::OsStr;

use camino::{Utf8Path, Utf8PathBuf};

/// The folders of a PATH, in order. Relative ones (`.`, the empty one, `node_modules/.bin`) are always dropped, since
/// they depend on the working directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPath {
    folders: Vec<Utf8PathBuf>,
}

impl SearchPath {
    pub fn new(path: &OsStr) -> Self {
        let mut folders: Vec<Utf8PathBuf> = Vec::new();
        for folder in std::env::split_paths(path) {
            let Ok(folder) = Utf8PathBuf::from_path_buf(folder) else {
                continue;
            };
            if folder.is_absolute() && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self { folders }
    }

    pub fn from_env() -> Self {
        Self::new(&std::env::var_os("PATH").unwrap_or_default())
    }

    /// The folders that exist and, with all links resolved, are not inside `forbidden`.
    pub fn folders(&self, forbidden: Option<&Utf8Path>) -> Vec<&Utf8Path> {
        self.folders
            .iter()
            .map(Utf8PathBuf::as_path)
            .filter(|folder| match (folder.canonicalize_utf8(), forbidden) {
                (Ok(real), Some(root)) => !real.starts_with(root) && !folder.starts_with(root),
                (Ok(_), None) => true,
                // Missing now; if it appears later it might be inside `forbidden`.
                (Err(_), _) => false,
            })
            .collect()
    }

    /// A program by its bare name.
    pub fn which(&self, name: &str, forbidden: Option<&Utf8Path>) -> Option<Utf8PathBuf> {
        self.folders(forbidden).into_iter().map(|folder| folder.join(name)).find(|path| {
            is_program(path)
                && match (path.canonicalize_utf8(), forbidden) {
                    (Ok(real), Some(root)) => !real.starts_with(root),
                    (Ok(_), None) => true,
                    (Err(_), _) => false,
                }
        })
    }

    /// The value of `PATH` for a child.
    pub fn join(&self, forbidden: Option<&Utf8Path>) -> String {
        join(&self.folders(forbidden))
    }
}

/// The value of `PATH` for a child: folders of a [`SearchPath`].
pub(super) fn join(folders: &[&Utf8Path]) -> String {
    // The folders come from a PATH, so none contains the separator.
    std::env::join_paths(folders).unwrap_or_default().into_string().unwrap_or_default()
}

/// Whether a path is an executable file.
#[cfg(unix)]
pub(super) fn is_program(path: &Utf8Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether a path is a file. Other systems have no execute permission.
#[cfg(not(unix))]
pub(super) fn is_program(path: &Utf8Path) -> bool {
    path.is_file()
}
