//! Directories on Unix: a descriptor, with all names relative to it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use camino::Utf8Path;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat, mode_t};
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, faccessat, fchown, linkat, unlinkat};
use tenon_contract::clock::Entropy;

use super::{FileSnapshot, ReadFailure, UNFINISHED_EDIT, WriteFailure, bounded};

/// Directories are only traversed, which needs no read permission on Linux.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlag = OFlag::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlag = OFlag::O_RDONLY;

fn folder_flags() -> OFlag {
    PASS | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// See [`super`].
#[derive(Debug)]
pub(in crate::edit) struct DirectoryHandle(OwnedFd);

/// A file's identity, time of last change, mode and owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    changed: (i64, i64),
    mode: mode_t,
    owner: (u32, u32),
}

#[expect(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between systems")]
impl Stamp {
    fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: u64::from(stat.st_ino),
            size: stat.st_size,
            changed: (i64::from(stat.st_ctime), i64::from(stat.st_ctime_nsec)),
            mode: stat.st_mode,
            owner: (stat.st_uid, stat.st_gid),
        }
    }
}

/// See [`DirectoryHandle::prepare`].
#[derive(Debug)]
pub(in crate::edit) struct PreparedFile {
    name: String,
    /// Open, and so locked: no other process takes it for a leftover.
    _lock: File,
}

/// Directories that were created for a file.
#[derive(Debug, Default)]
pub(in crate::edit) struct CreatedDirectories(Vec<(OwnedFd, String)>);

impl CreatedDirectories {
    /// Removes them, unless they are in use.
    pub(in crate::edit) fn undo(self) {
        for (parent, name) in self.0.into_iter().rev() {
            if unlinkat(&parent, name.as_str(), UnlinkatFlags::RemoveDir).is_err() {
                return;
            }
        }
    }
}

impl DirectoryHandle {
    pub(in crate::edit) fn open(root: &Utf8Path, below: &Utf8Path) -> io::Result<Self> {
        let root = open(root.as_std_path(), folder_flags(), Mode::empty())?;
        Ok(Self(beneath(root, below)?))
    }

    /// Like [`DirectoryHandle::open`], creating missing directories.
    pub(in crate::edit) fn create(
        root: &Utf8Path,
        below: &Utf8Path,
    ) -> io::Result<(Self, CreatedDirectories)> {
        let mut at = open(root.as_std_path(), folder_flags(), Mode::empty())?;
        let mut created = CreatedDirectories::default();
        for name in below.components() {
            let name = name.as_str();
            let next = match openat(&at, name, folder_flags(), Mode::empty()) {
                Err(Errno::ENOENT) => match enter_new(&at, name) {
                    Ok(next) => {
                        created.0.push((std::mem::replace(&mut at, next), name.to_owned()));
                        continue;
                    }
                    Err(error) => Err(error),
                },
                opened => opened,
            };
            match next {
                Ok(next) => at = next,
                Err(error) => {
                    created.undo();
                    return Err(error.into());
                }
            }
        }
        Ok((Self(at), created))
    }

