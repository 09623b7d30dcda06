//! Changed files and texts before, read from git repositories of all shapes.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tenon_code::changed_files;
use tenon_code::git::{GitError, GitRepository};
use tenon_contract::root::RootGate;
use tenon_servers::find::SearchPath;
use tenon_servers::registry::Registry;
use tenon_servers::walk::Walk;

/// A folder with repositories.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A repository in the folder `w` with these committed files.
    fn with(files: &[&str], init: &[&str]) -> Self {
        let stage = Self::new();
        for file in files {
            stage.write(&format!("w/{file}"), "old\n");
        }
        std::fs::create_dir_all(stage.path("w")).unwrap();
        stage.git("w", &[&["init", "-q"], init].concat());
        stage.git("w", &["add", "."]);
        stage.git("w", &["commit", "-q", "-m", "first", "--allow-empty"]);
        stage
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap().join(name)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let identity =
            ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.args(identity).args(arguments).current_dir(self.path(folder));
        let done = command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    async fn open(&self, folder: &str) -> Result<GitRepository, GitError> {
        GitRepository::open(&self.path(folder), &SearchPath::from_env(), Duration::from_secs(30)).await
    }

    /// The changes since a revision: `+` for new files, `-` for deleted ones.
    async fn changes(&self, folder: &str, revision: &str) -> Result<Vec<String>, GitError> {
        let repository = self.open(folder).await?;
        let root = self.path(folder);
        let walk = Walk::new(&root, &["generated/".to_owned()]).unwrap();
        let gate = RootGate::new([&root]).unwrap();
        let revision = repository.revision(revision).await?;
        let files = changed_files::since(&repository, &revision, &walk, &gate, &Registry::built_in()).await?;
        let name = |file: &changed_files::ChangedFile| {
            let mark = match (&file.before, file.exists) {
                (None, _) => "+",
                (Some(_), true) => "",
                (Some(_), false) => "-",
            };
            format!("{mark}{}", gate.display(&file.path))
        };
        Ok(files.iter().map(name).collect())
    }

    async fn text_before(&self, folder: &str, path: &str) -> Option<String> {
        self.open(folder).await.unwrap().text_before(Utf8Path::new(path)).await.unwrap()
    }
}

