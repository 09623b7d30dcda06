//! Random places in source files: files, names and declarations, by a seed.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use tenon_testkit::Sandbox;

/// A random sequence that depends on its seed alone (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }

    pub(crate) fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }
}

/// Sets the time of all files to a day years ago. The time of a file that was written just now does not tell whether it changed
/// again, so it would be read twice.
pub(crate) fn make_old(folder: &Path) {
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => make_old(&path),
            Ok(kind) if kind.is_file() => {
                if let Ok(file) = std::fs::File::options().write(true).open(&path) {
                    let _ = file.set_modified(long_ago);
                }
            }
            _ => {}
        }
    }
}

/// The files with an extension, by name.
pub(crate) fn files(sandbox: &Sandbox, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(sandbox.root(), sandbox.root(), extension, &mut found);
    found.sort_unstable();
    found
}

fn collect(root: &Path, folder: &Path, extension: &str, found: &mut Vec<String>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, extension, found);
        } else if path.extension().is_some_and(|one| one == extension)
            && let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str)
        {
            found.push(name.to_owned());
        }
    }
}

pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || ["#", "//", "*", "/*", "\"", "'", "@"].iter().any(|start| line.starts_with(start))
}

const KEYWORDS: &str = " and any as assert async await bool break case catch class const continue def default del delete do elif \
    else enum except export extends false finally for from function global if implements import in infer instanceof \
    interface is keyof lambda let namespace never new none nonlocal not null number object of or pass private protected \
    public raise readonly return self static string super switch this throw true try type typeof undefined unknown var \
    void while with yield ";

/// The names in a line, as byte ranges, without keywords and text in quotes.
pub(crate) fn names(line: &str) -> Vec<(usize, usize)> {
    let code = line.find(['"', '\'', '`', '#']).unwrap_or(line.len());
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = &line.as_bytes()[..code];
    let mut found = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..].iter().take_while(|byte| is_part(**byte)).count();
        if length == 0 {
            start += 1;
            continue;
        }
        let word = &line[start..start + length];
        let is_keyword = KEYWORDS.contains(&format!(" {} ", word.to_ascii_lowercase()));
        if length > 2 && !is_keyword && !word.starts_with(|first: char| first.is_ascii_digit()) {
            found.push((start, start + length));
        }
        start += length;
    }
    found
}

/// The name that a line declares.
pub(crate) fn declared(line: &str) -> Option<(usize, usize)> {
    const STARTS: [&str; 8] =
        ["class ", "def ", "async def ", "function ", "interface ", "type ", "const ", "let "];
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    let rest = trimmed.strip_prefix("export ").unwrap_or(trimmed);
    let rest = rest.strip_prefix("abstract ").unwrap_or(rest);
    let start = STARTS.iter().find_map(|start| rest.strip_prefix(start))?;
    let at = indent + (trimmed.len() - start.len());
    names(line).into_iter().find(|(first, _)| *first == at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_outside_of_text_and_keywords() {
        let line = "    return filter(self, kwargs, 'text')";
        let found: Vec<&str> = names(line).into_iter().map(|(start, end)| &line[start..end]).collect();
        assert_eq!(found, ["filter", "kwargs"]);
        let line = "export abstract class Subject<T> {";
        let (start, end) = declared(line).unwrap();
        assert_eq!(&line[start..end], "Subject");
    }
}