    /// Reads a regular file; `None` if the name does not exist.
    pub(in crate::edit) fn read(&self, name: &str, limit: u64) -> Result<Option<FileSnapshot>, ReadFailure> {
        // O_NONBLOCK, so that a pipe without a writer does not block.
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO | Errno::ENODEV | Errno::EOPNOTSUPP) => {
                return Err(ReadFailure::NotAFile);
            }
            Err(error) => return Err(io::Error::from(error).into()),
        };
        let stat = fstat(&file).map_err(io::Error::from)?;
        if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
            return Err(ReadFailure::NotAFile);
        }
        let bytes = bounded(&file, u64::try_from(stat.st_size).unwrap_or(0), limit)?;
        // The mode counts even for root, who could write anyway.
        let meant =
            Mode::from_bits_truncate(stat.st_mode).intersects(Mode::S_IWUSR | Mode::S_IWGRP | Mode::S_IWOTH);
        let writable = meant && faccessat(&self.0, name, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok();
        Ok(Some(FileSnapshot { bytes, writable, stamp: Stamp::of(&stat) }))
    }

    /// Writes and syncs a temporary file that is to replace the file that was read, or to become a new one.
    pub(in crate::edit) fn prepare(
        &self,
        bytes: &[u8],
        found: Option<&FileSnapshot>,
        entropy: &Entropy,
    ) -> io::Result<PreparedFile> {
        let unfinished = format!("{UNFINISHED_EDIT}{}", entropy.id());
        // A temporary file is private until it gets the mode of the old file; a new file follows the user's umask.
        let mode =
            if found.is_some() { Mode::S_IRUSR | Mode::S_IWUSR } else { Mode::from_bits_truncate(0o666) };
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.0, unfinished.as_str(), flags, mode)?);
        let filled = fill(&file, bytes, found);
        let prepared = PreparedFile { name: unfinished, _lock: file };
        match filled {
            Ok(()) => Ok(prepared),
            Err(error) => {
                self.discard(&prepared);
                Err(error)
            }
        }
    }

    /// Puts a prepared file in the place of the file that was read, or of none.
    pub(in crate::edit) fn commit(
        &self,
        prepared: &PreparedFile,
        name: &str,
        found: Option<&FileSnapshot>,
    ) -> Result<(), WriteFailure> {
        self.finish(&prepared.name, name, found)
    }

    /// Removes a prepared file. If this fails, it is removed later as a leftover.
    pub(in crate::edit) fn discard(&self, prepared: &PreparedFile) {
        let _ = unlinkat(&self.0, prepared.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }

    /// Makes renames durable.
    pub(in crate::edit) fn sync(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        File::from(openat(&self.0, ".", flags, Mode::empty())?).sync_all()
    }

    fn finish(&self, unfinished: &str, name: &str, found: Option<&FileSnapshot>) -> Result<(), WriteFailure> {
        let Some(found) = found else {
            return self.finish_new(unfinished, name);
        };
        let now = match fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Stamp::of(&stat),
            Err(Errno::ENOENT) => return Err(WriteFailure::Changed),
            Err(error) => return Err(io::Error::from(error).into()),
        };
        if now != found.stamp {
            return Err(WriteFailure::Changed);
        }
        renameat(&self.0, unfinished, &self.0, name).map_err(io::Error::from)?;
        Ok(())
    }

    /// Links the new file, since a rename would overwrite an existing one.
    fn finish_new(&self, unfinished: &str, name: &str) -> Result<(), WriteFailure> {
        match linkat(&self.0, unfinished, &self.0, name, AtFlags::empty()) {
            Ok(()) => {
                let _ = unlinkat(&self.0, unfinished, UnlinkatFlags::NoRemoveDir);
                Ok(())
            }
            Err(Errno::EEXIST) => Err(WriteFailure::Changed),
            // A file system without hard links.
            Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                match fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Err(Errno::ENOENT) => {
                        renameat(&self.0, unfinished, &self.0, name).map_err(io::Error::from)?;
                        Ok(())
                    }
                    Ok(_) => Err(WriteFailure::Changed),
                    Err(error) => Err(io::Error::from(error).into()),
                }
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Removes temporary files of crashed processes.
    pub(in crate::edit) fn clean(&self) {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let Ok(mut listing) = Dir::openat(&self.0, ".", flags, Mode::empty()) else {
            return;
        };
        let names = listing.iter().filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
        let left: Vec<_> =
            names.filter(|name| name.to_bytes().starts_with(UNFINISHED_EDIT.as_bytes())).collect();
        for name in left {
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            let Ok(file) = openat(&self.0, name.as_c_str(), flags, Mode::empty()) else {
                continue;
            };
            // A running process holds a lock on its temporary file.
            if File::from(file).try_lock().is_ok() {
                let _ = unlinkat(&self.0, name.as_c_str(), UnlinkatFlags::NoRemoveDir);
            }
        }
    }
}

/// Writes and syncs a file.
fn fill(mut file: &File, bytes: &[u8], found: Option<&FileSnapshot>) -> io::Result<()> {
    match file.try_lock() {
        // Without file locks, nothing is removed as a leftover either.
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
    }
    file.write_all(bytes)?;
    if let Some(FileSnapshot { stamp, .. }) = found {
        let now = Stamp::of(&fstat(file)?);
        if now.owner != stamp.owner {
            // Only root may change the owner; the edit matters more.
            let _ = fchown(file, Some(Uid::from_raw(stamp.owner.0)), Some(Gid::from_raw(stamp.owner.1)));
        }
        fchmod(file, Mode::from_bits_truncate(stamp.mode))?;
    }
    file.sync_all()
}

fn enter_new(at: &OwnedFd, name: &str) -> nix::Result<OwnedFd> {
    match mkdirat(at, name, Mode::from_bits_truncate(0o777)) {
        Ok(()) | Err(Errno::EEXIST) => openat(at, name, folder_flags(), Mode::empty()),
        Err(error) => Err(error),
    }
}

/// Opens a directory below another one without following links.
fn beneath(root: OwnedFd, below: &Utf8Path) -> nix::Result<OwnedFd> {
    if below.as_str().is_empty() {
        return Ok(root);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    match by_kernel(&root, below) {
        // The kernel or a sandbox does not allow `openat2`.
        Err(Errno::ENOSYS | Errno::EPERM) => {}
        decided => return decided,
    }
    let mut at = root;
    for name in below.components() {
        at = openat(&at, name.as_str(), folder_flags(), Mode::empty())?;
    }
    Ok(at)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn by_kernel(root: &OwnedFd, below: &Utf8Path) -> nix::Result<OwnedFd> {
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};
    let rules =
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    openat2(root, below.as_std_path(), OpenHow::new().flags(folder_flags()).resolve(rules))
}
