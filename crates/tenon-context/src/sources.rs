//! Finding and reading the documents to build from.
//!
//! Every file with the extension exactly `md` below the folder, hidden folders included. Folders behind links are not
//! entered, files behind links are read; links that lead nowhere, sockets and FIFOs are passed over and never
//! opened. Which of several faults is reported does not depend on the order in which the system lists things.

use std::fs::{self, DirEntry};
use std::io::{self, Read};
use std::path::Path;

use rayon::prelude::*;

use crate::document::{Version, document_id};
use crate::error::Error;
use crate::system::{Links, Opened, is_absent, open_regular};

/// A document that was read.
pub(crate) struct Source {
    pub id: String,
    /// The path below the folder of sources, in its own case.
    pub source: String,
    pub content: String,
    pub version: Version,
}

/// Reads every document below `sources`, in byte order of the ids.
pub(crate) fn gather(sources: &Path) -> Result<Vec<Source>, Error> {
    let mut found = Vec::new();
    find(sources, sources, &mut found)?;
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
struct Found {
    id: String,
    source: String,
}

fn find(sources: &Path, folder: &Path, found: &mut Vec<Found>) -> Result<(), Error> {
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>)
        .map_err(Error::io("list", folder))?;
    entries.sort_unstable_by_key(DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(Error::io("look at", &path))?;
        if kind.is_dir() {
            find(sources, &path, found)?;
        } else if is_markdown(&path) && (kind.is_file() || kind.is_symlink() && leads_to_a_file(&path)?) {
            let relative = path.strip_prefix(sources).expect("the walk stays below where it began");
            let Some(source) = relative.to_str() else {
                return Err(Error::NameNotUtf8 { source_file: path });
            };
            found.push(Found { id: document_id(source), source: source.to_owned() });
        }
    }
    Ok(())
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn leads_to_a_file(link: &Path) -> Result<bool, Error> {
    match fs::metadata(link) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Error::io("look at", link)(error)),
    }
}

fn read(path: &Path, Found { id, source }: Found) -> Result<Source, Error> {
    let bytes = read_file(path).map_err(Error::io("read", path))?;
    let content =
        String::from_utf8(bytes).map_err(|_| Error::SourceNotUtf8 { source_file: path.to_owned() })?;
    Ok(Source { version: Version::of(&content), id, source, content })
}

/// Reads a file that was regular, or led to one, a moment ago.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let Opened::File(mut file, _) = open_regular(path, Links::Followed)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no longer a regular file"));
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
