//! Virtualenvs of Python projects in the workspace.

use camino::{Utf8Path, Utf8PathBuf};

/// The names that tools give the folder, in order of preference.
const NAMES: [&str; 3] = [".venv", "venv", "env"];

#[derive(Debug)]
pub(super) struct Virtualenv(Utf8PathBuf);

impl Virtualenv {
    pub(super) fn bin(&self) -> Utf8PathBuf {
        self.0.join("bin")
    }

    pub(super) fn interpreter(&self) -> Utf8PathBuf {
        self.bin().join("python")
    }

    /// The `site-packages` folders of all Python versions in it.
    pub(super) fn packages(&self) -> Vec<String> {
        let Ok(entries) = self.0.join("lib").read_dir_utf8() else {
            return Vec::new();
        };
        let mut packages: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().starts_with("python"))
            .map(|entry| entry.path().join("site-packages"))
            .filter(|path| path.is_dir())
            .map(Utf8PathBuf::into_string)
            .collect();
        packages.sort();
        packages
    }
}

/// The virtualenv of one folder.
pub(super) fn in_folder(folder: &Utf8Path) -> Option<Virtualenv> {
    candidates(folder).into_iter().find(|found| found.0.join("pyvenv.cfg").is_file())
}

/// Where a folder may have a virtualenv.
pub(super) fn candidates(folder: &Utf8Path) -> [Virtualenv; 3] {
    NAMES.map(|name| Virtualenv(folder.join(name)))
}

/// The nearest virtualenv of a project, not above the root.
pub(super) fn find(project: &Utf8Path, root: &Utf8Path) -> Option<Virtualenv> {
    up_to(project, root).find_map(in_folder)
}

/// The folders from `project` up to `root`, both included; the root alone when the project is not inside.
pub(super) fn up_to<'p>(project: &'p Utf8Path, root: &'p Utf8Path) -> impl Iterator<Item = &'p Utf8Path> {
    let from = if project.starts_with(root) { project } else { root };
    from.ancestors().take_while(move |folder| folder.starts_with(root))
}
