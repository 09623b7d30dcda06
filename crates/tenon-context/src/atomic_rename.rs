//! Atomic renames of folders, where the system supports them.
//!
//! On Linux, `renameat2` can exchange two paths atomically and can fail instead of overwriting an existing path. If the
//! kernel, the C library or the file system does not support it, the caller falls back to several steps.

use std::io;
use std::path::Path;

/// Exchanges `one` and `other` atomically.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<(), AtomicRenameError> {
    system::exchange(one, other)
}

/// Renames `from` to `to`, which must not exist.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match system::rename_new(from, to) {
        Err(AtomicRenameError::Unsupported) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(from, to)
        }
        Err(AtomicRenameError::Failed(error)) => Err(error),
        Ok(()) => Ok(()),
    }
}

/// Why an atomic rename did not happen.
#[derive(Debug)]
pub(crate) enum AtomicRenameError {
    Unsupported,
    #[cfg_attr(
        not(all(target_os = "linux", target_env = "gnu")),
        expect(dead_code, reason = "without support, only `Unsupported` is returned")
    )]
    Failed(io::Error),
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::path::Path;

    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

    use super::AtomicRenameError;

    pub(super) fn exchange(one: &Path, other: &Path) -> Result<(), AtomicRenameError> {
        rename(one, other, RenameFlags::RENAME_EXCHANGE)
    }

    pub(super) fn rename_new(from: &Path, to: &Path) -> Result<(), AtomicRenameError> {
        rename(from, to, RenameFlags::RENAME_NOREPLACE)
    }

    fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), AtomicRenameError> {
        renameat2(AT_FDCWD, from, AT_FDCWD, to, flags).map_err(|errno| match errno {
            // A file system without support for the flag returns EINVAL.
            Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP => AtomicRenameError::Unsupported,
            errno => AtomicRenameError::Failed(errno.into()),
        })
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    use std::path::Path;

    use super::AtomicRenameError;

    pub(super) fn exchange(_: &Path, _: &Path) -> Result<(), AtomicRenameError> {
        Err(AtomicRenameError::Unsupported)
    }

    pub(super) fn rename_new(_: &Path, _: &Path) -> Result<(), AtomicRenameError> {
        Err(AtomicRenameError::Unsupported)
    }
}
