//! What depends on the system: opening, telling apart and syncing files.

use std::fs::{File, Metadata};

#[cfg(not(unix))]
#[path = "system/portable.rs"]
mod platform;
#[cfg(unix)]
#[path = "system/unix.rs"]
mod platform;

/// Whether an error says that nothing can be at a path: not now, and not after a retry.
pub(crate) use platform::is_absent;
/// Opens a folder, to lock it; `None` where that cannot be done.
pub(crate) use platform::open_folder;
/// Opens a regular file, and never waits for anything else.
pub(crate) use platform::open_regular;
/// Waits until a file or folder is on the disk.
pub(crate) use platform::sync;
/// Waits until all of the file system that holds a folder is on the disk. Says whether it did.
pub(crate) use platform::sync_file_system;
/// What tells one file or folder from another that takes its name.
pub(crate) use platform::{Identity, identity};
/// When a file was last written to, and when it was last changed in any way, in nanoseconds.
pub(crate) use platform::{changed, modified};

/// What to do with a link in the last part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// What was found where a regular file was looked for.
pub(crate) enum Opened {
    File(File, Metadata),
    /// A link, and links are refused.
    Link,
    /// A folder, FIFO, socket or device.
    Other,
}
