//! Which files a workspace check covers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_contract::root::{RootGate, WorkspacePath};
use tenon_lsp::workspace_check::files::{FilesError, changed, of_paths};
use tenon_servers::find::SearchPath;
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

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let done =
            Command::new("git").args(identity).args(arguments).current_dir(self.root()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    async fn changed(&self) -> Result<Vec<String>, FilesError> {
        let search = SearchPath::from_env();
        let files = changed(&self.walk(), &self.gate(), &Registry::built_in(), &search).await?;
        Ok(self.names(files))
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

#[tokio::test]
async fn changed_files_are_those_that_differ_from_the_last_commit() {
    let workspace =
        TestWorkspace::with(&["same.py", "edited.py", "deleted.py", "staged.py", "notes.txt", "ä b.py"]);
    workspace.git(&["init", "-q"]);
    assert_eq!(workspace.changed().await.unwrap().len(), 5, "without a commit everything is new");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "-q", "-m", "first"]);
    assert_eq!(workspace.changed().await.unwrap(), [""; 0]);
    workspace.write("edited.py", "x = 1\n");
    workspace.write("ä b.py", "x = 1\n");
    workspace.write("notes.txt", "changed\n");
    workspace.write("new/n.py", "");
    workspace.write("generated/g.py", "");
    workspace.write("staged.py", "x = 1\n");
    workspace.git(&["add", "staged.py"]);
    std::fs::remove_file(workspace.root().join("deleted.py")).unwrap();
    assert_eq!(workspace.changed().await.unwrap(), ["edited.py", "new/n.py", "staged.py", "ä b.py"]);
}

#[tokio::test]
async fn repository_configuration_runs_no_program() {
    let workspace = TestWorkspace::with(&["a.py", "b.py"]);
    workspace.git(&["init", "-q"]);
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "-q", "-m", "first"]);
    let trace = workspace.root().join("ran");
    let evil = format!("touch {trace}");
    workspace.git(&["config", "core.fsmonitor", &evil]);
    workspace.git(&["config", "filter.evil.one.clean", &evil]);
    workspace.git(&["config", "filter.evil.one.process", &evil]);
    workspace.git(&["config", "filter.evil.one.required", "true"]);
    workspace.write(".gitattributes", "*.py filter=evil.one\n");
    workspace.write("a.py", "changed\n");
    assert_eq!(workspace.changed().await.unwrap(), ["a.py"]);
    assert!(!trace.exists());
}

#[tokio::test]
async fn changed_files_outside_a_repository_are_an_error() {
    let workspace = TestWorkspace::with(&["a.py"]);
    // The temporary folder may lie inside a repository; its own broken `.git` ends the search.
    workspace.write(".git", "gitdir: /nowhere");
    let error = workspace.changed().await.unwrap_err();
    assert!(error.to_string().starts_with("`git` failed: "), "{error}");
}
