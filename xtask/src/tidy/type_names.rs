//! A public type name means one thing in all shipped crates.

use std::collections::BTreeMap;

use super::{Offence, SourceFile};

/// Names that are local to their crate by convention.
const GENERIC: [&str; 4] = ["Args", "Command", "Error", "Options"];

/// Crates that are never shipped. Their names appear in tests only.
const TEST_CRATES: [&str; 2] = ["tenon-fake-lsp", "tenon-testkit"];

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    // The first crate that declares a name, and where.
    let mut known: BTreeMap<&str, (&str, String)> = BTreeMap::new();
    for file in files {
        let Some(krate) = shipped_crate(&file.path) else { continue };
        for (index, line) in file.text.lines().enumerate() {
            let Some(name) = declared_type(line).filter(|name| !GENERIC.contains(name)) else { continue };
            let location = format!("{}:{}", file.path, index + 1);
            let (first, declared) = known.entry(name).or_insert((krate, location));
            if *first != krate {
                let rule = format!("`{name}` is also a public type in {declared}: rename one of them");
                offences.push(file.offence(index + 1, rule));
            }
        }
    }
}

fn shipped_crate(path: &str) -> Option<&str> {
    let (krate, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    (rest.starts_with("src/") && rest.ends_with(".rs") && !TEST_CRATES.contains(&krate)).then_some(krate)
}

fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split(|c: char| !c.is_alphanumeric() && c != '_');
    if !["struct", "enum", "trait", "type"].contains(&words.next()?) {
        return None;
    }
    // Macros declare `$name`.
    words.next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_name_in_two_crates_is_an_offence() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let mut offences = Vec::new();
        let files = [
            file(
                "crates/a/src/lib.rs",
                "pub struct Place<'a> {\npub enum Error {\npub(crate) struct Hidden;\n",
            ),
            file("crates/a/src/non_unix.rs", "pub struct Place;\n"),
            file("crates/b/src/lib.rs", "pub trait Place {\npub enum Error {\npub struct Hidden;\n"),
            file("crates/tenon-testkit/src/lib.rs", "pub struct Place;\n"),
        ];
        check(&files, &mut offences);
        let found: Vec<String> = offences.iter().map(Offence::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/b/src/lib.rs:1: `Place` is also a public type in crates/a/src/lib.rs:1: rename one of them"
            ]
        );
    }
}
