//! Compares files on disk with blobs, without following links.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tenon_contract::regular_file;

use super::{BlobId, GitChange, MAX_TEXT_BYTES};

/// The hash that names objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

/// The working files below the workspace.
#[derive(Debug, Clone)]
pub(super) struct WorkingTree {
    root: Utf8PathBuf,
    format: ObjectFormat,
}

impl WorkingTree {
    pub(super) fn new(root: Utf8PathBuf, format: ObjectFormat) -> Self {
        Self { root, format }
    }

    /// The files of a list that are not in a repository below the workspace, relative to the workspace.
    pub(super) fn untracked(&self, listed: Vec<Utf8PathBuf>) -> BTreeSet<Utf8PathBuf> {
        let mut nested: BTreeMap<Utf8PathBuf, bool> = BTreeMap::new();
        let mut is_nested = |path: &Utf8Path| {
            let folders = path.ancestors().skip(1).filter(|folder| !folder.as_str().is_empty());
            folders.into_iter().any(|folder| match nested.get(folder) {
                Some(&known) => known,
                None => {
                    let found = fs::symlink_metadata(self.root.join(folder).join(".git")).is_ok();
                    nested.insert(folder.to_owned(), found);
                    found
                }
            })
        };
        let relative = |path: Utf8PathBuf| path.strip_prefix(&self.root).map(Utf8Path::to_owned).ok();
        listed.into_iter().filter_map(relative).filter(|path| !is_nested(path)).collect()
    }

    /// The candidates that differ from their blobs.
    pub(super) fn changed(&self, candidates: BTreeMap<Utf8PathBuf, Option<BlobId>>) -> Vec<GitChange> {
        let mut plain_folders: BTreeMap<Utf8PathBuf, bool> = BTreeMap::new();
        let mut changes = Vec::new();
        for (path, before) in candidates {
            let folder = path.parent().map_or_else(Utf8PathBuf::new, Utf8Path::to_owned);
            let is_plain = *plain_folders.entry(folder).or_insert_with_key(|folder| {
                let folder = self.root.join(folder);
                folder.canonicalize_utf8().is_ok_and(|real| real == folder)
            });
            let full = self.root.join(&path);
            let exists =
                is_plain && fs::symlink_metadata(&full).is_ok_and(|found| found.file_type().is_file());
            let same = match &before {
                Some(blob) => exists && self.has_content(&full, blob),
                None => !exists,
            };
            if !same {
                changes.push(GitChange { path, before, exists });
            }
        }
        changes
    }

    /// Whether a file has the content of a blob, possibly with other line ends.
    fn has_content(&self, file: &Utf8Path, blob: &BlobId) -> bool {
        let Ok(Some(bytes)) = read_text(file) else {
            return false;
        };
        if self.format.blob_id(&bytes) == *blob {
            return true;
        }
        let has_crlf = bytes.windows(2).any(|pair| pair == b"\r\n");
        has_crlf && self.format.blob_id(&without_carriage_returns(&bytes)) == *blob
    }
}

impl ObjectFormat {
    fn blob_id(self, content: &[u8]) -> BlobId {
        let header = format!("blob {}\0", content.len());
        BlobId(match self {
            Self::Sha1 => hex(&Sha1::new().chain_update(header).chain_update(content).finalize()),
            Self::Sha256 => hex(&Sha256::new().chain_update(header).chain_update(content).finalize()),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a regular file; `None` if it is too large to be a text.
fn read_text(file: &Utf8Path) -> io::Result<Option<Vec<u8>>> {
    let bytes = regular_file::read_start(file, MAX_TEXT_BYTES as u64 + 1)?;
    Ok((bytes.len() <= MAX_TEXT_BYTES).then_some(bytes))
}

fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    for (index, &byte) in bytes.iter().enumerate() {
        if !(byte == b'\r' && bytes.get(index + 1) == Some(&b'\n')) {
            plain.push(byte);
        }
    }
    plain
}
