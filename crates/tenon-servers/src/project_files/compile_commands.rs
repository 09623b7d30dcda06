//! C and C++ projects: the files of `compile_commands.json` and the headers that they include.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use super::{ProjectFiles, ProjectSearch, normalised};
use crate::compilation_database::DATABASES;

#[derive(Deserialize)]
struct CompileCommand {
    directory: Utf8PathBuf,
    file: Utf8PathBuf,
}

pub(super) fn find(search: &ProjectSearch<'_>) -> ProjectFiles {
    let text = DATABASES.iter().find_map(|name| (search.read)(&search.root.join(name)));
    let commands: Option<Vec<CompileCommand>> = text.and_then(|text| serde_json::from_str(&text).ok());
    let Some(commands) = commands else {
        // Without a database clangd indexes no files by itself.
        let outside = search.outside(|_| false);
        return ProjectFiles { outside, all_outside: true, ..ProjectFiles::default() };
    };
    let compiled: BTreeSet<Utf8PathBuf> =
        commands.iter().map(|one| normalised(&one.directory.join(&one.file))).collect();
    let outside = search.outside(|file| !is_source(file) || compiled.contains(file));
    let headers = search.outside(|file| is_source(file) || compiled.contains(file));
    ProjectFiles { outside, headers, ..ProjectFiles::default() }
}

/// The headers that clangd has not indexed, because no compiled file includes them. It stores the index of each file as
/// `NAME.HASH.idx` below the database's folder. If some, but not all, headers with a name are stored, they come second.
pub(super) fn unindexed(
    database: &Utf8Path,
    headers: &[Utf8PathBuf],
) -> (Vec<Utf8PathBuf>, Vec<Utf8PathBuf>) {
    let mut stored: BTreeMap<String, usize> = BTreeMap::new();
    for entry in database.join(".cache/clangd/index").read_dir_utf8().into_iter().flatten().flatten() {
        let name = entry.file_name().strip_suffix(".idx").and_then(|name| name.rsplit_once('.'));
        if let Some((name, _)) = name {
            *stored.entry(name.to_owned()).or_default() += 1;
        }
    }
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for name in headers.iter().filter_map(|header| header.file_name()) {
        *named.entry(name).or_default() += 1;
    }
    let is_stored = |name: &str| stored.get(name) >= named.get(name);
    let missing = headers.iter().filter(|header| !header.file_name().is_some_and(is_stored)).cloned();
    missing.partition(|header| header.file_name().is_some_and(|name| !stored.contains_key(name)))
}

/// Whether a file is compiled by itself; headers are read with the files that include them.
pub(super) fn is_source(file: &Utf8Path) -> bool {
    matches!(file.extension(), Some("c" | "cc" | "cpp" | "cxx" | "c++" | "m" | "mm" | "cu"))
}
