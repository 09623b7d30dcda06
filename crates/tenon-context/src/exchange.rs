//! Renaming folders: the part that depends on the system.
//!
//! Linux can exchange two names in one step, and refuse to rename over an existing one, through `renameat2`; where
//! neither the kernel, the C library nor the file system has it, the caller is told so and takes the longer way.

use std::io;
use std::path::Path;

/// Lets `one` and `other` change places in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<(), NotExchanged> {
    system::exchange(one, other)
}

/// Renames `from` to `to`, which must not exist.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match system::rename_new(from, to) {
        Err(NotExchanged::Unsupported) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(from, to)
        }
        Err(NotExchanged::Failed(error)) => Err(error),
        Ok(()) => Ok(()),
    }
}

/// Why the one step was not taken.
#[derive(Debug)]
pub(crate) enum NotExchanged {
    Unsupported,
    #[cfg_attr(
        not(all(target_os = "linux", target_env = "gnu")),
        expect(dead_code, reason = "where there is no such step, it cannot fail")
    )]
    Failed(io::Error),
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::path::Path;

    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

    use super::NotExchanged;

    pub(super) fn exchange(one: &Path, other: &Path) -> Result<(), NotExchanged> {
        rename(one, other, RenameFlags::RENAME_EXCHANGE)
    }

    pub(super) fn rename_new(from: &Path, to: &Path) -> Result<(), NotExchanged> {
        rename(from, to, RenameFlags::RENAME_NOREPLACE)
    }

    fn rename(from: &Path, to: &Path, flags: RenameFlags) -> Result<(), NotExchanged> {
        renameat2(AT_FDCWD, from, AT_FDCWD, to, flags).map_err(|errno| match errno {
            // A file system that does not know the flag answers EINVAL.
            Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP => NotExchanged::Unsupported,
            errno => NotExchanged::Failed(errno.into()),
        })
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    use std::path::Path;

    use super::NotExchanged;

    pub(super) fn exchange(_: &Path, _: &Path) -> Result<(), NotExchanged> {
        Err(NotExchanged::Unsupported)
    }

    pub(super) fn rename_new(_: &Path, _: &Path) -> Result<(), NotExchanged> {
        Err(NotExchanged::Unsupported)
    }
}
