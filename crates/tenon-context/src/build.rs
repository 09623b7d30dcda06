//! Building a cache from a folder of documents.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tenon_contract::clock::Clock;

use crate::cache_folder::CacheFolder;
use crate::document::{DocumentFile, Metadata};
use crate::error::Error;
use crate::manifest::{DOCUMENTS, Entry, INDEX, MANIFEST, Manifest, name_files};
use crate::sources::{Source, SourceRules, read_sources};
use crate::staging::{Staging, Target, roll_back_replacement};
use crate::system::{self, is_absent};
use crate::verify::{CacheSummary, read_manifest};

/// What to do if the target already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and fail.
    Keep,
    /// Replace it atomically once the new cache is complete.
    Replace,
}

/// Builds a cache of every Markdown document below `sources` at `cache`, as the contract says. On failure no partial cache
/// is left.
pub fn build(sources: &Path, cache: &Path, existing: Existing, clock: &Clock) -> Result<CacheSummary, Error> {
    build_with(sources, cache, &SourceRules::Contract, existing, clock)
}

/// As [`build`], with other rules for which files are documents.
pub fn build_with(
    sources: &Path,
    cache: &Path,
    rules: &SourceRules,
    existing: Existing,
    clock: &Clock,
) -> Result<CacheSummary, Error> {
    match fs::metadata(sources) {
        Ok(metadata) if metadata.is_dir() => {}
        Err(error) if !is_absent(&error) => return Err(Error::io("open the sources", sources)(error)),
        _ => return Err(Error::SourcesMissing { sources: sources.to_owned() }),
    }
    let (target, occupied) = find_target(cache)?;
    if occupied {
        match existing {
            Existing::Keep => return Err(Error::TargetExists { cache: cache.to_owned() }),
            Existing::Replace => check_replaceable(sources, cache)?,
        }
    }
    let documents = read_sources(sources, rules)?;
    let mut staging = Staging::new(target)?;
    let summary = write(staging.path(), documents, clock)?;
    match staging.place_new() {
        Err(Error::TargetExists { .. }) if existing == Existing::Replace => {
            // Checked again: the target may have appeared since the first check.
            check_replaceable(sources, cache)?;
            staging.replace()?;
        }
        placed => placed?,
    }
    Ok(summary)
}

/// The target path with links resolved, and whether it already exists.
fn find_target(cache: &Path) -> Result<(Target, bool), Error> {
    let no_name = || Error::TargetNotACache { cache: cache.to_owned() };
    roll_back_replacement(cache);
    match fs::canonicalize(cache) {
        Ok(real) => Ok((Target::of(&real).ok_or_else(no_name)?, true)),
        Err(error) if is_absent(&error) => {
            // A dangling link also occupies the target.
            Ok((Target::of(cache).ok_or_else(no_name)?, cache.symlink_metadata().is_ok()))
        }
        Err(error) => Err(Error::io("open the cache", cache)(error)),
    }
}

/// Replacing deletes the old folder, so only an empty folder or a recognisable cache, valid or not, is accepted, and
/// never the folder that contains the sources.
fn check_replaceable(sources: &Path, cache: &Path) -> Result<(), Error> {
    let real = |path: &Path| fs::canonicalize(path).map_err(Error::io("open", path));
    if !cache.is_dir() {
        return Err(Error::TargetNotACache { cache: cache.to_owned() });
    }
    if real(sources)?.starts_with(real(cache)?) {
        return Err(Error::TargetHoldsSources { cache: cache.to_owned() });
    }
    let names = fs::read_dir(cache)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>())
        .map_err(Error::io("list", cache))?;
    let only_parts = names.iter().all(|name| name == MANIFEST || name == INDEX || name == DOCUMENTS);
    let has_manifest = || CacheFolder::open(cache).is_ok_and(|folder| read_manifest(&folder).is_ok());
    if only_parts || has_manifest() {
        Ok(())
    } else {
        Err(Error::TargetNotACache { cache: cache.to_owned() })
    }
}

/// Writes a complete cache into an empty folder and syncs it to disk.
fn write(folder: &Path, documents: Vec<Source>, clock: &Clock) -> Result<CacheSummary, Error> {
    let documents_folder = folder.join(DOCUMENTS);
    fs::create_dir(&documents_folder).map_err(Error::io("create the folder", &documents_folder))?;

    let files: Vec<String> = name_files(documents.iter().map(|document| document.version)).collect();
    let written: Vec<Result<PathBuf, Error>> = documents
        .par_iter()
        .zip(&files)
        .map(|(document, file)| {
            let bytes = serde_json::to_vec(&DocumentFile {
                id: document.id.as_str().into(),
                version: document.version,
                source: document.source.as_str().into(),
                content: document.content.as_str().into(),
                metadata: Metadata,
            });
            write_new(folder.join(file), &bytes.expect("strings are JSON"))
        })
        .collect();
    let mut paths = written.into_iter().collect::<Result<Vec<PathBuf>, Error>>()?;

    let entries = documents
        .into_iter()
        .zip(files)
        .map(|(document, file)| Entry { id: document.id, version: document.version, file })
        .collect();
    let manifest = Manifest::new(entries, clock.now());
    let index = serde_json::to_vec_pretty(&manifest.index()).expect("strings are JSON");
    paths.push(write_new(folder.join(INDEX), &index)?);
    let text = serde_json::to_vec_pretty(&manifest).expect("strings and numbers are JSON");
    paths.push(write_new(folder.join(MANIFEST), &text)?);

    paths.push(documents_folder);
    paths.push(folder.to_owned());
    sync(folder, &paths)?;
    Ok(CacheSummary { cache_version: manifest.cache_version, document_count: manifest.documents.len() })
}

fn write_new(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, Error> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(bytes));
    match written {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::io("write", path)(error)),
    }
}

/// From this many files on, syncing the whole file system is faster than syncing each file.
const SYNC_FILE_SYSTEM_FROM: usize = 100;

/// Syncs all written files to disk.
fn sync(folder: &Path, paths: &[PathBuf]) -> Result<(), Error> {
    if paths.len() >= SYNC_FILE_SYSTEM_FROM
        && system::sync_file_system(folder).map_err(Error::io("sync", folder))?
    {
        return Ok(());
    }
    paths.iter().try_for_each(|path| system::sync(path).map_err(Error::io("sync", path)))
}
