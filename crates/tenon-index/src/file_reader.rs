//! Reads one file of the workspace for the index.

use std::io;
use std::time::UNIX_EPOCH;

use camino::Utf8Path;
use sha2::{Digest, Sha256};
use tenon_contract::regular_file;

use crate::FileStamp;
use crate::extract::MAX_FILE_BYTES;
use crate::indexed_file::ContentHash;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

pub(crate) enum FileRead {
    Content {
        bytes: Vec<u8>,
        stamp: FileStamp,
        settled: bool,
    },
    TooLarge(FileStamp),
    /// Exists, but cannot be read.
    Unreadable(FileStamp),
    /// Deleted, or not a regular file.
    Missing,
}

/// The stamp of a regular file. A link is not followed.
pub(crate) fn stamp(path: &Utf8Path) -> Option<FileStamp> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let modified = match metadata.modified().ok()?.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    };
    Some(FileStamp { size: metadata.len(), modified })
}

pub(crate) fn read(path: &Utf8Path) -> FileRead {
    let mut last = FileRead::Missing;
    for _ in 0..ATTEMPTS {
        let Some(before) = stamp(path) else { return FileRead::Missing };
        if before.size > MAX_FILE_BYTES {
            return FileRead::TooLarge(before);
        }
        let bytes = match regular_file::read(path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return FileRead::Missing,
            // It grew since.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => continue,
            Err(_) => return FileRead::Unreadable(before),
        };
        let settled = stamp(path) == Some(before) && bytes.len() as u64 == before.size;
        last = FileRead::Content { bytes, stamp: before, settled };
        if settled {
            break;
        }
    }
    last
}

pub(crate) fn content_hash(bytes: &[u8]) -> ContentHash {
    let mut hash = ContentHash::default();
    hash.copy_from_slice(&Sha256::digest(bytes)[..size_of::<ContentHash>()]);
    hash
}
