//! The PyPI package: a wheel (PEP 427) that contains the program as a script and no Python.
//!
//! Its file name and `WHEEL` say which systems it is for, so that pip picks the right one.

use std::fs::{self, File};
use std::path::Path;

use flate2::Compression;
use sha2::{Digest, Sha256};

use super::archive::{Entry, write_zip};
use super::{Binary, PACKAGE, SUMMARY, VERSION};
use crate::shell::{Error, repository};

pub(super) fn write(out: &Path, binary: &Binary, level: Compression) -> Result<(), Error> {
    // PEP 427: runs of `-_.` in names become `_`.
    let name = format!("{}-{VERSION}", PACKAGE.replace('-', "_"));
    let tag = format!("py3-none-{}", binary.wheel_platform());
    let info = format!("{name}.dist-info");
    let mut entries = vec![
        Entry::program(&format!("{name}.data/scripts/{}", binary.target.program()), binary.bytes.clone()),
        Entry::file(&format!("{info}/METADATA"), metadata()?),
        Entry::file(
            &format!("{info}/WHEEL"),
            format!(
                "Wheel-Version: 1.0\nGenerator: tenon-xtask {VERSION}\nRoot-Is-Purelib: false\nTag: {tag}\n"
            ),
        ),
    ];
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = fs::read(repository().join(license))?;
        entries.push(Entry::file(&format!("{info}/licenses/{license}"), text));
    }
    let record = format!("{info}/RECORD");
    let mut lines: String = entries.iter().map(recorded).collect();
    lines.push_str(&format!("{record},,\n"));
    entries.push(Entry::file(&record, lines));
    write_zip(File::create(out.join(format!("{name}-{tag}.whl")))?, &entries, level)
}

fn metadata() -> Result<String, Error> {
    let readme = fs::read_to_string(repository().join("packaging/package-readme.md"))?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {VERSION}\nSummary: {SUMMARY}\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
    ))
}

/// A line of `RECORD`: path, hash, size.
fn recorded(entry: &Entry) -> String {
    format!("{},sha256={},{}\n", entry.path, base64url(&Sha256::digest(&entry.bytes)), entry.bytes.len())
}

/// Base64 with the alphabet for URLs, without padding (RFC 4648, section 5).
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0_u32, |word, (index, byte)| word | u32::from(*byte) << (16 - 8 * index));
        for index in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * index) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10, without padding.
    #[test]
    fn base64url_matches_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }
}
