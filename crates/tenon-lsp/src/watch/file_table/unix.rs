//! The parts of a file stamp on Unix: identity, size and times.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Includes ctime, which programs cannot set back.
pub(super) fn parts(metadata: &Metadata) -> [u64; 6] {
    [
        metadata.ino(),
        metadata.size(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
        metadata.ctime().cast_unsigned(),
        metadata.ctime_nsec().cast_unsigned(),
    ]
}

/// The device and the number of a folder.
pub(super) fn folder(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
