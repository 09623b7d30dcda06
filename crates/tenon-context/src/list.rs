//! Lists the caches directly below a folder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::manifest::MANIFEST;
use crate::staging;
use crate::system::is_absent;

/// The folders below a root, in byte order of the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheListing {
    pub caches: Vec<ListedCache>,
}

/// A folder that may contain a cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ListedCache {
    /// The name of the folder below the root.
    pub path: String,
    /// Whether it contains a regular file `manifest.json`, valid or not.
    pub has_manifest: bool,
}

/// Lists the folders directly below `root`, without links and unfinished builds.
pub fn list(root: &Path) -> Result<CacheListing, Error> {
    let entries = match fs::read_dir(root) {
        Err(error) if is_absent(&error) => return Err(Error::CacheMissing { cache: root.to_owned() }),
        entries => entries.map_err(Error::io("list", root))?,
    };
    let mut caches = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", root))?;
        let is_folder = entry.file_type().map_err(Error::io("read the type of", entry.path()))?.is_dir();
        if !is_folder || staging::is_staging_name(&entry.file_name()) {
            continue;
        }
        let manifest = entry.path().join(MANIFEST);
        let has_manifest = match fs::symlink_metadata(&manifest) {
            Ok(metadata) => metadata.is_file(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(Error::io("read the type of", manifest)(error)),
        };
        caches.push(ListedCache { path: entry.file_name().to_string_lossy().into_owned(), has_manifest });
    }
    caches.sort_unstable();
    Ok(CacheListing { caches })
}