#[tokio::test]
async fn changes_are_the_differences_from_the_revision() {
    let stage = Stage::with(
        &[
            "same.py",
            "edited.py",
            "deleted.py",
            "staged.py",
            "notes.txt",
            "ä b.py",
            "x\ny.py",
            "-q.py",
            ":z.py",
        ],
        &[],
    );
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
    for file in [
        "edited.py",
        "ä b.py",
        "notes.txt",
        "new/n.py",
        "generated/g.py",
        "staged.py",
        "x\ny.py",
        "-q.py",
        ":z.py",
    ] {
        stage.write(&format!("w/{file}"), "new\n");
    }
    stage.git("w", &["add", "staged.py"]);
    std::fs::remove_file(stage.path("w/deleted.py")).unwrap();
    stage.write("w/ignored.py", "");
    stage.write("w/.gitignore", "ignored.py\n");
    let expected =
        ["-q.py", ":z.py", "-deleted.py", "edited.py", "+new/n.py", "staged.py", "x\ny.py", "ä b.py"];
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), expected);
    stage.git("w", &["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["+new/n.py"]);
    assert_eq!(stage.changes("w", "HEAD~1").await.unwrap(), expected);
    for unknown in ["no-such-branch", "--help", "-x", "HEAD~9", "@{upstream}"] {
        let error = stage.changes("w", unknown).await.unwrap_err();
        assert_eq!(error.to_string(), format!("unknown revision `{unknown}`"));
    }
}

#[tokio::test]
async fn text_before_is_that_of_the_index_else_of_head() {
    let stage = Stage::with(&["a.py", "x\ny.py", "both/a.py"], &[]);
    stage.write("w/a.py", "staged\n");
    stage.git("w", &["add", "a.py"]);
    stage.write("w/a.py", "newest\n");
    stage.git("w", &["rm", "-q", "--cached", "both/a.py"]);
    stage.write("w/new.py", "new\n");
    assert_eq!(stage.text_before("w", "a.py").await.as_deref(), Some("staged\n"));
    assert_eq!(stage.text_before("w", "x\ny.py").await.as_deref(), Some("old\n"));
    assert_eq!(stage.text_before("w", "both/a.py").await.as_deref(), Some("old\n"));
    assert_eq!(stage.text_before("w", "new.py").await, None);
    assert_eq!(stage.text_before("w", "both").await, None);
}

#[tokio::test]
async fn texts_that_are_missing_too_large_or_binary_are_none() {
    let stage = Stage::with(&["a.py"], &[]);
    std::fs::write(stage.path("w/binary.py"), b"\xff\xfe\x00").unwrap();
    stage.write("w/large.py", &"x = 1\n".repeat(2_000_000));
    stage.git("w", &["add", "."]);
    stage.git("w", &["commit", "-q", "-m", "second"]);
    for file in ["a.py", "binary.py", "large.py"] {
        stage.write(&format!("w/{file}"), "new\n");
    }
    let repository = stage.open("w").await.unwrap();
    let head = repository.revision("HEAD").await.unwrap();
    let changes = repository.changes(&head, Vec::new(), |_| true).await.unwrap();
    let mut blobs: Vec<_> = changes.iter().filter_map(|change| change.before.clone()).collect();
    blobs.extend(blobs.clone());
    let texts = repository.texts(&blobs).await.unwrap();
    let old = Some("old\n".to_owned());
    assert_eq!(texts, [old.clone(), None, None, old, None, None]);
}

#[tokio::test]
async fn repository_without_commits_has_only_new_files() {
    let stage = Stage::new();
    stage.write("w/a.py", "");
    stage.write("w/b.py", "staged\n");
    stage.git("w", &["init", "-q"]);
    stage.git("w", &["add", "b.py"]);
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["+a.py", "+b.py"]);
    assert_eq!(stage.text_before("w", "b.py").await.as_deref(), Some("staged\n"));
    assert_eq!(stage.text_before("w", "a.py").await, None);
    assert!(matches!(stage.changes("w", "main").await, Err(GitError::UnknownRevision(_))));
}

#[tokio::test]
async fn sha256_and_reftable_repositories_are_read() {
    for init in [&["--object-format=sha256"], &["--ref-format=reftable"]] {
        let stage = Stage::with(&["a.py", "b.py"], init);
        stage.write("w/b.py", "new\n");
        assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["b.py"], "{init:?}");
        assert_eq!(stage.text_before("w", "b.py").await.as_deref(), Some("old\n"), "{init:?}");
    }
}

#[tokio::test]
async fn workspace_below_the_top_of_the_repository_is_read() {
    let stage = Stage::with(&["a.py", "sub/b.py", "sub/deep/c.py", "subway/d.py"], &[]);
    for file in ["a.py", "sub/b.py", "subway/d.py", "sub/n.py"] {
        stage.write(&format!("w/{file}"), "new\n");
    }
    assert_eq!(stage.changes("w/sub", "HEAD").await.unwrap(), ["b.py", "+n.py"]);
    assert_eq!(stage.text_before("w/sub", "b.py").await.as_deref(), Some("old\n"));
}

