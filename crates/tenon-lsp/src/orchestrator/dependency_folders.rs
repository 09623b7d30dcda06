//! Folders that package managers fill: ignored by the watcher, but read by servers. A few marker files tell that one changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};

use super::lock;

/// Adds the state of a root's dependency folders.
type Look = fn(&Utf8Path, &mut DefaultHasher);

/// A kind of dependency folder, with a file name whose servers read it.
const KINDS: [(&str, Look); 2] = [("x.js", node_modules), ("x.py", site_packages)];

/// In `node_modules`, written by npm, yarn and pnpm at the end of an installation. The folder itself changes with its packages.
const NODE_MARKERS: [&str; 4] = [".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml"];

const VIRTUALENVS: [&str; 3] = [".venv", "venv", "env"];

/// The last known state of the dependency folders of all roots.
pub(super) struct DependencyFolders {
    roots: Vec<Utf8PathBuf>,
    seen: Mutex<[u64; KINDS.len()]>,
}

impl DependencyFolders {
    pub(super) fn new(roots: &[Utf8PathBuf]) -> Self {
        let folders = Self { roots: roots.to_vec(), seen: Mutex::default() };
        folders.changed();
        folders
    }

    /// The kinds that changed since the last call: a file name for each, whose servers have read the old state.
    pub(super) fn changed(&self) -> Vec<&'static str> {
        let now = KINDS.map(|(_, look)| {
            let mut state = DefaultHasher::new();
            for root in &self.roots {
                look(root, &mut state);
            }
            state.finish()
        });
        let before = std::mem::replace(&mut *lock(&self.seen), now);
        let kinds = KINDS.iter().zip(before.into_iter().zip(now));
        kinds.filter(|(_, (before, now))| before != now).map(|((name, _), _)| *name).collect()
    }
}

fn node_modules(root: &Utf8Path, state: &mut DefaultHasher) {
    let folder = root.join("node_modules");
    if add(&folder, state) {
        for marker in NODE_MARKERS {
            add(&folder.join(marker), state);
        }
    }
}

fn site_packages(root: &Utf8Path, state: &mut DefaultHasher) {
    for name in VIRTUALENVS {
        let Ok(versions) = root.join(name).join("lib").read_dir_utf8() else {
            continue;
        };
        let mut folders: Vec<Utf8PathBuf> =
            versions.flatten().map(|one| one.path().join("site-packages")).collect();
        folders.sort_unstable();
        for folder in folders {
            add(&folder, state);
        }
    }
}

/// Adds when a file or folder changed. Returns whether it exists.
fn add(path: &Utf8Path, state: &mut DefaultHasher) -> bool {
    let changed = path.metadata().and_then(|found| found.modified()).ok();
    path.as_str().hash(state);
    changed.hash(state);
    changed.is_some()
}
