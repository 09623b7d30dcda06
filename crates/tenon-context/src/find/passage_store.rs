//! The passage index on disk: one file, replaced as a whole, that is read only if nothing about it is in doubt.
//!
//! Layout: a first line that names the format, the version of the code, the hash of the rest, the rest: length and bytes of
//! files and passages in the postcard format, then of terms, ends and postings as little-endian numbers.

use std::io::{self, Write};

use camino::Utf8Path;
use sha2::{Digest, Sha256};
use tenon_contract::regular_file;

use super::segment::{FileEntry, Lengths, PassageEntry, Segment};

const FORMAT: &[u8] = b"tenon-passages 1\n";
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = FORMAT.len() + 2 * HASH_BYTES;
/// A larger store is not read and not written.
const MAX_STORE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Other code may cut and count otherwise.
fn fingerprint() -> [u8; HASH_BYTES] {
    const SOURCES: [&str; 5] = [
        include_str!("words.rs"),
        include_str!("section.rs"),
        include_str!("cut.rs"),
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
    let mut bytes = Vec::new();
    bytes.extend_from_slice(FORMAT);
    bytes.extend_from_slice(&fingerprint());
    bytes.extend_from_slice(&[0; HASH_BYTES]);
    let entries = postcard::to_extend(
        &(root.as_str(), &segment.files, &segment.passages, &segment.lengths),
        Vec::new(),
    );
    let entries = entries.map_err(io::Error::other)?;
    let part = |bytes: &mut Vec<u8>, part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    part(&mut bytes, &entries);
    part(&mut bytes, &segment.terms.iter().flat_map(|term| term.to_le_bytes()).collect::<Vec<u8>>());
    part(&mut bytes, &segment.ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<u8>>());
    part(&mut bytes, &segment.postings);
    if bytes.len() as u64 > MAX_STORE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("index exceeds {MAX_STORE_BYTES} bytes"),
        ));
    }
    let hash = Sha256::digest(&bytes[HEADER_BYTES..]);
    bytes[HEADER_BYTES - HASH_BYTES..HEADER_BYTES].copy_from_slice(&hash);
    let folder = path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The stored segment; `None` if there is no store, or any doubt about it.
pub(super) fn read(path: &Utf8Path, root: &Utf8Path) -> Option<Segment> {
    decode(&regular_file::read(path, MAX_STORE_BYTES).ok()?, root)
}

fn decode(bytes: &[u8], root: &Utf8Path) -> Option<Segment> {
    let rest = bytes.strip_prefix(FORMAT)?.strip_prefix(&fingerprint())?;
    let (hash, mut payload) = rest.split_at_checked(HASH_BYTES)?;
    if Sha256::digest(payload)[..] != *hash {
        return None;
    }
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
