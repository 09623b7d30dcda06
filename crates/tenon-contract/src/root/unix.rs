//! Unix: system functions of the root gate, which open a file without following any link below the root.

use std::fs::{File, FileType};
use std::os::fd::OwnedFd;

use camino::Utf8Path;
use nix::errno::Errno;
#[cfg(any(target_os = "linux", target_os = "android"))]
use nix::fcntl::{AT_FDCWD, OpenHow, ResolveFlag, openat2};
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};

use super::read::ReadError;
use super::uri::Malformed;

/// Folders are only traversed, never listed: with `O_PATH`, Linux requires no read permission.
#[cfg(any(target_os = "linux", target_os = "android"))]
const TRAVERSE: OFlag = OFlag::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const TRAVERSE: OFlag = OFlag::O_RDONLY;

/// Opens `real`, which is below `root`, in one call or one name at a time. Every name is opened relative to the folder
/// before it and never as a link, so even with concurrent renames the file is one that was below the root.
pub(super) fn open_beneath(root: &Utf8Path, real: &Utf8Path) -> Result<File, ReadError> {
    let folder = TRAVERSE | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // O_NONBLOCK: if a pipe has replaced the file, do not wait for a writer.
    let file = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    if real.starts_with(root)
        && let Some(opened) = open_without_links(real, file)
    {
        return Ok(File::from(opened));
    }
    let below = real.strip_prefix(root).map_err(|_| ReadError::Denied)?;
    let Some(name) = below.file_name() else {
        return Err(ReadError::NotAFile);
    };
    let mut parent: OwnedFd = open(root.as_std_path(), folder, Mode::empty()).map_err(failure)?;
    for name in below.parent().into_iter().flat_map(Utf8Path::components) {
        parent = openat(&parent, name.as_str(), folder, Mode::empty()).map_err(failure)?;
    }
    Ok(File::from(openat(&parent, name, file, Mode::empty()).map_err(failure)?))
}

/// What an absolute path names, if no name in it is a link. `None` says nothing about the path.
pub(super) fn kind_without_links(path: &Utf8Path) -> Option<FileType> {
    let opened = open_without_links(path, TRAVERSE | OFlag::O_CLOEXEC)?;
    Some(File::from(opened).metadata().ok()?.file_type())
}

/// An open folder whose path contains no link.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// `None` says nothing about the path.
    pub(super) fn without_links(path: &Utf8Path) -> Option<Self> {
        open_without_links(path, TRAVERSE | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).map(Self)
    }

    /// Whether a name in it is that of a regular file, which a link is not.
    pub(super) fn has_file(&self, name: &str) -> bool {
        let kind = |stat: FileStat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| kind(stat) == SFlag::S_IFREG)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_without_links(path: &Utf8Path, flags: OFlag) -> Option<OwnedFd> {
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path.as_std_path(), how).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_without_links(_: &Utf8Path, _: OFlag) -> Option<OwnedFd> {
    None
}

fn failure(errno: Errno) -> ReadError {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP => ReadError::Gone,
        // A socket or a device without a driver.
        Errno::ENXIO | Errno::ENODEV | Errno::EOPNOTSUPP => ReadError::NotAFile,
        other => ReadError::Io(other.into()),
    }
}

/// On Unix, the path of a URI is the file system path.
pub(super) fn native_path(decoded: String) -> Result<String, Malformed> {
    Ok(decoded)
}

pub(super) fn uri_path(real: &Utf8Path) -> &str {
    real.as_str()
}

pub(super) fn with_slashes(path: &str) -> String {
    path.to_owned()
}
