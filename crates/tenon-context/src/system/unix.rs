//! Opening, identifying and syncing files on Unix.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::{Links, Opened};

/// `O_NONBLOCK` opens a FIFO without waiting for a writer; opening a socket fails with `ENXIO`.
pub(crate) fn open_regular(path: &Path, links: Links) -> io::Result<Opened> {
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    flags.set(OFlag::O_NOFOLLOW, links == Links::Reject);
    match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok(if metadata.is_file() { Opened::File(file, metadata) } else { Opened::Other })
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::ENXIO) => Ok(Opened::Other),
            // The errors of `O_NOFOLLOW` for a link.
            Some(libc::ELOOP | libc::EMLINK) if links == Links::Reject => Ok(Opened::Link),
            _ => Err(error),
        },
    }
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(code) => matches!(code, libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG),
        // The standard library itself rejects paths with NUL.
        None => error.kind() == ErrorKind::InvalidInput,
    }
}

/// Device and inode.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// The inode change time. Unlike the modification time, it cannot be set back and also covers permission changes.
pub(crate) fn changed(metadata: &Metadata) -> i64 {
    nanos(metadata.ctime(), metadata.ctime_nsec())
}

pub(crate) fn modified(metadata: &Metadata) -> i64 {
    nanos(metadata.mtime(), metadata.mtime_nsec())
}

/// Wraps in the year 2262, which is harmless because values are only compared for equality.
fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

pub(crate) fn open_folder(folder: &Path) -> io::Result<Option<File>> {
    File::open(folder).map(Some)
}

pub(crate) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes the files directly in a folder, never those behind a link. Best effort: what cannot be removed stays.
pub(crate) fn remove_files(folder: &Path, threads: usize) {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits();
    let Ok(opened) = OpenOptions::new().read(true).custom_flags(flags).open(folder) else { return };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    std::thread::scope(|scope| {
        for part in names.chunks(names.len().div_ceil(threads).max(1)) {
            let opened = &opened;
            scope.spawn(move || {
                for name in part {
                    let _ = unlinkat(opened, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
                }
            });
        }
    });
}

#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(folder: &Path) -> io::Result<bool> {
    nix::unistd::syncfs(File::open(folder)?)?;
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_: &Path) -> io::Result<bool> {
    Ok(false)
}
