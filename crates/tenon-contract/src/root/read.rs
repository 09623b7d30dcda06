//! Bounded reads through the gate that never follow a link created after the path was admitted.

use std::io::{self, Read};

use super::{RootGate, WorkspacePath, platform};

/// Why an admitted file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Outside this gate's roots: another gate admitted the path.
    #[error("outside the allowed roots")]
    Denied,
    /// Removed, or replaced by a link, since it was admitted.
    #[error("file no longer exists")]
    Gone,
    #[error("not a regular file")]
    NotAFile,
    #[error("file exceeds {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("file is not valid UTF-8")]
    NotUtf8,
    #[error("cannot read file")]
    Io(#[source] io::Error),
}

impl RootGate {
    /// Reads a text file of at most `limit` bytes, including any byte order mark.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_to_string(&self, path: &WorkspacePath, limit: u64) -> Result<String, ReadError> {
        String::from_utf8(self.read(path, limit)?).map_err(|_| ReadError::NotUtf8)
    }

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, ReadError> {
        let root = self.containing_root(path.as_ref()).ok_or(ReadError::Denied)?;
        let file = platform::open_beneath(root, path.as_path())?;
        let metadata = file.metadata().map_err(ReadError::Io)?;
        if !metadata.is_file() {
            return Err(ReadError::NotAFile);
        }
        let too_large = ReadError::TooLarge { limit };
        if metadata.len() > limit {
            return Err(too_large);
        }
        let expected = usize::try_from(metadata.len()).unwrap_or(0);
        let mut file = file.take(limit.saturating_add(1));
        // Most files are read at once: `read_to_end` begins with small parts.
        let mut bytes = vec![0; expected];
        let read = match file.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            read => read.map_err(ReadError::Io)?,
        };
        bytes.truncate(read);
        // It may be shorter or longer now.
        file.read_to_end(&mut bytes).map_err(ReadError::Io)?;
        if bytes.len() as u64 > limit { Err(too_large) } else { Ok(bytes) }
    }
}
