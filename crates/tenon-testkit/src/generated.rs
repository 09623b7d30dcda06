//! Checked-in files that are generated from code: a test compares them, `cargo xtask schemas` writes them.
//!
//! `cargo xtask schemas` finds these tests by their name, which starts with `generated_`.

use std::fs;
use std::path::Path;

use crate::repository_root;

/// The environment variable that makes [`check`] write instead of compare.
pub const UPDATE_VARIABLE: &str = "TENON_UPDATE";

/// Compares the file at `path`, relative to the repository, with the generated `text`.
pub fn check(path: impl AsRef<Path>, text: &str) {
    let shown = path.as_ref().display();
    let file = repository_root().join(path.as_ref());
    let present = fs::read_to_string(&file).unwrap_or_default();
    if present == text {
        return;
    }
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        let folder = file.parent().expect("a file has a parent folder");
        fs::create_dir_all(folder).expect("the tree can be written to");
        fs::write(&file, text).expect("the tree can be written to");
        return;
    }
    let line = present.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    let shown_line = |text: &str| text.lines().nth(line).unwrap_or("(end of file)").to_owned();
    let (old, new) = (shown_line(&present), shown_line(text));
    let line = line + 1;
    panic!(
        "{shown}:{line} is out of date\n  file: {old}\n  now:  {new}\n  \
         hint: run this test with `{UPDATE_VARIABLE}=1`, or `cargo xtask schemas`, and read the diff"
    );
}
