//! A file that keeps derived data between processes: replaced as a whole, and read only if nothing about it is in doubt.
//!
//! Layout: a first line that names the format, a fingerprint of the code that wrote it, the hash of the payload, the
//! payload. A file that is damaged, from other code or too large counts as missing; the data is derived again.

use std::io::{self, Write};

use camino::Utf8Path;
use sha2::{Digest, Sha256};

use crate::regular_file;

const HASH_BYTES: usize = 32;

/// What a file has to begin with.
pub struct CheckedFormat {
    /// The first line, without its end.
    pub name: &'static str,
    /// Changes when other code would write another payload.
    pub fingerprint: [u8; HASH_BYTES],
    /// A larger file is not read and not written.
    pub max_bytes: u64,
}

impl CheckedFormat {
    fn header_bytes(&self) -> usize {
        self.name.len() + 1 + 2 * HASH_BYTES
    }

    /// Replaces the file. `payload` appends to the bytes that it gets.
    ///
    /// # Errors
    /// If the file is too large or cannot be written. The old file stays.
    pub fn write(
        &self,
        path: &Utf8Path,
        payload: impl FnOnce(Vec<u8>) -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let bytes = self.encode(payload)?;
        let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn encode(&self, payload: impl FnOnce(Vec<u8>) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.fingerprint);
        bytes.extend_from_slice(&[0; HASH_BYTES]);
        let mut bytes = payload(bytes)?;
        if bytes.len() as u64 > self.max_bytes {
            let message = format!("file exceeds {} bytes", self.max_bytes);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let header = self.header_bytes();
        let hash = Sha256::digest(&bytes[header..]);
        bytes[header - HASH_BYTES..header].copy_from_slice(&hash);
        Ok(bytes)
    }

    /// All bytes of a file; none if it is missing or too large. [`CheckedFormat::payload`] checks them.
    #[must_use]
    pub fn read(&self, path: &Utf8Path) -> Vec<u8> {
        regular_file::read(path, self.max_bytes).unwrap_or_default()
    }

    /// The payload of a file; `None` if there is any doubt.
    #[must_use]
    pub fn payload<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let rest = bytes.strip_prefix(self.name.as_bytes())?.strip_prefix(b"\n")?;
        let (hash, payload) = rest.strip_prefix(&self.fingerprint)?.split_at_checked(HASH_BYTES)?;
        (Sha256::digest(payload)[..] == *hash).then_some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_written_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("new/file");
        let format = CheckedFormat { name: "test 1", fingerprint: [7; 32], max_bytes: 100 };
        let append = |text: &'static str| {
            move |mut bytes: Vec<u8>| {
                bytes.extend_from_slice(text.as_bytes());
                Ok(bytes)
            }
        };
        assert_eq!(format.payload(&format.read(&path)), None);
        format.write(&path, append("payload")).unwrap();
        let whole = format.read(&path);
        assert_eq!(format.payload(&whole), Some(&b"payload"[..]));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(format.payload(&damaged), None, "{at}");
            assert_eq!(format.payload(&whole[..at]), None, "{at}");
        }
        let small = CheckedFormat { max_bytes: 20, ..format };
        assert_eq!(small.write(&path, append("x")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(small.read(&path).is_empty());
    }
}
