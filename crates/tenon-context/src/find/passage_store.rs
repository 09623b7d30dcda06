//! The passage index on disk.
//!
//! Payload: length and bytes of files and passages in the postcard format, then of terms, ends and postings as
//! little-endian numbers.

use std::io;

use camino::Utf8Path;
use sha2::{Digest, Sha256};
use tenon_contract::checked_file::CheckedFormat;

use super::segment::{FileEntry, Lengths, PassageEntry, Segment};

fn format() -> CheckedFormat {
    CheckedFormat { name: "tenon-passages", fingerprint: fingerprint(), max_bytes: 2 * 1024 * 1024 * 1024 }
}

/// Other code may cut and count otherwise.
fn fingerprint() -> [u8; 32] {
    const SOURCES: [&str; 6] = [
        include_str!("words.rs"),
        include_str!("section.rs"),
        include_str!("cut.rs"),
        include_str!("body_parts.rs"),
        include_str!("text_format.rs"),
        include_str!("segment.rs"),
    ];
    let mut hash = Sha256::new();
    for source in SOURCES {
        hash.update(source);
    }
    hash.update(env!("CARGO_PKG_VERSION"));
    hash.finalize().into()
}

pub(super) fn write(path: &Utf8Path, root: &Utf8Path, segment: &Segment) -> io::Result<()> {
    let entries = (root.as_str(), &segment.files, &segment.passages, &segment.lengths);
    let entries = postcard::to_extend(&entries, Vec::new()).map_err(io::Error::other)?;
    let terms: Vec<u8> = segment.terms.iter().flat_map(|term| term.to_le_bytes()).collect();
    let ends: Vec<u8> = segment.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
    format().write(path, |mut bytes| {
        for part in [&entries, &terms, &ends, &segment.postings] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    })
}

/// The stored segment; `None` if there is no store, or any doubt about it.
pub(super) fn read(path: &Utf8Path, root: &Utf8Path) -> Option<Segment> {
    let format = format();
    let bytes = format.read(path);
    let mut payload = format.payload(&bytes)?;
    let mut part = || {
        let (length, rest) = payload.split_first_chunk::<8>()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        payload = rest;
        Some(part)
    };
    let (entries, terms, ends, postings) = (part()?, part()?, part()?, part()?);
    let (stored_root, files, passages, lengths): (String, Vec<FileEntry>, Vec<PassageEntry>, Vec<Lengths>) =
        postcard::from_bytes(entries).ok()?;
    let segment = Segment {
        files,
        passages,
        lengths,
        terms: terms.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        ends: ends.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        postings: postings.to_vec(),
    };
    (stored_root == *root && segment.is_valid()).then_some(segment)
}
