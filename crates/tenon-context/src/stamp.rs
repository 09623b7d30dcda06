//! What a file looked like when it was read: equal stamps mean that nobody has touched it since.
//!
//! The time of the last change of the inode is part of it, because a writer can set the time of modification back
//! and a change of permissions leaves it alone.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size, inode and times of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    inode: u64,
    modified: i64,
    changed: i64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        // Wraps in the year 2262, which is as good as any other number for telling two apart.
        let nanos = |seconds: i64, nanos: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            modified: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanos(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The stamp of what is at `path` now, links followed.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}
