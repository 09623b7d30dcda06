//! The corpora of the fuzz targets: small inputs in `fuzz/corpus/TARGET`, one per file.

use std::fs;

use crate::repository_root;

/// Calls `check` with every input of a target. The name of the last one is on stderr when it panics.
pub fn for_each(target: &str, check: impl Fn(&[u8])) {
    let folder = repository_root().join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        eprintln!("{}", file.display());
        check(&fs::read(&file).expect("a readable input"));
    }
}
