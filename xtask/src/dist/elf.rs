//! Which glibc a Linux program needs: the newest version of glibc among the symbol versions that it imports.
//!
//! The linker writes them into the section of type `SHT_GNU_verneed`: per library a record with a list of version names
//! (System V ABI, Linux Standard Base "Symbol Versioning").

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlibcVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

const SHT_GNU_VERNEED: u32 = 0x6fff_fffe;

/// The oldest glibc that the program runs with.
pub(super) fn needed_glibc(program: &[u8]) -> Result<GlibcVersion, &'static str> {
    let elf = Elf(program);
    if program.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF file");
    }
    let sections = elf.sections().ok_or("section table is cut off")?;
    let needs = sections.iter().find(|section| section.kind == SHT_GNU_VERNEED);
    let needs = needs.ok_or("imports no versioned symbols")?;
    let names = sections.get(needs.link as usize).ok_or("names of versions are missing")?;
    let versions = elf.version_names(needs, names).ok_or("version table is cut off")?;
    versions.iter().filter_map(|name| parse(name)).max().ok_or("imports nothing from glibc")
}

fn parse(name: &[u8]) -> Option<GlibcVersion> {
    let mut numbers = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?.split('.');
    let (major, minor) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(GlibcVersion { major, minor })
}

struct Section {
    kind: u32,
    offset: usize,
    link: u32,
    /// For version needs: the number of records.
    info: u32,
}

struct Elf<'a>(&'a [u8]);

impl<'a> Elf<'a> {
    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.0.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
    }

    fn sections(&self) -> Option<Vec<Section>> {
        let (table, size, count) = (self.u64(0x28)?, self.u16(0x3a)?, self.u16(0x3c)?);
        let section = |index: u16| {
            let at = table.checked_add(usize::from(index) * usize::from(size))?;
            Some(Section {
                kind: self.u32(at.checked_add(4)?)?,
                offset: self.u64(at.checked_add(0x18)?)?,
                link: self.u32(at.checked_add(0x28)?)?,
                info: self.u32(at.checked_add(0x2c)?)?,
            })
        };
        (0..count).map(section).collect()
    }

    fn version_names(&self, needs: &Section, names: &Section) -> Option<Vec<&'a [u8]>> {
        let mut found = Vec::new();
        let mut record = needs.offset;
        for _ in 0..needs.info {
            let count = self.u16(record.checked_add(2)?)?;
            let mut version = record.checked_add(self.u32(record.checked_add(8)?)? as usize)?;
            for _ in 0..count {
                let name = names.offset.checked_add(self.u32(version.checked_add(8)?)? as usize)?;
                let text = self.0.get(name..)?;
                found.push(&text[..text.iter().position(|byte| *byte == 0)?]);
                version = version.checked_add(self.u32(version.checked_add(12)?)? as usize)?;
            }
            record = record.checked_add(self.u32(record.checked_add(12)?)? as usize)?;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle is readelf of binutils.
    #[test]
    fn needed_glibc_is_the_newest_version_that_readelf_lists() {
        for program in ["/bin/sh", "/bin/ls", "/usr/bin/env"] {
            let listed = std::process::Command::new("readelf").args(["-V", program]).output().unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            let newest = listed.split_whitespace().filter_map(|word| parse(word.as_bytes())).max();
            let needed = needed_glibc(&std::fs::read(program).unwrap());
            assert_eq!(needed.ok(), newest, "{program}");
            assert!(newest.is_some(), "{program}");
        }
    }

    #[test]
    fn cut_or_foreign_file_is_rejected() {
        let program = std::fs::read("/bin/sh").unwrap();
        for length in [0, 4, 16, 64, program.len() / 2] {
            needed_glibc(&program[..length]).unwrap_err();
        }
        assert_eq!(needed_glibc(b"MZ\x90\x00"), Err("not a 64-bit little-endian ELF file"));
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(parse(b"GLIBC_2.9") < parse(b"GLIBC_2.34"));
        assert_eq!(parse(b"GLIBC_2.2.5").unwrap().to_string(), "2.2");
        assert_eq!(parse(b"GCC_3.0"), None);
    }
}
