//! Finds and reads the source documents of a build.
//!
//! By the contract of caches, sources are all files with the exact extension `md`, including those in hidden folders.
//! With extensions of the caller's choice ([`SourceRules::Extensions`]), ignore rules apply and hidden files are left out
//! (decision 0504). Links to files are read; links to folders are not entered; dangling links, sockets and FIFOs are
//! skipped and never opened. If several errors occur, the reported one does not depend on the order of the directory
//! listing.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io::{self, Read};
use std::path::Path;

use rayon::prelude::*;

use crate::document::{ContentVersion, document_id};
use crate::error::Error;
use crate::system::{Links, Opened, is_absent, open_regular};

/// Which files are documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceRules {
    /// The contract: `md`, whatever ignore rules say.
    #[default]
    Contract,
    /// Files with one of these extensions that are neither hidden nor ignored.
    Extensions(Vec<String>),
}

/// A source document with its content.
pub(crate) struct Source {
    pub id: String,
    /// The path below the source folder, in original case.
    pub source: String,
    pub content: String,
    pub version: ContentVersion,
}

/// Reads every document below `sources`, in byte order of the ids.
pub(crate) fn read_sources(sources: &Path, rules: &SourceRules) -> Result<Vec<Source>, Error> {
    let mut found = Vec::new();
    match rules {
        SourceRules::Contract => find_sources(sources, sources, &mut found)?,
        SourceRules::Extensions(extensions) => find_unignored(sources, extensions, &mut found)?,
    }
    found.sort_unstable();
    if let Some([first, second]) = found.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(Error::SameId {
            id: first.id.clone(),
            first: sources.join(&first.source),
            second: sources.join(&second.source),
        });
    }
    let read: Vec<Result<Source, Error>> =
        found.into_par_iter().map(|found| read(&sources.join(&found.source), found)).collect();
    read.into_iter().collect()
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SourceFile {
    id: String,
    source: String,
}

fn find_sources(sources: &Path, folder: &Path, found: &mut Vec<SourceFile>) -> Result<(), Error> {
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>)
        .map_err(Error::io("list", folder))?;
    entries.sort_unstable_by_key(DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(Error::io("read the type of", &path))?;
        if kind.is_dir() {
            find_sources(sources, &path, found)?;
        } else if is_markdown(&path) && (kind.is_file() || kind.is_symlink() && links_to_file(&path)?) {
            let relative = path.strip_prefix(sources).expect("the walk stays below `sources`");
            let Some(source) = relative.to_str() else {
                return Err(Error::NameNotUtf8 { source_file: path });
            };
            found.push(SourceFile { id: document_id(source), source: source.to_owned() });
        }
    }
    Ok(())
}

/// The same by ignore rules and extensions.
fn find_unignored(sources: &Path, extensions: &[String], found: &mut Vec<SourceFile>) -> Result<(), Error> {
    let walk = ignore::WalkBuilder::new(sources).require_git(false).build();
    for entry in walk {
        let entry = entry.map_err(|error| {
            let error = error.into_io_error().unwrap_or_else(|| io::Error::other("invalid ignore rule"));
            Error::io("list", sources)(error)
        })?;
        let path = entry.path();
        let kind = entry.file_type();
        let wanted = path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|known| extension == known.as_str()));
        let is_file = kind.is_some_and(|kind| kind.is_file())
            || wanted && kind.is_some_and(|kind| kind.is_symlink()) && links_to_file(path)?;
        if wanted && is_file {
            let relative = path.strip_prefix(sources).expect("the walk stays below `sources`");
            let Some(source) = relative.to_str() else {
                return Err(Error::NameNotUtf8 { source_file: path.to_owned() });
            };
            found.push(SourceFile { id: document_id(source), source: source.to_owned() });
        }
    }
    Ok(())
}

/// Extensions of files below a folder that are neither hidden nor ignored, the most frequent first: a hint for an empty build.
pub fn document_extensions(sources: &Path) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let files = ignore::WalkBuilder::new(sources).require_git(false).build().flatten();
    for entry in
        files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())).take(COUNTED_FILES)
    {
        if let Some(extension) = entry.path().extension().and_then(|extension| extension.to_str())
            && DOCUMENT_EXTENSIONS.contains(&extension)
        {
            *counts.entry(extension.to_owned()).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// More files do not change the hint.
const COUNTED_FILES: usize = 10_000;

const DOCUMENT_EXTENSIONS: &[&str] = &["adoc", "asciidoc", "markdown", "md", "mdx", "org", "rst", "txt"];

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn links_to_file(link: &Path) -> Result<bool, Error> {
    match fs::metadata(link) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Error::io("read the type of", link)(error)),
    }
}

fn read(path: &Path, SourceFile { id, source }: SourceFile) -> Result<Source, Error> {
    let bytes = read_file(path).map_err(Error::io("read", path))?;
    let content =
        String::from_utf8(bytes).map_err(|_| Error::SourceNotUtf8 { source_file: path.to_owned() })?;
    Ok(Source { version: ContentVersion::of(&content), id, source, content })
}

/// Reads a regular file or a link to one; fails if it was replaced by anything else since it was found.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let Opened::File(mut file, _) = open_regular(path, Links::Follow)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no longer a regular file"));
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
