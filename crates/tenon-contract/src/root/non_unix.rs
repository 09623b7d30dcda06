//! The gate's system functions outside Unix, with the standard library only.
//!
//! URI paths begin with a drive, `/C:/…`; a backslash is a separator, so an encoded one is rejected. Opening checks the
//! real path again afterwards instead of walking it.

use std::fs::{self, File, FileType};
use std::io;

use camino::Utf8Path;

use super::read::ReadError;
use super::uri::Malformed;

pub(super) fn open_beneath(root: &Utf8Path, real: &Utf8Path) -> Result<File, ReadError> {
    if !real.starts_with(root) {
        return Err(ReadError::Denied);
    }
    let metadata = fs::symlink_metadata(real).map_err(failure)?;
    if !metadata.is_file() {
        return Err(if metadata.is_symlink() { ReadError::Gone } else { ReadError::NotAFile });
    }
    let file = File::open(real).map_err(failure)?;
    let again = fs::canonicalize(real).map_err(failure)?;
    if again == real.as_std_path() { Ok(file) } else { Err(ReadError::Gone) }
}

pub(super) fn kind_without_links(_: &Utf8Path) -> Option<FileType> {
    None
}

/// Every file is resolved by itself.
#[derive(Debug)]
pub(super) struct Folder;

impl Folder {
    pub(super) fn without_links(_: &Utf8Path) -> Option<Self> {
        None
    }

    pub(super) fn has_file(&self, _: &str) -> bool {
        false
    }
}

fn failure(error: io::Error) -> ReadError {
    if error.kind() == io::ErrorKind::NotFound { ReadError::Gone } else { ReadError::Io(error) }
}

pub(super) fn native_path(decoded: String) -> Result<String, Malformed> {
    if decoded.contains('\\') {
        return Err(Malformed::EncodedSlash);
    }
    match decoded.as_bytes() {
        [b'/', drive, b':', b'/', ..] if drive.is_ascii_alphabetic() => Ok(decoded[1..].to_owned()),
        _ => Err(Malformed::NotAbsolute),
    }
}

/// Real paths are verbatim (`\\?\C:\…`); URIs have neither that prefix nor backslashes.
pub(super) fn uri_path(real: &Utf8Path) -> String {
    format!("/{}", with_slashes(real.as_str()))
}

pub(super) fn with_slashes(path: &str) -> String {
    path.strip_prefix(r"\\?\").unwrap_or(path).replace('\\', "/")
}
