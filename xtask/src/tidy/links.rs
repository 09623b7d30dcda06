//! Links between Markdown pages point to existing files.

use std::path::Path;

use super::{Offence, SourceFile};
use crate::shell::repository;

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let dead = targets(line).filter(|target| is_local(target) && !exists(&file.path, target));
            offences.extend(dead.map(|target| file.offence(index + 1, format!("`{target}` does not exist"))));
        }
    }
}

/// The targets of the inline links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

fn is_local(target: &str) -> bool {
    !target.contains("://") && !target.starts_with('#') && !target.starts_with("mailto:")
}

fn exists(page: &str, target: &str) -> bool {
    let file = target.split('#').next().unwrap_or(target);
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    repository().join(folder).join(file).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let line = "see [one](README.md), [two](https://example.org/x) and [three](no/such.md#part)";
        assert_eq!(
            targets(line).collect::<Vec<_>>(),
            ["README.md", "https://example.org/x", "no/such.md#part"]
        );
        let page = SourceFile { path: "examples/polyglot/README.md".into(), text: line.into() };
        let mut found = Vec::new();
        check(&[page], &mut found);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("no/such.md"));
    }
}
