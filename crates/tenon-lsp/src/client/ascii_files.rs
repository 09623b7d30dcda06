//! Files that are ASCII: their columns are the same in every encoding, so that they need not be read for each answer.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenon_contract::root::WorkspacePath;

use crate::watch::Stamp;

/// More are forgotten together; each is found again by reading it.
const MOST: usize = 50_000;

/// A younger file may change again without another time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Stamps of the files when they were read.
#[derive(Debug, Default)]
pub(crate) struct AsciiFiles(Mutex<BTreeMap<WorkspacePath, Stamp>>);

impl AsciiFiles {
    /// Whether the file is as it was when it was noted.
    pub(crate) fn contains(&self, path: &WorkspacePath) -> bool {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        noted.is_some() && noted == settled_stamp(path)
    }

    /// Reads a file, and notes it if it is ASCII.
    pub(crate) fn read<E>(
        &self,
        path: &WorkspacePath,
        read: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let before = settled_stamp(path);
        let bytes = read()?;
        if let Some(stamp) = before.filter(|before| bytes.is_ascii() && settled_stamp(path) == Some(*before))
        {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if files.len() >= MOST {
                files.clear();
            }
            files.insert(path.clone(), stamp);
        }
        Ok(bytes)
    }
}

/// The stamp of a regular file that did not change just now.
fn settled_stamp(path: &WorkspacePath) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(path.as_path()).ok().filter(fs::Metadata::is_file)?;
    let age = metadata.modified().ok()?.elapsed().ok()?;
    (age > SETTLED_AFTER).then(|| Stamp::of(&metadata))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::UNIX_EPOCH;

    use tenon_contract::root::RootGate;

    use super::*;

    #[test]
    fn only_unchanged_settled_ascii_files_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = camino::Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let gate = RootGate::new([root.clone()]).unwrap();
        let files = AsciiFiles::default();
        let write = |name: &str, text: &str, seconds: u64| {
            let file = root.join(name);
            fs::write(&file, text).unwrap();
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
            gate.admit_path(name).unwrap()
        };
        let read = |path: &WorkspacePath| {
            files.read(path, || Ok::<_, Infallible>(fs::read(path.as_path()).unwrap())).unwrap()
        };
        let ascii = write("ascii", "plain", 1);
        let mixed = write("mixed", "größer", 1);
        assert!(!files.contains(&ascii));
        assert_eq!(read(&ascii), b"plain");
        read(&mixed);
        assert!(files.contains(&ascii) && !files.contains(&mixed));
        // The same size and time: the file system's own time differs.
        write("ascii", "größ", 1);
        assert!(!files.contains(&ascii));

        fs::write(root.join("young"), "plain").unwrap();
        let young = gate.admit_path("young").unwrap();
        read(&young);
        assert!(!files.contains(&young));
        fs::remove_file(root.join("ascii")).unwrap();
        assert!(!files.contains(&ascii));
    }
}
