//! Every invariant in ARCHITECTURE.md names the test or lint that holds it, and the files that the page names exist. The tests
//! that the pages on security and reliability name exist, too.

use super::{Offence, SourceFile};

const PAGE: &str = "ARCHITECTURE.md";
const INVARIANT: &str = "**Invariant:";
/// Pages below `docs` whose tables name tests.
const TABLES: [&str; 2] = ["docs/reliability.md", "docs/security.md"];

pub(super) fn check(files: &[SourceFile], offences: &mut Vec<Offence>) {
    for page in files.iter().filter(|file| TABLES.contains(&file.path.as_str())) {
        for (index, line) in page.text.lines().enumerate() {
            named_tests(page, index + 1, line, files, offences);
        }
    }
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return;
    };
    for (line, paragraph) in paragraphs(&page.text) {
        if paragraph.starts_with(INVARIANT) && !paragraph.contains("Held by ") {
            offences.push(page.offence(line, "name what holds the invariant: Held by [`test`](file)"));
        }
        named_tests(page, line, &paragraph, files, offences);
        for path in code_spans(&paragraph).filter(|span| is_source_path(span)) {
            if !files.iter().any(|file| file.path == path) {
                offences.push(page.offence(line, format!("`{path}` does not exist")));
            }
        }
    }
}

/// Reports links of the form [`name`](file) whose file does not define the name.
fn named_tests(
    page: &SourceFile,
    line: usize,
    text: &str,
    files: &[SourceFile],
    offences: &mut Vec<Offence>,
) {
    for (name, target) in named_links(text) {
        let target = target.strip_prefix("../").unwrap_or(target);
        let held = files.iter().find(|file| file.path == target);
        if held.is_some_and(|file| !defines(file, name)) {
            offences.push(page.offence(line, format!("`{target}` has no `{name}`")));
        }
    }
}

/// Paragraphs joined to one line each, with the number of their first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        match (line.trim().is_empty(), open, found.last_mut()) {
            (true, _, _) => open = false,
            (false, true, Some((_, paragraph))) => {
                paragraph.push(' ');
                paragraph.push_str(line.trim());
            }
            (false, _, _) => {
                found.push((index + 1, line.trim().to_owned()));
                open = true;
            }
        }
    }
    found
}

/// Links of the form [`name`](target).
fn named_links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        Some((name, rest.split_once(')')?.0))
    })
}

fn defines(file: &SourceFile, name: &str) -> bool {
    match file.path.ends_with(".rs") {
        true => file.text.contains(&format!("fn {name}(")),
        false => file.text.contains(name),
    }
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_source_path(span: &str) -> bool {
    span.ends_with(".rs") && span.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        found_in(PAGE, page)
    }

    fn found_in(path: &str, page: &str) -> Vec<String> {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [file(path, page), file("a/tests/b.rs", "#[test]\nfn holds_it() {}\n")];
        let mut offences = Vec::new();
        check(&files, &mut offences);
        offences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invariant_with_its_test_is_accepted() {
        assert!(
            found("**Invariant: x.** It holds.\nHeld by [`holds_it`](a/tests/b.rs); see `a/tests/b.rs`.\n")
                .is_empty()
        );
    }

    #[test]
    fn invariant_without_a_test_is_an_offence() {
        assert_eq!(found("# A\n\n**Invariant: x.** It holds.\n").len(), 1);
    }

    #[test]
    fn missing_test_or_file_is_an_offence() {
        let offences = found("**Invariant: x.** Held by [`gone`](a/tests/b.rs).\n\nSee `a/src/gone.rs`.\n");
        assert_eq!(
            offences,
            [
                "ARCHITECTURE.md:1: `a/tests/b.rs` has no `gone`",
                "ARCHITECTURE.md:3: `a/src/gone.rs` does not exist"
            ]
        );
    }

    #[test]
    fn missing_test_in_a_table_is_an_offence() {
        let page = "| a | [`holds_it`](../a/tests/b.rs) |\n| b | [`gone`](../a/tests/b.rs) |\n";
        for path in TABLES {
            assert_eq!(found_in(path, page), [format!("{path}:2: `a/tests/b.rs` has no `gone`")]);
        }
    }
}
