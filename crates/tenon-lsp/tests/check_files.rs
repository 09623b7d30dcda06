//! Which files a workspace check covers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::workspace_check::files::of_paths;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

/// A workspace in a folder.
struct TestWorkspace {
    folder: tempfile::TempDir,
}

impl TestWorkspace {
    fn with(files: &[&str]) -> Self {
        let workspace = Self { folder: tempfile::tempdir().unwrap() };
        for file in files {
            workspace.write(file, "");
        }
        workspace
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn gate(&self) -> RootGate {
        RootGate::new([self.root()]).unwrap()
    }

    fn walk(&self) -> Walk {
        Walk::new(&self.root(), &["generated/".to_owned()]).unwrap()
    }

    fn names(&self, files: Vec<WorkspacePath>) -> Vec<String> {
        files.iter().map(|file| self.gate().display(file)).collect()
    }

    fn of(&self, paths: &[&str]) -> Vec<String> {
        let paths: Vec<Utf8PathBuf> = paths.iter().map(|path| self.root().join(path)).collect();
        self.names(of_paths(&paths, &self.walk(), &self.gate(), &Registry::built_in()).unwrap())
    }
}

#[test]
fn folders_are_searched_and_named_files_are_taken() {
    let workspace = TestWorkspace::with(&[
        "a.py",
        "sub/b.ts",
        "sub/c.txt",
        ".hidden/d.py",
        ".e.py",
        "ignored/f.py",
        "generated/g.py",
    ]);
    workspace.write(".gitignore", "ignored/\n");
    assert_eq!(workspace.of(&[]), ["a.py", "sub/b.ts"]);
    assert_eq!(workspace.of(&["sub"]), ["sub/b.ts"]);
    assert_eq!(workspace.of(&["sub", "sub/b.ts", "ignored/f.py"]), ["ignored/f.py", "sub/b.ts"]);
    let outside = [Utf8PathBuf::from("/etc/passwd")];
    let refused =
        of_paths(&outside, &workspace.walk(), &workspace.gate(), &Registry::built_in()).unwrap_err();
    assert_eq!(refused.to_string(), "cannot check `/etc/passwd`");
    let missing = [workspace.root().join("no.py")];
    assert!(of_paths(&missing, &workspace.walk(), &workspace.gate(), &Registry::built_in()).is_err());
}
