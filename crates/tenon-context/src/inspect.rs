//! What a cache folder says of itself, valid or not.

use std::path::Path;

use serde::Serialize;

use crate::check::examine;
use crate::error::Error;

/// A cache at a glance. A folder without a manifest that can be read is an empty, invalid cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inspection {
    pub cache_version: String,
    pub document_count: u64,
    /// Bytes of the document files that the manifest names and that are there.
    pub total_bytes: u64,
    /// Whether every rule of the format holds.
    pub valid: bool,
}

/// Looks at a cache. Answers for every folder that may be read, however broken; what may not be read is an error,
/// because nothing can be said of it.
pub fn inspect(cache: &Path) -> Result<Inspection, Error> {
    let found = examine(cache, |_, _| ())?;
    if let Some(denied) = found.denied {
        return Err(denied);
    }
    Ok(found.manifest.map_or_else(Inspection::default, |manifest| Inspection {
        cache_version: manifest.cache_version,
        document_count: manifest.document_count,
        total_bytes: found.bytes,
        valid: found.violations.is_empty(),
    }))
}
