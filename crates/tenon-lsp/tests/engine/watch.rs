//! Watching a tree: which events count as changes, and that a flush reports all earlier ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenon_contract::clock::Clock;
use tenon_contract::epoch::{Epoch, Epochs};
use tenon_contract::root::RootGate;
use tenon_lsp::CallContext;
use tenon_lsp::watch::FileChangeKind::{self, Changed, Created, Deleted};
use tenon_lsp::watch::Watch;

struct Tree {
    folder: TempDir,
    epochs: Arc<Epochs>,
    watch: Watch,
}

impl Tree {
    async fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            put(folder.path(), path, text);
        }
        let gate = RootGate::new([folder.path()]).unwrap();
        let epochs = Arc::new(Epochs::starting_now(&Clock::system()));
        let watch = Watch::start(&gate, vec!["left-out/".to_owned()], Arc::clone(&epochs)).unwrap();
        let tree = Self { folder, epochs, watch };
        assert_eq!(tree.changes().await, BTreeMap::new());
        tree
    }

    fn put(&self, path: &str, text: &str) {
        put(self.folder.path(), path, text);
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    /// All changes up to now, by relative path.
    async fn changes(&self) -> BTreeMap<String, FileChangeKind> {
        assert!(self.watch.flush(&CallContext::within(Duration::from_secs(20))).await);
        let root = self.folder.path().canonicalize().unwrap();
        let relative = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        self.watch
            .take_changes()
            .into_iter()
            .map(|(path, kind)| (relative(path.as_std_path()), kind))
            .collect()
    }

    fn epoch(&self) -> (u64, u64) {
        (self.epochs.get(Epoch::Text), self.epochs.get(Epoch::Fs))
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn changes<const N: usize>(list: [(&str, FileChangeKind); N]) -> BTreeMap<String, FileChangeKind> {
    list.into_iter().map(|(path, kind)| (path.to_owned(), kind)).collect()
}

#[tokio::test]
async fn flush_reports_all_earlier_changes() {
    let tree = Tree::new(&[("a.py", "1"), ("sub/b.py", "1")]).await;
    for round in 0..200 {
        let before = tree.epoch();
        tree.put("sub/b.py", &format!("{round}"));
        assert_eq!(tree.changes().await, changes([("sub/b.py", Changed)]));
        assert!(tree.epoch().0 > before.0);
        assert_eq!(tree.epoch().1, before.1, "a changed text creates no file");
    }
}

#[tokio::test]
async fn files_are_created_deleted_and_moved_with_their_folders() {
    let tree = Tree::new(&[("one/a.py", "1"), ("one/deep/b.py", "1")]).await;
    let before = tree.epoch();
    fs::rename(tree.at("one"), tree.at("two")).unwrap();
    assert_eq!(
        tree.changes().await,
        changes([
            ("one", Deleted),
            ("one/a.py", Deleted),
            ("one/deep", Deleted),
            ("one/deep/b.py", Deleted),
            ("two", Created),
            ("two/a.py", Created),
            ("two/deep", Created),
            ("two/deep/b.py", Created)
        ])
    );
    assert!(tree.epoch().1 > before.1);
    tree.put("two/deep/b.py", "2");
    assert_eq!(tree.changes().await, changes([("two/deep/b.py", Changed)]));
    fs::remove_dir_all(tree.at("two")).unwrap();
    assert_eq!(
        tree.changes().await,
        changes([("two", Deleted), ("two/a.py", Deleted), ("two/deep", Deleted), ("two/deep/b.py", Deleted)])
    );
    tree.put("two/deep/b.py", "3");
    assert_eq!(
        tree.changes().await,
        changes([("two", Created), ("two/deep", Created), ("two/deep/b.py", Created)])
    );
    tree.put("two/deep/b.py", "4");
    assert_eq!(tree.changes().await, changes([("two/deep/b.py", Changed)]));
}

#[tokio::test]
async fn folder_that_is_replaced_at_once_stays_watched() {
    let tree = Tree::new(&[("d/deep/a.py", "0")]).await;
    for round in 0..50 {
        // Removed, or moved away, before the first event is handled.
        if round % 2 == 0 {
            fs::remove_dir_all(tree.at("d")).unwrap();
        } else {
            fs::rename(tree.at("d"), tree.at(&format!("old{round}"))).unwrap();
        }
        tree.put("d/deep/a.py", &format!("{round}"));
        assert!(tree.changes().await.contains_key("d/deep/a.py"), "{round}");
        tree.put("d/deep/a.py", &format!("{round} again"));
        assert_eq!(tree.changes().await, changes([("d/deep/a.py", Changed)]), "{round}");
        tree.put("d/deep/b.py", "");
        assert_eq!(tree.changes().await, changes([("d/deep/b.py", Created)]), "{round}");
    }
}

#[tokio::test]
async fn file_and_folder_may_take_each_others_name() {
    let tree = Tree::new(&[("x/a.py", "1"), ("y", "1")]).await;
    fs::remove_dir_all(tree.at("x")).unwrap();
    tree.put("x", "1");
    fs::remove_file(tree.at("y")).unwrap();
    tree.put("y/b.py", "1");
    let seen = tree.changes().await;
    assert_eq!(seen.get("x/a.py"), Some(&Deleted));
    assert_eq!(seen.get("y/b.py"), Some(&Created));
    assert!(seen.contains_key("x") && seen.contains_key("y"), "{seen:?}");
    let root = tree.folder.path().canonicalize().unwrap();
    let files = tree.watch.files().into_iter().map(|path| path.strip_prefix(&root).unwrap().to_string());
    assert_eq!(files.collect::<Vec<_>>(), ["x", "y/b.py"]);
}

#[tokio::test]
async fn file_replaced_by_a_rename_counts_as_changed() {
    let tree = Tree::new(&[("a.py", "1")]).await;
    tree.put("a.py.tmp", "2");
    fs::rename(tree.at("a.py.tmp"), tree.at("a.py")).unwrap();
    assert_eq!(tree.changes().await.get("a.py"), Some(&Changed));
}

#[tokio::test]
async fn ignored_files_cause_no_event() {
    let tree = Tree::new(&[
        (".gitignore", "build/\n*.log\n!keep.log\n"),
        ("src/.ignore", "generated.py\n"),
        ("a.py", ""),
        ("build/x.py", ""),
        (".git/HEAD", ""),
        (".cache/clangd/index/a.idx", ""),
        ("node_modules/m/index.js", ""),
        ("left-out/x.py", ""),
        ("env/pyvenv.cfg", ""),
        ("env/lib/x.py", ""),
        (".hidden/x.py", ""),
    ])
    .await;
    assert_eq!(tree.watch.files().len(), 3, "{:?}", tree.watch.files());
    let before = tree.epoch();
    for path in [
        "build/x.py",
        "x.log",
        ".git/index",
        ".cache/clangd/index/b.idx",
        "node_modules/n/i.js",
        "src/generated.py",
    ] {
        tree.put(path, "changed");
    }
    assert_eq!(tree.changes().await, BTreeMap::new());
    assert_eq!(tree.epoch(), before);
    tree.put("keep.log", "");
    assert_eq!(tree.changes().await, changes([("keep.log", Created)]));
}

#[tokio::test]
async fn new_ignore_rules_add_and_remove_files() {
    let tree = Tree::new(&[("a.py", ""), ("out/b.py", "")]).await;
    tree.put(".gitignore", "out/\n");
    assert_eq!(
        tree.changes().await,
        changes([(".gitignore", Created), ("out", Deleted), ("out/b.py", Deleted)])
    );
    fs::remove_file(tree.at(".gitignore")).unwrap();
    assert_eq!(
        tree.changes().await,
        changes([(".gitignore", Deleted), ("out", Created), ("out/b.py", Created)])
    );
    tree.put("out/b.py", "2");
    assert_eq!(tree.changes().await, changes([("out/b.py", Changed)]));
}

#[tokio::test]
async fn one_flush_reports_ten_thousand_new_files() {
    let tree = Tree::new(&[("seed.py", "")]).await;
    for number in 0..10_000 {
        tree.put(&format!("d{}/f{number}.py", number % 100), "x");
    }
    let seen = tree.changes().await;
    assert_eq!(seen.len(), 10_000 + 100, "files and their folders");
    assert!(seen.values().all(|kind| *kind == Created));
    for number in 0..10_000 {
        tree.put(&format!("d{}/f{number}.py", number % 100), "yy");
    }
    assert_eq!(tree.changes().await.len(), 10_000);
}

#[tokio::test]
async fn cancelled_flush_does_not_hang() {
    let tree = Tree::new(&[("a.py", "")]).await;
    let call = CallContext::within(Duration::from_secs(20));
    call.cancel.cancel();
    // It may finish or time out, but it never hangs.
    let _ = tree.watch.flush(&call).await;
}
