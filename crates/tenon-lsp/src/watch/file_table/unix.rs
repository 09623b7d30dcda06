//! Unix: what tells two states of a file apart.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Identity, size and times. The time of the last change of anything cannot be set back by anyone.
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
