//! The programs inside a root that Tenon finds by name: language servers in `node_modules/.bin` and virtualenvs, and the
//! interpreters of virtualenvs.
//!
//! In the root's own folders, names without a program are included too, so that a program that appears later is a change.
//! In the folders of nested projects only programs that exist are included: one that appears there is not pinned, and what
//! is not pinned is not run.

use std::collections::BTreeSet;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tenon_servers::find::{Finder, LookupPaths, Trust};
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

use super::pin;

/// The paths, relative to `root`, where the servers of `registry` are looked up.
pub(super) fn find(root: &Utf8Path, registry: &Registry) -> BTreeSet<Utf8PathBuf> {
    let finder = Finder::from_env(root.to_owned(), Trust::Untrusted);
    let mut folders = BTreeSet::new();
    if let Ok(walk) = Walk::new(root, &[]) {
        for file in walk.files() {
            // Folders above a known one are known, too.
            let above = file.ancestors().skip(1).take_while(|folder| *folder != root);
            above.map(Utf8Path::to_owned).take_while(|folder| folders.insert(folder.clone())).for_each(drop);
        }
    }
    let mut paths = finder.lookup_paths(registry, root, LookupPaths::All);
    for folder in folders {
        paths.extend(finder.lookup_paths(registry, &folder, LookupPaths::Existing));
    }
    paths.iter().filter_map(|path| path.strip_prefix(root).ok()).map(Utf8Path::to_owned).collect()
}

/// What a program is: its content and real path inside the root, or the path outside that it links to; `None` if there is
/// none. Programs outside the root are the user's, as those on `PATH` are.
pub(super) fn identity(root: &Utf8Path, program: &Utf8Path) -> io::Result<Option<String>> {
    let path = root.join(program);
    let real = match path.canonicalize_utf8() {
        // A folder is not a program.
        Ok(real) if real.is_dir() => return Ok(None),
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A dangling link runs nothing yet, but is not nothing.
            let link = fs::read_link(&path).ok();
            return Ok(link.map(|target| format!("dangling {}", target.display())));
        }
        Err(error) => return Err(error),
    };
    match real.strip_prefix(root) {
        Ok(relative) => Ok(pin(&real)?.map(|hash| format!("{relative} {hash}"))),
        Err(_) => Ok(Some(format!("link {real}"))),
    }
}
