//! Inspects a cache folder, valid or not.

use std::path::Path;

use serde::Serialize;

use crate::error::Error;
use crate::verify::examine;

/// An overview of a cache. A folder without a readable manifest counts as an empty, invalid cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inspection {
    pub cache_version: String,
    pub document_count: u64,
    /// Total size of the existing document files that the manifest lists.
    pub total_bytes: u64,
    /// Whether the cache follows every rule of the format.
    pub valid: bool,
}

/// Inspects a cache. Succeeds for every readable folder, however broken; an unreadable file is an error, because
/// validity is then unknown.
pub fn inspect(cache: &Path) -> Result<Inspection, Error> {
    let findings = examine(cache, |_, _| ())?;
    if let Some(error) = findings.io_error {
        return Err(error);
    }
    Ok(findings.manifest.map_or_else(Inspection::default, |manifest| Inspection {
        cache_version: manifest.cache_version,
        document_count: manifest.document_count,
        total_bytes: findings.bytes,
        valid: findings.violations.is_empty(),
    }))
}
