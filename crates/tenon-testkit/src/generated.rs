//! Files of the tree that are made from code: compared by a test, written by `cargo xtask schemas`.
//!
//! The test's name starts with `generated_`, which is how `cargo xtask schemas` finds it.

use std::fs;
use std::path::Path;

use crate::tree::repository;

/// The variable that makes [`check`] write instead of compare.
pub const UPDATE_VARIABLE: &str = "TENON_UPDATE";

/// Compares the file at `path`, relative to the repository, with the `text` that code makes of it.
pub fn check(path: impl AsRef<Path>, text: &str) {
    let shown = path.as_ref().display();
    let file = repository().join(path.as_ref());
    let present = fs::read_to_string(&file).unwrap_or_default();
    if present == text {
        return;
    }
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        let folder = file.parent().expect("a file of the tree lies in a folder");
        fs::create_dir_all(folder).expect("the tree can be written to");
        fs::write(&file, text).expect("the tree can be written to");
        return;
    }
    let line = present.lines().zip(text.lines()).take_while(|(old, new)| old == new).count() + 1;
    panic!("{shown}:{line} is not what the code makes: run `cargo xtask schemas` and commit the change");
}