#[tokio::test]
async fn worktree_has_its_own_head_and_index() {
    let stage = Stage::with(&["a.py", "b.py"], &[]);
    stage.git("w", &["worktree", "add", "-q", "-b", "other", "../tree"]);
    stage.write("tree/a.py", "other\n");
    stage.git("tree", &["commit", "-q", "-a", "-m", "second"]);
    stage.write("tree/b.py", "new\n");
    assert_eq!(stage.changes("tree", "HEAD").await.unwrap(), ["b.py"]);
    assert_eq!(stage.changes("tree", "HEAD~1").await.unwrap(), ["a.py", "b.py"]);
    assert_eq!(stage.text_before("tree", "a.py").await.as_deref(), Some("other\n"));
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn submodule_is_its_own_repository() {
    let stage = Stage::with(&["a.py"], &[]);
    stage.write("lib/l.py", "old\n");
    stage.git("lib", &["init", "-q"]);
    stage.git("lib", &["add", "."]);
    stage.git("lib", &["commit", "-q", "-m", "first"]);
    let lib = stage.path("lib");
    stage.git("w", &["submodule", "--quiet", "add", lib.as_str(), "sub"]);
    stage.git("w", &["commit", "-q", "-m", "second"]);
    stage.write("w/sub/l.py", "new\n");
    stage.write("w/sub/new.py", "new\n");
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
    assert_eq!(stage.changes("w/sub", "HEAD").await.unwrap(), ["l.py", "+new.py"]);
    assert_eq!(stage.text_before("w/sub", "l.py").await.as_deref(), Some("old\n"));
}

#[tokio::test]
async fn line_ends_of_a_checkout_and_absent_files_of_a_sparse_checkout_do_not_count() {
    let stage = Stage::with(&["a.py", "b.py", "out/c.py"], &[]);
    stage.write("w/a.py", "old\r\n");
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
    stage.write("w/b.py", "new\r\n");
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["b.py"]);
    stage.git("w", &["checkout", "-q", "."]);
    stage.git("w", &["sparse-checkout", "set", "--sparse-index", "in"]);
    assert!(!stage.path("w/out/c.py").exists());
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
    stage.git("w", &["sparse-checkout", "disable"]);
    stage.git("w", &["update-index", "--split-index"]);
    stage.write("w/b.py", "new\n");
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["b.py"]);
}

#[tokio::test]
async fn names_that_are_not_text_and_links_are_left_out() {
    let stage = Stage::with(&["a.py"], &[]);
    std::os::unix::fs::symlink("a.py", stage.path("w/link.py")).unwrap();
    let odd = stage.path("w").into_std_path_buf().join(std::ffi::OsStr::from_bytes(b"\xff.py"));
    std::fs::write(odd, "x").unwrap();
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
    stage.git("w", &["add", "."]);
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn conflict_counts_with_our_side() {
    let stage = Stage::with(&["a.py"], &[]);
    stage.git("w", &["checkout", "-q", "-b", "theirs"]);
    stage.write("w/a.py", "theirs\n");
    stage.git("w", &["commit", "-q", "-a", "-m", "theirs"]);
    stage.git("w", &["checkout", "-q", "-"]);
    stage.write("w/a.py", "ours\n");
    stage.git("w", &["commit", "-q", "-a", "-m", "ours"]);
    let merge = Command::new("git").args(["merge", "-q", "theirs"]).current_dir(stage.path("w")).output();
    assert!(!merge.unwrap().status.success());
    assert_eq!(stage.text_before("w", "a.py").await.as_deref(), Some("ours\n"));
    assert_eq!(stage.changes("w", "HEAD").await.unwrap(), ["a.py"]);
}

#[tokio::test]
async fn folders_without_a_readable_repository_are_errors() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("bare")).unwrap();
    stage.git("bare", &["init", "-q", "--bare"]);
    assert!(matches!(stage.open("bare").await, Err(GitError::Bare)));
    stage.write("w/.git", "gitdir: /nowhere");
    assert!(matches!(stage.open("w").await, Err(GitError::ForeignLink { .. })));
    stage.write("empty/.git/x", "");
    assert!(matches!(stage.open("empty").await, Err(GitError::Read { .. })));
    let everything = SearchPath::from_env();
    let nothing = GitRepository::open(Utf8Path::new("/dev"), &everything, Duration::from_secs(30)).await;
    assert!(matches!(nothing, Err(GitError::NotARepository)));
    let search = SearchPath::new("/nowhere".as_ref());
    let no_git = GitRepository::open(&stage.path("w"), &search, Duration::from_secs(30)).await;
    assert!(matches!(no_git, Err(GitError::NoGit)));
}
