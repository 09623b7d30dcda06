//! The census of a workspace's languages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::Utf8Path;
use tenon_lsp::census::Census;
use tenon_lsp::registry::{Registry, ServerId};
use tenon_lsp::walk::Walk;

fn workspace(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

fn take(folder: &tempfile::TempDir) -> Census {
    Census::take(&Walk::new(Utf8Path::from_path(folder.path()).unwrap(), &[]).unwrap(), &Registry::built_in())
}

fn counts(census: &Census) -> Vec<(&str, usize)> {
    census.shares().iter().map(|share| (share.server.as_str(), share.files)).collect()
}

#[test]
fn servers_are_counted_by_their_files_most_first() {
    let folder = workspace(&["src/a.py", "src/b.py", "main.py", "web/x.css", "README", "Makefile"]);
    let census = take(&folder);
    assert_eq!(counts(&census), [("pyright", 3), ("ruff", 3), ("ty", 3), ("css", 1)]);
    assert_eq!(census.files, 6);
    assert!(!census.truncated);
    assert_eq!(census.files_of(&ServerId::new("gopls").unwrap()), 0);
    assert!(census.shares()[0].sample.ends_with("main.py"), "the shallowest file is the sample");
}

#[test]
fn ignored_and_hidden_files_do_not_count() {
    let folder = workspace(&[
        "a.go",
        "vendor/b.go",
        "build/c.go",
        ".cache/d.go",
        ".hidden.go",
        "sub/e.go",
        "sub/out/f.go",
    ]);
    std::fs::write(folder.path().join(".gitignore"), "vendor/\n").unwrap();
    std::fs::write(folder.path().join(".ignore"), "build/\n").unwrap();
    std::fs::write(folder.path().join("sub/.gitignore"), "out/\n").unwrap();
    assert_eq!(counts(&take(&folder)), [("gopls", 2)]);
}

#[test]
fn a_linter_without_its_configuration_has_no_files() {
    let folder = workspace(&["a.ts"]);
    assert_eq!(counts(&take(&folder)), [("typescript-language-server", 1), ("typescript-native", 1)]);
    std::fs::write(folder.path().join(".eslintrc.json"), "{}").unwrap();
    let with_linter = [("eslint", 1), ("typescript-language-server", 1), ("typescript-native", 1)];
    assert_eq!(counts(&take(&folder)), with_linter);
}

#[test]
fn links_are_not_followed_and_strange_entries_are_skipped() {
    use std::os::unix::ffi::OsStrExt;
    let outside = workspace(&["x.rs", "y.rs"]);
    let folder = workspace(&["a.rs"]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("linked")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.rs")), "").unwrap();
    nix::unistd::mkfifo(&folder.path().join("pipe.rs"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(counts(&take(&folder)), [("rust-analyzer", 1)]);
}

#[test]
fn a_missing_folder_is_an_empty_workspace() {
    let census =
        Census::take(&Walk::new(Utf8Path::new("/nowhere/at/all"), &[]).unwrap(), &Registry::built_in());
    assert_eq!(census.files, 0);
    assert!(census.shares().is_empty());
}

#[test]
fn two_counts_agree() {
    let names: Vec<String> = (0..300).map(|n| format!("d{}/f{n}.py", n % 7)).collect();
    let folder = workspace(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(take(&folder), take(&folder));
}
