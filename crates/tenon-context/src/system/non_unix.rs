//! Opening, identifying and syncing files outside Unix, with the standard library only.
//!
//! There are no inode numbers, so a file is identified by its creation time. Folders cannot be opened, so they are
//! neither locked nor synced, and leftovers of killed builds stay until a user removes them.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Links, Opened};

pub(crate) fn open_regular(path: &Path, links: Links) -> io::Result<Opened> {
    if links == Links::Reject && fs::symlink_metadata(path)?.is_symlink() {
        return Ok(Opened::Link);
    }
    // Checked before opening: opening a device may block, and opening a folder fails with an unspecific error.
    if !fs::metadata(path)?.is_file() {
        return Ok(Opened::Other);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { Opened::File(file, metadata) } else { Opened::Other })
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::InvalidInput
    )
}

/// Creation time.
pub(crate) type Identity = i64;

pub(crate) fn identity(metadata: &Metadata) -> Identity {
    nanos(metadata.created())
}

pub(crate) fn changed(metadata: &Metadata) -> i64 {
    modified(metadata)
}

pub(crate) fn modified(metadata: &Metadata) -> i64 {
    nanos(metadata.modified())
}

fn nanos(time: io::Result<SystemTime>) -> i64 {
    let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn open_folder(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

pub(crate) fn sync(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    // Syncing requires write access.
    OpenOptions::new().write(true).open(path)?.sync_all()
}

pub(crate) fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// The caller removes the folder as a whole.
pub(crate) fn remove_files(_: &Path, _: usize) {}
