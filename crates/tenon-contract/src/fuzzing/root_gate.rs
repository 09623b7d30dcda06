//! Unix: no path or URI outside the roots is admitted, however it is spelled and whatever it links through.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::root::{GateError, RootGate, WorkspacePath};

/// A root with links, and files outside of it.
struct Tree {
    base: PathBuf,
    gate: RootGate,
    _folder: tempfile::TempDir,
}

const FILES: [&str; 6] = [
    "root/src/a.ts",
    "root/src/%2e%2e",
    "root/src/é [b].ts",
    "second/b.ts",
    "outside/secret.ts",
    "root-evil/a.ts",
];

const LINKS: [(&str, &str); 9] = [
    ("root/in", "src/a.ts"),
    ("root/folder", "src"),
    ("root/up", ".."),
    ("root/out", "../outside/secret.ts"),
    ("root/out-folder", "../outside"),
    ("root/back", "../outside/../root/src/a.ts"),
    ("root/none", "../outside/none"),
    ("root/loop", "loop"),
    ("outside/root", "../root"),
];

thread_local! {
    static TREE: Tree = Tree::new();
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = fs::canonicalize(folder.path()).expect("the folder was just made");
        for file in FILES {
            let path = base.join(file);
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        for (link, target) in LINKS {
            symlink(target, base.join(link)).expect("a link");
        }
        let gate = RootGate::new([base.join("root"), base.join("second")]).expect("both roots exist");
        Self { base, gate, _folder: folder }
    }

    fn is_inside(&self, real: &Path) -> bool {
        ["root", "second"].iter().any(|root| real.starts_with(self.base.join(root)))
    }

    /// An admitted file is a real path inside, and its other spellings are admitted as the same file.
    fn check_file(&self, path: &WorkspacePath) {
        let real = fs::canonicalize(path).expect("an admitted file exists");
        assert_eq!(real.as_path(), path.as_path().as_std_path());
        assert!(self.is_inside(&real) && real.is_file(), "{real:?}");
        assert_eq!(self.gate.admit_uri(path.uri().as_str()).as_ref(), Ok(path));
        assert_eq!(self.gate.admit_path(self.gate.display(path)).as_ref(), Ok(path));
    }

    /// An admitted path to write to exists inside as far as it exists.
    fn check_target(&self, path: &WorkspacePath) {
        let existing = path.as_path().ancestors().find(|prefix| prefix.exists()).expect("`/` exists");
        let real = fs::canonicalize(existing).expect("the path exists");
        assert_eq!(real.as_path(), existing.as_std_path());
        assert!(self.is_inside(&real), "{real:?}");
    }

    fn check(&self, text: &str) {
        let answer = self.gate.admit_path(text);
        for path in [answer.as_ref().ok(), self.gate.admit_uri(text).as_ref().ok()].into_iter().flatten() {
            self.check_file(path);
        }
        if let Ok(folder) = self.gate.admit_folder(text) {
            let real = fs::canonicalize(&folder).expect("an admitted folder exists");
            assert!(self.is_inside(&real) && real.is_dir(), "{real:?}");
        }
        for target in [self.gate.admit_target(text), self.gate.admit_changed(text)].into_iter().flatten() {
            self.check_target(&target);
        }
        // The answer for what exists follows from its real path, with dots resolved in the text.
        let absolute = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("{}/root/{text}", self.base.display())
        };
        if let Ok(real) = fs::canonicalize(without_dots(&absolute)) {
            let names_folder = matches!(absolute.rsplit('/').next(), Some("" | "." | ".."));
            let expected = match () {
                () if text.contains('\0') => return,
                () if !self.is_inside(&real) => Some(GateError::Denied),
                () if names_folder && !real.is_dir() => Some(GateError::Missing),
                () if real.is_file() => None,
                () => Some(GateError::NotAFile),
            };
            assert_eq!(answer.as_ref().err(), expected.as_ref(), "{text}");
        }
    }
}

fn without_dots(absolute: &str) -> PathBuf {
    let mut names: Vec<&str> = Vec::new();
    for name in absolute.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    PathBuf::from(format!("/{}", names.join("/")))
}

/// `data` is a path or a URI. `<base>` is replaced by the folder with the roots.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    TREE.with(|tree| {
        let base = tree.base.to_str().expect("temporary folders have UTF-8 names");
        tree.check(&text.replace("<base>", base));
    });
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("root_gate", super::check);
    }
}
