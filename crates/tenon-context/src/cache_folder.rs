//! Reads the files of a cache folder, never anything outside it.
//!
//! Links are followed only if they stay inside the folder. Pipes and devices are never waited for. Failures are
//! classified as violations of the format or as errors of the operating system.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Violation};
use crate::file_stamp::FileStamp;
use crate::staging;
use crate::system::{Links, Opened, is_absent, open_regular};

/// An existing folder with links resolved.
pub(crate) struct CacheFolder {
    real: PathBuf,
}

/// Why a file of a cache cannot be read.
pub(crate) enum ReadFault {
    Violation(Violation),
    Io(Error),
}

impl From<Violation> for ReadFault {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl CacheFolder {
    /// Opens the folder of a cache. An interrupted replacement is rolled back first.
    pub(crate) fn open(cache: &Path) -> Result<Self, Error> {
        let found = match real_folder(cache) {
            Err(error) if is_absent(&error) && staging::roll_back_replacement(cache) => real_folder(cache),
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

    /// Reads `file` into `buffer`, replacing its content.
    pub(crate) fn read(&self, file: &str, buffer: &mut Vec<u8>) -> Result<FileStamp, ReadFault> {
        buffer.clear();
        let (opened, stamp) = self.open_file(file)?;
        let expected = usize::try_from(stamp.size()).unwrap_or(usize::MAX).saturating_add(1);
        // The size is known: `take` keeps `read_to_end` from querying it again for each of many files.
        let read = match buffer.try_reserve(expected) {
            Ok(()) => opened.take(u64::MAX).read_to_end(buffer),
            Err(_) => Err(ErrorKind::OutOfMemory.into()),
        };
        match read {
            Ok(_) => Ok(stamp),
            Err(error) => Err(ReadFault::Io(Error::io("read", self.join(file))(error))),
        }
    }

    fn open_file(&self, file: &str) -> Result<(File, FileStamp), ReadFault> {
        let path = self.join(file);
        let opened = match open_regular(&path, Links::Reject) {
            Ok(Opened::Link) => open_regular(&self.follow(&path, file)?, Links::Reject),
            opened => opened,
        };
        match opened {
            Ok(Opened::File(opened, metadata)) => Ok((opened, FileStamp::of(&metadata))),
            // `Link` here means that a concurrent change replaced the target by a link.
            Ok(Opened::Link | Opened::Other) => Err(Violation::NotAFile { file: file.to_owned() }.into()),
            Err(error) => Err(fault(error, &path, file)),
        }
    }

    /// The target of the link at `path`, if it stays inside.
    fn follow(&self, path: &Path, file: &str) -> Result<PathBuf, ReadFault> {
        let real = fs::canonicalize(path).map_err(|error| fault(error, path, file))?;
        if real.starts_with(&self.real) {
            Ok(real)
        } else {
            Err(Violation::Outside { file: file.to_owned() }.into())
        }
    }

    /// The sorted names of the entries in folder `name`; empty if the folder is missing. A link is followed only if
    /// it stays inside.
    pub(crate) fn names(&self, name: &str) -> Result<Vec<String>, ReadFault> {
        let path = self.join(name);
        let real = match self.follow(&path, name) {
            Err(ReadFault::Violation(Violation::Missing { .. })) => return Ok(Vec::new()),
            followed => followed?,
        };
        let io_error = |error| ReadFault::Io(Error::io("list", &path)(error));
        let entries = match fs::read_dir(&real) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(Violation::NotAFolder { file: name.to_owned() }.into());
            }
            entries => entries.map_err(io_error)?,
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<String>>>()
            .map_err(io_error)?;
        names.sort_unstable();
        Ok(names)
    }
}

fn fault(error: io::Error, path: &Path, file: &str) -> ReadFault {
    if is_absent(&error) {
        Violation::Missing { file: file.to_owned() }.into()
    } else {
        ReadFault::Io(Error::io("open", path)(error))
    }
}

/// The folder at `path` with links resolved; `None` if it is not a folder.
fn real_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let real = fs::canonicalize(path)?;
    Ok(fs::metadata(&real)?.is_dir().then_some(real))
}
