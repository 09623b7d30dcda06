//! The language count of a workspace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use camino::Utf8Path;
use tenon_servers::language_count::LanguageCount;
use tenon_servers::registry::{Registry, ServerId};
use tenon_servers::walk::Walk;

fn workspace(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

fn count(folder: &tempfile::TempDir) -> LanguageCount {
    LanguageCount::count(
        &Walk::new(Utf8Path::from_path(folder.path()).unwrap(), &[]).unwrap(),
        &Registry::built_in(),
    )
}

fn counts(languages: &LanguageCount) -> Vec<(&str, usize)> {
    languages.servers().iter().map(|one| (one.server.as_str(), one.files)).collect()
}

#[test]
fn servers_are_sorted_by_number_of_files() {
    let folder = workspace(&["src/a.py", "src/b.py", "main.py", "web/x.css", "README", "Makefile"]);
    let languages = count(&folder);
    let expected = [("basedpyright", 3), ("pyrefly", 3), ("pyright", 3), ("ruff", 3), ("ty", 3), ("css", 1)];
    assert_eq!(counts(&languages), expected);
    assert_eq!(languages.files, 6);
    assert!(!languages.truncated);
    assert_eq!(languages.files_of(&ServerId::new("gopls").unwrap()), 0);
    assert!(languages.servers()[0].sample.ends_with("main.py"), "the shallowest file is the sample");
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
    assert_eq!(counts(&count(&folder)), [("gopls", 2)]);
}

#[test]
fn linter_without_configuration_has_no_files() {
    let folder = workspace(&["a.ts"]);
    assert_eq!(counts(&count(&folder)), [("typescript-language-server", 1), ("typescript-native", 1)]);
    std::fs::write(folder.path().join(".eslintrc.json"), "{}").unwrap();
    let with_linter = [("eslint", 1), ("typescript-language-server", 1), ("typescript-native", 1)];
    assert_eq!(counts(&count(&folder)), with_linter);
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
    assert_eq!(counts(&count(&folder)), [("rust-analyzer", 1)]);
}

#[test]
fn missing_folder_is_an_empty_workspace() {
    let languages = LanguageCount::count(
        &Walk::new(Utf8Path::new("/nowhere/at/all"), &[]).unwrap(),
        &Registry::built_in(),
    );
    assert_eq!(languages.files, 0);
    assert!(languages.servers().is_empty());
}

#[test]
fn two_counts_are_equal() {
    let names: Vec<String> = (0..300).map(|n| format!("d{}/f{n}.py", n % 7)).collect();
    let folder = workspace(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(count(&folder), count(&folder));
}
