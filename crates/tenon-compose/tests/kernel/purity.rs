//! The composer is a pure function: its files use nothing that could make two runs differ.

use std::path::{Path, PathBuf};

/// The files of the composer.
const COMPOSER_FILES: [&str; 11] = [
    "composition.rs",
    "diagnostic.rs",
    "json.rs",
    "grammar.rs",
    "input.rs",
    "kind.rs",
    "pipeline.rs",
    "pipeline",
    "registry.rs",
    "registry",
    "contract_types.rs",
];

const FORBIDDEN: [&str; 11] = [
    "std::fs",
    "fs_err",
    "std::io",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::time",
    "static mut",
    "Mutex",
    "OnceLock",
];

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| files(&entry.unwrap().path(), found));
    } else {
        found.push(path.to_owned());
    }
}

#[test]
fn composer_uses_no_clock_file_or_global_state() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    COMPOSER_FILES.iter().for_each(|name| files(&source.join(name), &mut found));
    assert!(found.len() > 20);
    for file in found {
        let text = std::fs::read_to_string(&file).unwrap();
        for forbidden in FORBIDDEN {
            assert!(!text.contains(forbidden), "{} names {forbidden}", file.display());
        }
    }
}
