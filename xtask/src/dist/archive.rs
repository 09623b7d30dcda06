//! Archives whose bytes depend on their content only: sorted names, fixed times, no owner.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use flate2::Compression;
use zip::write::SimpleFileOptions;

use crate::shell::Error;

/// One file of an archive.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    executable: bool,
}

impl Entry {
    pub(super) fn file(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), bytes: bytes.into(), executable: false }
    }

    pub(super) fn program(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { executable: true, ..Self::file(path, bytes) }
    }

    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// Writes a `.tar.gz` with all entries below one `folder`.
pub(super) fn write_tar_gz(
    path: &Path,
    folder: &str,
    mut entries: Vec<Entry>,
    level: Compression,
) -> Result<(), Error> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    // `GzBuilder` writes no time and no name.
    let gzip = flate2::GzBuilder::new().write(File::create(path)?, level);
    let mut tar = tar::Builder::new(gzip);
    for entry in &entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode());
        // npm rejects files of 1970.
        header.set_mtime(EPOCH);
        tar.append_data(&mut header, format!("{folder}/{}", entry.path), entry.bytes.as_slice())?;
    }
    tar.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// 1985-10-26 08:15 UTC, the time that npm itself gives to files.
const EPOCH: u64 = 499_162_500;

/// Writes a zip archive, in the order of the entries: the metadata of a wheel comes last.
pub(super) fn write_zip(file: impl Write + Seek, entries: &[Entry], level: Compression) -> Result<(), Error> {
    let mut zip = zip::ZipWriter::new(file);
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(i64::from(level.level())))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode());
        zip.start_file(entry.path.as_str(), options).map_err(|error| Error::new(error.to_string()))?;
        zip.write_all(&entry.bytes)?;
    }
    zip.finish().map_err(|error| Error::new(error.to_string()))?.flush()?;
    Ok(())
}
