//! Building a cache from a folder of documents.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tenon_contract::clock::Clock;

use crate::check::{Summary, read_manifest};
use crate::document::{DocumentFile, Metadata};
use crate::error::Error;
use crate::folder::Folder;
use crate::manifest::{DOCUMENTS, Entry, INDEX, MANIFEST, Manifest, name_files};
use crate::sources::{Source, gather};
use crate::staging::{Staging, Target, heal};
use crate::system::{self, is_absent};

/// What to do with a cache that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is an error, and stays as it is.
    Keep,
    /// It is replaced, in one step, once the new one is complete.
    Replace,
}

/// Builds a cache of every document below `sources` at `cache`. It is there whole, or not at all.
pub fn build(sources: &Path, cache: &Path, existing: Existing, clock: &Clock) -> Result<Summary, Error> {
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
    let documents = gather(sources)?;
    let mut staging = Staging::new(target)?;
    let summary = write(staging.path(), documents, clock)?;
    match staging.place_new() {
        Err(Error::TargetExists { .. }) if existing == Existing::Replace => {
            // Looked at again: it may have been put there since.
            check_replaceable(sources, cache)?;
            staging.replace()?;
        }
        placed => placed?,
    }
    Ok(summary)
}

/// Where the cache is to stand, behind any links, and whether something stands there already.
fn find_target(cache: &Path) -> Result<(Target, bool), Error> {
    let no_name = || Error::TargetNotACache { cache: cache.to_owned() };
    heal(cache);
    match fs::canonicalize(cache) {
        Ok(real) => Ok((Target::of(&real).ok_or_else(no_name)?, true)),
        Err(error) if is_absent(&error) => {
            // A link that leads nowhere is in the way as much as anything else.
            Ok((Target::of(cache).ok_or_else(no_name)?, cache.symlink_metadata().is_ok()))
        }
        Err(error) => Err(Error::io("open the cache", cache)(error)),
    }
}

/// Replacing removes. Only what is recognisably a cache, whole or broken, or an empty folder is removed, and never the
/// folder that holds the sources.
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
    let has_manifest = || Folder::open(cache).is_ok_and(|folder| read_manifest(&folder).is_ok());
    if only_parts || has_manifest() {
        Ok(())
    } else {
        Err(Error::TargetNotACache { cache: cache.to_owned() })
    }
}

/// Writes a whole cache into an empty folder and waits until it is on the disk.
fn write(folder: &Path, documents: Vec<Source>, clock: &Clock) -> Result<Summary, Error> {
    let documents_folder = folder.join(DOCUMENTS);
    fs::create_dir(&documents_folder).map_err(Error::io("make the folder", &documents_folder))?;

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
    Ok(Summary { cache_version: manifest.cache_version, document_count: manifest.documents.len() })
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

/// From this many files on it is quicker to have the whole file system written out than each file by itself.
const MANY: usize = 100;

/// Waits until everything written is on the disk.
fn sync(folder: &Path, paths: &[PathBuf]) -> Result<(), Error> {
    if paths.len() >= MANY && system::sync_file_system(folder).map_err(Error::io("sync", folder))? {
        return Ok(());
    }
    paths.iter().try_for_each(|path| system::sync(path).map_err(Error::io("sync", path)))
}
