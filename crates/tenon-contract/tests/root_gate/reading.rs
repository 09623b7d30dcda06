//! Reads through the gate: bounded, and never through a link created after the path was admitted.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use tenon_contract::root::{ReadError, RootGate, WorkspacePath};

use crate::fixture::Tree;

fn failure(tree: &Tree, path: &WorkspacePath) -> &'static str {
    match tree.gate.read_to_string(path, 100) {
        Ok(text) => panic!("read {text:?}"),
        Err(ReadError::Denied) => "denied",
        Err(ReadError::Gone) => "gone",
        Err(ReadError::NotAFile) => "not a file",
        Err(ReadError::TooLarge { .. }) => "too large",
        Err(ReadError::NotUtf8) => "not utf-8",
        Err(ReadError::Io(_)) => "io",
    }
}

#[test]
fn file_over_the_limit_is_rejected() {
    let tree = Tree::new();
    let path = tree.gate.admit_path("link-dir/a.ts").unwrap();
    assert_eq!(tree.gate.read_to_string(&path, 6).unwrap(), "inside");
    assert!(matches!(tree.gate.read(&path, 5), Err(ReadError::TooLarge { limit: 5 })));
    fs::write(&path, "").unwrap();
    assert_eq!(tree.gate.read_to_string(&path, 0).unwrap(), "");
    fs::write(&path, "\u{feff}x").unwrap();
    assert_eq!(tree.gate.read_to_string(&path, u64::MAX).unwrap(), "\u{feff}x");
    fs::write(&path, b"\xff").unwrap();
    assert_eq!(tree.gate.read(&path, 9).unwrap(), b"\xff");
    assert_eq!(failure(&tree, &path), "not utf-8");
}

#[test]
fn file_replaced_by_a_link_is_gone() {
    let tree = Tree::new();
    let path = tree.gate.admit_path("src/a.ts").unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(failure(&tree, &path), "gone");
    symlink(tree.base.join("outside/secret.ts"), &path).unwrap();
    assert_eq!(failure(&tree, &path), "gone");
}

#[test]
fn folder_replaced_by_a_link_is_gone() {
    let tree = Tree::new();
    let path = tree.gate.admit_path("src/a.ts").unwrap();
    fs::rename(tree.base.join("root/src"), tree.base.join("root/src-away")).unwrap();
    symlink(tree.base.join("outside/src"), tree.base.join("root/src")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "SECRET", "a plain read follows the link");
    assert_eq!(failure(&tree, &path), "gone");
}

#[test]
fn root_replaced_by_a_link_is_gone() {
    let tree = Tree::new();
    let path = tree.gate.admit_path("src/a.ts").unwrap();
    fs::rename(tree.base.join("root"), tree.base.join("root-away")).unwrap();
    symlink(tree.base.join("outside"), tree.base.join("root")).unwrap();
    assert_eq!(failure(&tree, &path), "gone");
}

#[test]
fn file_replaced_by_a_pipe_or_folder_is_not_a_file() {
    let tree = Tree::new();
    let path = tree.gate.admit_path("src/a.ts").unwrap();
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(path.as_path().as_std_path(), nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert_eq!(failure(&tree, &path), "not a file");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(failure(&tree, &path), "not a file");
    let root = tree.gate.admit_folder("").unwrap();
    assert_eq!(failure(&tree, &root), "not a file");
}

#[test]
fn path_from_another_gate_is_denied() {
    let tree = Tree::new();
    let other_gate = RootGate::new([tree.base.join("outside")]).unwrap();
    let secret = other_gate.admit_path("secret.ts").unwrap();
    assert_eq!(failure(&tree, &secret), "denied");
}

#[test]
fn folder_swapped_concurrently_never_reveals_outside_content() {
    let tree = Tree::new();
    let (folder, away) = (tree.base.join("root/src"), tree.base.join("root/src-away"));
    let path = tree.gate.admit_path("src/a.ts").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                fs::rename(&folder, &away).unwrap();
                symlink(tree.base.join("outside/src"), &folder).unwrap();
                fs::remove_file(&folder).unwrap();
                fs::rename(&away, &folder).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            if let Ok(text) = tree.gate.read_to_string(&path, 100) {
                assert_eq!(text, "inside");
            }
            if let Ok(admitted) = tree.gate.admit_path("src/a.ts") {
                assert!(admitted.as_path().starts_with(tree.gate.primary().unwrap()));
            }
        }
    });
    assert_eq!(tree.gate.read_to_string(&path, 100).unwrap(), "inside");
}
