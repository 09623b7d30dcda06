//! What changed since the last report: in repositories, and where git cannot help.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::ffi::OsStr;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_code::report_log::{ReportLog, ReportedFiles};
use tenon_contract::root::RootGate;
use tenon_servers::find::SearchPath;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        Self { folder }
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap().join("root")
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.root().join(file), text).unwrap();
    }

    /// The log, as a daemon opens it after its start.
    fn log(&self, path: &OsStr) -> ReportLog {
        let root = self.root();
        let files = ReportedFiles {
            gate: RootGate::new([&root]).unwrap(),
            walk: Walk::new(&root, &[]).unwrap(),
            registry: Registry::configured(&std::collections::BTreeMap::default()).unwrap(),
            search: SearchPath::new(path),
        };
        ReportLog::new(files, root.parent().unwrap().join("record.json"))
    }

    /// The changes, with the texts before, and whether files are new. They become the last report.
    async fn report(&self, path: &OsStr) -> Vec<(String, Option<String>, bool)> {
        let log = self.log(path);
        let changes = log.changes().await.unwrap();
        let name = |path: &Utf8Path| path.file_name().unwrap().to_owned();
        let files =
            changes.files.iter().map(|file| (name(file.path.as_path()), file.before.clone(), file.is_new));
        let files = files.collect();
        log.finish(changes, &[]).await.unwrap();
        files
    }

    /// Makes a repository of the files so far.
    fn commit(&self) {
        self.git(&["init", "-q"]);
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let mut git = std::process::Command::new("git");
        let done = git.args(identity).args(arguments).current_dir(self.root()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap()
}

fn change(file: &str, before: &str, is_new: bool) -> (String, Option<String>, bool) {
    (file.to_owned(), Some(before.to_owned()), is_new)
}

#[tokio::test]
async fn texts_before_are_those_of_the_last_report_else_of_the_commit() {
    let folder = Folder::new();
    folder.write("a.py", "a\n");
    folder.write("b.py", "b\n");
    folder.commit();
    folder.write("a.py", "a2\n");
    folder.write("new.py", "n\n");
    assert_eq!(folder.report(&path()).await, [change("a.py", "a\n", false), change("new.py", "", true)]);
    folder.write("a.py", "a3\n");
    std::fs::remove_file(folder.root().join("b.py")).unwrap();
    assert_eq!(folder.report(&path()).await, [change("a.py", "a2\n", false), change("b.py", "b\n", false)]);
    folder.write("b.py", "b again\n");
    assert_eq!(folder.report(&path()).await, [change("b.py", "", true)]);
    assert_eq!(folder.report(&path()).await, []);
}

#[tokio::test]
async fn unfinished_file_keeps_its_text_of_the_report_before() {
    let folder = Folder::new();
    folder.write("a.py", "a\n");
    folder.commit();
    folder.write("a.py", "a2\n");
    folder.write("new.py", "n\n");
    let log = folder.log(&path());
    let changes = log.changes().await.unwrap();
    let unfinished: Vec<_> = changes.files.iter().map(|file| file.path.clone()).collect();
    log.finish(changes, &unfinished).await.unwrap();
    folder.git(&["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(folder.report(&path()).await, [change("a.py", "a\n", false), change("new.py", "", true)]);
    assert_eq!(folder.report(&path()).await, []);
}

#[tokio::test]
async fn without_git_changes_count_from_the_first_report() {
    let folder = Folder::new();
    folder.write("a.py", "a\n");
    folder.commit();
    folder.write("a.py", "a2\n");
    assert_eq!(folder.report(&path()).await, [change("a.py", "a\n", false)]);
    // The commit of the last report cannot be read any more.
    let nowhere = OsStr::new("");
    assert_eq!(folder.report(nowhere).await, []);
    folder.write("a.py", "a3\n");
    folder.write("new.py", "n\n");
    assert_eq!(folder.report(nowhere).await, [change("a.py", "a2\n", false), change("new.py", "", true)]);
}
