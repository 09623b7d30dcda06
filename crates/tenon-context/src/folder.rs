//! Reading a cache folder without ever leaving it.
//!
//! Links inside the folder are followed as long as they stay inside; what is not a regular file is never waited for.
//! Each way in which a file can fail to be there is told apart, because some of them say that the cache is broken
//! and some that the machine is.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Violation};
use crate::staging;
use crate::stamp::Stamp;
use crate::system::{Links, Opened, is_absent, open_regular};

/// A folder that exists and whose links are resolved.
pub(crate) struct Folder {
    real: PathBuf,
}

/// Why a file of a cache could not be read.
pub(crate) enum Fault {
    Broken(Violation),
    Denied(Error),
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

impl Folder {
    /// Finds the folder of a cache. A replacement that was cut short between its two renames is completed first.
    pub(crate) fn open(cache: &Path) -> Result<Self, Error> {
        let found = match real_folder(cache) {
            Err(error) if is_absent(&error) && staging::heal(cache) => real_folder(cache),
            found => found,
        };
        match found {
            Ok(Some(real)) => Ok(Self { real }),
            Ok(None) => Err(Error::CacheMissing { cache: cache.to_owned() }),
            Err(error) if is_absent(&error) => Err(Error::CacheMissing { cache: cache.to_owned() }),
            Err(error) => Err(Error::io("open the cache", cache)(error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.real
    }

    pub(crate) fn join(&self, file: &str) -> PathBuf {
        self.real.join(file)
    }

    /// Reads `file` into `buffer`, replacing what was there.
    pub(crate) fn read(&self, file: &str, buffer: &mut Vec<u8>) -> Result<Stamp, Fault> {
        buffer.clear();
        let (opened, stamp) = self.open_file(file)?;
        let expected = usize::try_from(stamp.size()).unwrap_or(usize::MAX).saturating_add(1);
        // The size is known already: a plain `read_to_end` would ask for it twice more, for each of many files.
        let read = match buffer.try_reserve(expected) {
            Ok(()) => opened.take(u64::MAX).read_to_end(buffer),
            Err(_) => Err(ErrorKind::OutOfMemory.into()),
        };
        match read {
            Ok(_) => Ok(stamp),
            Err(error) => Err(Fault::Denied(Error::io("read", self.join(file))(error))),
        }
    }

    fn open_file(&self, file: &str) -> Result<(File, Stamp), Fault> {
        let path = self.join(file);
        let opened = match open_regular(&path, Links::Refused) {
            Ok(Opened::Link) => open_regular(&self.follow(&path, file)?, Links::Refused),
            opened => opened,
        };
        match opened {
            Ok(Opened::File(opened, metadata)) => Ok((opened, Stamp::of(&metadata))),
            // A link again: where it led was replaced by one in between.
            Ok(Opened::Link | Opened::Other) => Err(Violation::NotAFile { file: file.to_owned() }.into()),
            Err(error) => Err(fault(error, &path, file)),
        }
    }

    /// Where the link at `path` leads, if it stays inside.
    fn follow(&self, path: &Path, file: &str) -> Result<PathBuf, Fault> {
        let real = fs::canonicalize(path).map_err(|error| fault(error, path, file))?;
        if real.starts_with(&self.real) {
            Ok(real)
        } else {
            Err(Violation::Outside { file: file.to_owned() }.into())
        }
    }

    /// The names of what lies in the folder `name`, sorted; none if there is no such folder. A link is entered only
    /// if it stays inside.
    pub(crate) fn names(&self, name: &str) -> Result<Vec<String>, Fault> {
        let path = self.join(name);
        let real = match self.follow(&path, name) {
            Err(Fault::Broken(Violation::Missing { .. })) => return Ok(Vec::new()),
            followed => followed?,
        };
        let denied = |error| Fault::Denied(Error::io("list", &path)(error));
        let entries = match fs::read_dir(&real) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(Violation::NotAFolder { file: name.to_owned() }.into());
            }
            entries => entries.map_err(denied)?,
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<String>>>()
            .map_err(denied)?;
        names.sort_unstable();
        Ok(names)
    }
}

fn fault(error: io::Error, path: &Path, file: &str) -> Fault {
    if is_absent(&error) {
        Violation::Missing { file: file.to_owned() }.into()
    } else {
        Fault::Denied(Error::io("open", path)(error))
    }
}

/// The folder at `path` with its links resolved; `None` for anything that is no folder.
fn real_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let real = fs::canonicalize(path)?;
    Ok(fs::metadata(&real)?.is_dir().then_some(real))
}
