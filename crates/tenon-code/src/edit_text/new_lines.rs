//! The lines for new diagnostics: one each, except for many similar ones.
//!
//! A merge conflict or a template makes a parser report dozens of errors in a few lines, and a renamed function breaks every
//! file of a folder that the project's configuration leaves out. Of these, the first few are listed and the rest is counted.
//! A diagnostic that names something is similar only to those that name the same.

use std::collections::BTreeMap;

use super::{line, name};
use crate::edit::FoundDiagnostic;

/// How many similar diagnostics are listed before the others are counted, and from how many on that is done.
const LISTED_SIMILAR: usize = 2;
const MANY_SIMILAR: usize = 5;
/// How many lines apart similar diagnostics may be.
const NEAR: u32 = 2;
/// How many diagnostics of files outside the projects are listed.
const LISTED_OUTSIDE: usize = 3;

/// A line with the number of diagnostics that it is for.
pub(super) struct NewLine {
    pub(super) text: String,
    pub(super) count: usize,
}

/// The lines for new diagnostics, which are in the order of their files and positions.
pub(super) fn new_lines(found: &[FoundDiagnostic]) -> Vec<NewLine> {
    let (outside, inside): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.is_outside);
    let mut lines = similar_lines(&inside);
    let all = |found: &[&FoundDiagnostic]| found.iter().map(|one| new_line(one)).collect::<Vec<_>>();
    if outside.len() < MANY_SIMILAR {
        lines.extend(all(&outside));
        return lines;
    }
    let (listed, counted) = outside.split_at(LISTED_OUTSIDE);
    lines.extend(all(listed));
    let mut files: Vec<&str> = counted.iter().map(|one| one.file.as_str()).collect();
    files.dedup();
    let text = format!(
        "NEW {} more in {} files that the project's configuration leaves out",
        counted.len(),
        files.len()
    );
    lines.push(NewLine { text, count: counted.len() });
    lines
}

/// Similar diagnostics in adjacent lines, by their places in the list.
struct Group {
    members: Vec<usize>,
    last_line: u32,
}

fn similar_lines(found: &[&FoundDiagnostic]) -> Vec<NewLine> {
    let mut groups: Vec<Group> = Vec::new();
    let mut open: BTreeMap<_, usize> = BTreeMap::new();
    for (index, one) in found.iter().enumerate() {
        let (file, line) = (one.file.as_str(), one.line.line);
        let kind = (one.line.severity, one.line.source.as_deref(), one.line.code.as_deref());
        let key = (file, kind, names(&one.line.message));
        let group = open.get(&key).copied().filter(|group| line <= groups[*group].last_line + NEAR);
        let group = group.unwrap_or_else(|| {
            groups.push(Group { members: Vec::new(), last_line: line });
            open.insert(key, groups.len() - 1);
            groups.len() - 1
        });
        groups[group].members.push(index);
        groups[group].last_line = groups[group].last_line.max(line);
    }
    // The others are counted where the first of them would be.
    let mut counted: BTreeMap<usize, &[usize]> = BTreeMap::new();
    let mut left_out = vec![false; found.len()];
    for group in groups.iter().filter(|group| group.members.len() >= MANY_SIMILAR) {
        let rest = &group.members[LISTED_SIMILAR..];
        rest.iter().for_each(|index| left_out[*index] = true);
        counted.insert(rest[0], rest);
    }
    let lines = found.iter().enumerate().filter_map(|(index, one)| match counted.get(&index) {
        Some(rest) => Some(counted_line(rest, found)),
        None => (!left_out[index]).then(|| new_line(one)),
    });
    lines.collect()
}

/// `NEW 9 more like this in src/a.py:4-13 (invalid-syntax)`.
fn counted_line(members: &[usize], found: &[&FoundDiagnostic]) -> NewLine {
    let (first, last) = (found[members[0]], found[members[members.len() - 1]]);
    let code = first.line.code.as_ref().map(|code| format!(" ({})", name(code))).unwrap_or_default();
    let (file, count) = (name(&first.file), members.len());
    let text = format!("NEW {count} more like this in {file}:{}-{}{code}", first.line.line, last.line.line);
    NewLine { text, count }
}

fn new_line(found: &FoundDiagnostic) -> NewLine {
    NewLine { text: format!("NEW {}", line(found)), count: 1 }
}

/// What a message names: its quoted parts, except for punctuation.
fn names(message: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = message;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let quote = &rest[start..=start];
        let Some(length) = rest[start + 1..].find(quote) else {
            break;
        };
        let quoted = &rest[start + 1..start + 1 + length];
        if quoted.chars().any(char::is_alphanumeric) {
            names.push(quoted);
        }
        rest = &rest[start + length + 2..];
    }
    names
}

#[cfg(test)]
mod tests {
    use tenon_lsp::diagnostic_line::DiagnosticLine;
    use tenon_lsp::model::Severity;

    use super::*;

    fn found(file: &str, line: u32, message: &str) -> FoundDiagnostic {
        let line = DiagnosticLine {
            line,
            character: 1,
            severity: Severity::Error,
            message: message.to_owned(),
            code: Some("E1".to_owned()),
            source: None,
        };
        FoundDiagnostic { file: file.to_owned(), line, symbol: None, is_outside: false }
    }

    fn texts(found: &[FoundDiagnostic]) -> Vec<String> {
        let lines = new_lines(found);
        assert_eq!(lines.iter().map(|line| line.count).sum::<usize>(), found.len());
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn similar_diagnostics_in_adjacent_lines_are_counted() {
        let mut all: Vec<_> = [2, 2, 4, 6, 6].map(|line| found("a.py", line, "Expected expression")).into();
        all.insert(2, found("a.py", 3, "\"b\" is not defined"));
        all.extend([9, 20].map(|line| found("a.py", line, "Expected expression")));
        let expected = [
            "NEW error a.py:2:1: Expected expression (E1)",
            "NEW error a.py:2:1: Expected expression (E1)",
            "NEW error a.py:3:1: \"b\" is not defined (E1)",
            "NEW 3 more like this in a.py:4-6 (E1)",
            "NEW error a.py:9:1: Expected expression (E1)",
            "NEW error a.py:20:1: Expected expression (E1)",
        ];
        assert_eq!(texts(&all), expected);
    }

    #[test]
    fn diagnostics_that_name_different_things_are_all_listed() {
        let all: Vec<_> =
            (1..=9).map(|line| found("a.py", line, &format!("\"a{line}\" is not defined"))).collect();
        assert_eq!(texts(&all).len(), 9);
        let files: Vec<_> = (1..=9).map(|file| found(&format!("{file}.py"), 1, "wrong")).collect();
        assert_eq!(texts(&files).len(), 9);
    }

    #[test]
    fn files_outside_the_projects_are_counted_last() {
        let mut all: Vec<_> = (1..=9).map(|file| found(&format!("old/{file}.py"), 1, "wrong")).collect();
        all.iter_mut().for_each(|one| one.is_outside = true);
        all.push(found("src/z.py", 1, "wrong"));
        let shown = texts(&all);
        assert_eq!(shown[0], "NEW error src/z.py:1:1: wrong (E1)");
        assert_eq!(shown[4], "NEW 6 more in 6 files that the project's configuration leaves out");
        assert_eq!(shown.len(), 5);
    }

    #[test]
    fn names_are_quoted_parts_with_letters() {
        assert_eq!(names("\"a\" is not a known attribute of `b.c`"), ["a", "b.c"]);
        assert_eq!(names("';' expected, it's"), Vec::<&str>::new());
    }
}
