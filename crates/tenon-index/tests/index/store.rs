//! The store: a restart parses what changed, and a damaged store is as good as none.

use crate::workspace::{Workspace, dump, find};

const FILES: &[(&str, &str)] = &[
    ("a.py", "class A(Base):\n    \"\"\"Doc.\"\"\"\n    def b(self): pass\n"),
    ("src/lib.rs", "//! Lib.\npub fn run() {}\n"),
];

fn saved() -> Workspace {
    let workspace = Workspace::new(FILES);
    for (path, _) in FILES {
        workspace.age(path);
    }
    let index = workspace.open();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 2);
    index.save().unwrap();
    workspace
}

#[test]
fn restart_parses_only_what_changed() {
    let workspace = saved();
    workspace.write("a.py", "class Changed: pass\n");
    let index = workspace.open();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 1);
    assert_eq!(dump(&index.view()), dump(&workspace.fresh().view()));
}

#[test]
fn stored_files_are_not_listed_before_the_files_are_known() {
    let workspace = saved();
    let index = workspace.open();
    index.update_files(&[workspace.path("a.py")]);
    assert_eq!((index.view().files().len(), index.parsed_files()), (1, 0));
    index.replace_files(&workspace.files());
    assert_eq!((index.view().files().len(), index.parsed_files()), (2, 0));
}

#[test]
fn unchanged_index_is_not_written_again() {
    let workspace = saved();
    std::fs::remove_file(workspace.store()).unwrap();
    let index = workspace.open();
    index.replace_files(&workspace.files());
    index.save().unwrap();
    std::fs::remove_file(workspace.store()).unwrap();
    index.save().unwrap();
    assert!(!workspace.store().exists());
}

#[test]
fn damaged_store_is_parsed_again() {
    let workspace = saved();
    let whole = std::fs::read(workspace.store()).unwrap();
    let mut damaged: Vec<Vec<u8>> = vec![Vec::new(), b"tenon-index\n".to_vec(), vec![0xff; 1000]];
    damaged.extend((0..whole.len()).step_by(13).map(|length| whole[..length].to_vec()));
    damaged.extend((0..whole.len()).step_by(7).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        bytes
    }));
    damaged.push([whole.as_slice(), b"more"].concat());
    let expected = dump(&workspace.fresh().view());
    for bytes in damaged {
        std::fs::write(workspace.store(), &bytes).unwrap();
        let index = workspace.open();
        index.replace_files(&workspace.files());
        assert_eq!(index.parsed_files(), 2, "{} bytes", bytes.len());
        assert_eq!(dump(&index.view()), expected);
    }
}

#[test]
fn store_of_another_root_is_not_used() {
    let workspace = saved();
    let other = saved();
    std::fs::copy(other.store(), workspace.store()).unwrap();
    let index = workspace.open();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 2);
}

#[cfg(unix)]
#[test]
fn pipe_or_link_instead_of_the_store_is_not_read() {
    let workspace = saved();
    let elsewhere = workspace.outside("elsewhere");
    std::fs::rename(workspace.store(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, workspace.store()).unwrap();
    let index = workspace.open();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 2);

    std::fs::remove_file(workspace.store()).unwrap();
    nix::unistd::mkfifo(workspace.store().as_std_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let index = workspace.open();
    index.replace_files(&workspace.files());
    assert_eq!(index.parsed_files(), 2);
    // Saving replaces it.
    index.save().unwrap();
    assert!(std::fs::symlink_metadata(workspace.store()).unwrap().is_file());
}

#[test]
fn store_that_cannot_be_written_is_an_error_and_the_index_works() {
    let workspace = Workspace::new(FILES);
    std::fs::write(workspace.outside("cache"), "a file in the way").unwrap();
    let index = workspace.open();
    index.replace_files(&workspace.files());
    index.save().unwrap_err();
    assert_eq!(find(&index.view(), "run").total, 1);
}
