//! Reads files of a workspace that may be hostile: never a pipe, a device or a link, never more than a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. Does not follow a link at the end of the path, and does not wait for the writer of a
/// pipe.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY);
    }
    #[cfg(not(unix))]
    if !std::fs::symlink_metadata(&path)?.is_file() {
        return Err(not_regular());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// The bytes of a regular file of at most `limit` bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if it is larger, [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn read(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = read_start(path, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("file exceeds {limit} bytes")));
    }
    Ok(bytes)
}

/// The first bytes of a regular file, at most `limit`.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn read_start(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a folder belongs to the user of this process.
#[cfg(unix)]
pub fn is_own(folder: impl AsRef<Path>) -> bool {
    use std::os::unix::fs::MetadataExt;

    std::fs::symlink_metadata(folder).is_ok_and(|found| found.uid() == nix::unistd::geteuid().as_raw())
}

#[cfg(not(unix))]
pub fn is_own(folder: impl AsRef<Path>) -> bool {
    folder.as_ref().is_dir()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", folder.join("link")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(folder.join("file"), 5).unwrap(), b"12345");
        assert_eq!(read(folder.join("file"), 4).unwrap_err().to_string(), "file exceeds 4 bytes");
        assert_eq!(read_start(folder.join("file"), 2).unwrap(), b"12");
        for name in ["link", "pipe", "missing", "."] {
            assert!(read(folder.join(name), 5).is_err(), "{name}");
        }
        assert!(read("/dev/zero", 5).is_err());
    }
}
