//! The caches directly below a folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::manifest::MANIFEST;
use crate::staging;
use crate::system::is_absent;

/// What lies below a root, in byte order of the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    pub caches: Vec<Listed>,
}

/// A folder that may be a cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listed {
    /// The name of the folder below the root.
    pub path: String,
    /// Whether it holds a regular file `manifest.json`, whatever is in that.
    pub has_manifest: bool,
}

/// Lists the folders directly below `root`; links and the unfinished work of builds are left out.
pub fn list(root: &Path) -> Result<Listing, Error> {
    let entries = match fs::read_dir(root) {
        Err(error) if is_absent(&error) => return Err(Error::CacheMissing { cache: root.to_owned() }),
        entries => entries.map_err(Error::io("list", root))?,
    };
    let mut caches = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", root))?;
        let is_folder = entry.file_type().map_err(Error::io("look at", entry.path()))?.is_dir();
        if !is_folder || staging::is_ours(&entry.file_name()) {
            continue;
        }
        let manifest = entry.path().join(MANIFEST);
        let has_manifest = match fs::symlink_metadata(&manifest) {
            Ok(metadata) => metadata.is_file(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(Error::io("look at", manifest)(error)),
        };
        caches.push(Listed { path: entry.file_name().to_string_lossy().into_owned(), has_manifest });
    }
    caches.sort_unstable();
    Ok(Listing { caches })
}
