//! Reading a file through the gate: bounded, without following a link that was swapped in after the file was admitted.

use std::io::{self, Read};

use super::{RootGate, WorkspacePath, platform};

/// Why an admitted file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is in none of this gate's roots: the path comes from a gate with others.
    #[error("outside the allowed roots")]
    Denied,
    /// It was removed or replaced by a link since it was admitted.
    #[error("the file is no longer there")]
    Gone,
    #[error("not a regular file")]
    NotAFile,
    #[error("the file is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the file is not valid UTF-8")]
    NotUtf8,
    #[error("the file cannot be read")]
    Io(#[source] io::Error),
}

impl RootGate {
    /// The text of a file of at most `limit` bytes, byte order mark included.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_to_string(&self, path: &WorkspacePath, limit: u64) -> Result<String, ReadError> {
        String::from_utf8(self.read(path, limit)?).map_err(|_| ReadError::NotUtf8)
    }

    /// The bytes of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, ReadError> {
        let root = self.containing_root(path.as_ref()).ok_or(ReadError::Denied)?;
        let file = platform::open_beneath(root, path.as_path())?;
        let found = file.metadata().map_err(ReadError::Io)?;
        if !found.is_file() {
            return Err(ReadError::NotAFile);
        }
        let too_large = ReadError::TooLarge { limit };
        if found.len() > limit {
            return Err(too_large);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
        // It may grow while it is read.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        if bytes.len() as u64 > limit { Err(too_large) } else { Ok(bytes) }
    }
}
