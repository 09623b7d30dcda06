//! File stamps: equal stamps mean that a file has not changed between two reads.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use crate::system::{self, Identity};

/// Size, identity and times of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    identity: Identity,
    modified: i64,
    changed: i64,
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            identity: system::identity(metadata),
            modified: system::modified(metadata),
            changed: system::changed(metadata),
        }
    }

    /// The current stamp of `path`, following links.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}
