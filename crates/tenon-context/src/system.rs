//! System-dependent functions: opening, identifying and syncing files.

use std::fs::{File, Metadata};

#[cfg(not(unix))]
#[path = "system/non_unix.rs"]
mod platform;
#[cfg(unix)]
#[path = "system/unix.rs"]
mod platform;

/// Whether an error means that the path does not exist, so that a retry does not help.
pub(crate) use platform::is_absent;
/// Opens a folder for locking; `None` if the system cannot do that.
pub(crate) use platform::open_folder;
/// Opens a regular file without ever waiting for a pipe or device.
pub(crate) use platform::open_regular;
/// Removes the files of a folder with several threads, where that helps.
pub(crate) use platform::remove_files;
/// Syncs a file or folder to disk.
pub(crate) use platform::sync;
/// Syncs the whole file system that contains a folder. Returns whether the system supports that.
pub(crate) use platform::sync_file_system;
/// Identifies a file or folder independently from the name.
pub(crate) use platform::{Identity, identity};
/// Times of the last change of any kind and of the last modification, in nanoseconds.
pub(crate) use platform::{changed, modified};

/// What to do if the last component of a path is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Reject,
}

/// The result of opening a path.
pub(crate) enum Opened {
    File(File, Metadata),
    /// A link, and links are rejected.
    Link,
    /// A folder, FIFO, socket or device.
    Other,
}
