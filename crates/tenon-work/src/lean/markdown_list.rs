//! Task lists in Markdown: bullets or numbers, nested by indentation, with or without check boxes.
//!
//! `tests:` and `criteria:` below an item, and a check in brackets after the title (`Fix it [cmd: make check]`),
//! belong to the item; every other line below it continues the title.

use std::fmt::Write;

/// One item of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListItem {
    pub title: String,
    pub done: bool,
    pub criteria: Vec<String>,
    pub tests: Vec<String>,
    pub items: Vec<ListItem>,
}

impl ListItem {
    /// An item from the text after its bullet.
    pub(crate) fn titled(text: &str) -> Self {
        let (done, text) = unchecked(text.trim());
        let mut item = Self { done, title: text.to_owned(), ..Self::default() };
        if let Some((title, check)) = bracketed(text) {
            item.title = title.to_owned();
            item.tests.push(check.to_owned());
        }
        item
    }
}

/// The check at the end of a title, and the title without it.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (title, check) = text.strip_suffix(']')?.rsplit_once('[')?;
    let named = check.starts_with("cmd:") || check.starts_with("problems:");
    (named && !title.trim().is_empty()).then(|| (title.trim(), check.trim()))
}

/// The text after a check box, and whether it is checked.
fn unchecked(text: &str) -> (bool, &str) {
    for (mark, done) in [("[ ]", false), ("[]", false), ("[x]", true), ("[X]", true)] {
        if let Some(rest) = text.strip_prefix(mark) {
            return (done, rest.trim_start());
        }
    }
    (false, text)
}

/// A line of a list.
struct Line<'a> {
    indent: usize,
    text: &'a str,
    is_item: bool,
}

fn line(text: &str) -> Option<Line<'_>> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    let blanks = text.chars().take_while(|one| one.is_whitespace());
    let indent = blanks.map(|blank| if blank == '\t' { 4 } else { 1 }).sum();
    let (is_item, text) = match unmarked(trimmed) {
        Some(rest) => (true, rest),
        None => {
            (trimmed.starts_with("[ ]") || trimmed.starts_with("[x]") || trimmed.starts_with("[X]"), trimmed)
        }
    };
    Some(Line { indent, text, is_item })
}

/// The text after a bullet or a number.
fn unmarked(text: &str) -> Option<&str> {
    let after = match text.chars().next()? {
        '-' | '*' | '+' | '•' => text.char_indices().nth(1).map(|(at, _)| &text[at..])?,
        first if first.is_ascii_digit() => {
            let rest = text.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
            let rest = rest.strip_prefix(')').unwrap_or(rest);
            // `2.5 times` is a text, `2. times` and `2) times` are items.
            let marker = &text[..text.len() - rest.len()];
            (marker.ends_with(['.', ')'])).then_some(rest)?
        }
        _ => return None,
    };
    after.starts_with(char::is_whitespace).then(|| after.trim_start())
}

/// The items of a list. Text without any bullet is a list with an item per line.
pub(crate) fn read(text: &str) -> Vec<ListItem> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(line).collect();
    let has_items = lines.iter().any(|line| line.is_item);
    // The open items from the root down, with their indentation.
    let mut open: Vec<(usize, ListItem)> = Vec::new();
    let mut roots = Vec::new();
    for line in lines {
        if has_items && !line.is_item {
            match open.last_mut() {
                Some((_, item)) => continued(item, line.text),
                // A line before the list introduces it.
                None => continue,
            }
            continue;
        }
        while open.last().is_some_and(|(indent, _)| *indent >= line.indent) {
            close(&mut open, &mut roots);
        }
        open.push((line.indent, ListItem::titled(line.text)));
    }
    while !open.is_empty() {
        close(&mut open, &mut roots);
    }
    roots
}

/// Moves the innermost open item into the item around it.
fn close(open: &mut Vec<(usize, ListItem)>, roots: &mut Vec<ListItem>) {
    let Some((_, item)) = open.pop() else { return };
    if item.title.is_empty() {
        return;
    }
    match open.last_mut() {
        Some((_, parent)) => parent.items.push(item),
        None => roots.push(item),
    }
}

/// A line below an item that is not an item.
fn continued(item: &mut ListItem, text: &str) {
    match text.split_once(':').map(|(key, value)| (key, value.trim())) {
        Some(("tests" | "test" | "check", value)) if !value.is_empty() => item.tests.push(value.to_owned()),
        Some(("criteria" | "criterion", value)) if !value.is_empty() => item.criteria.push(value.to_owned()),
        _ => {
            item.title.push(' ');
            item.title.push_str(text);
        }
    }
}

/// A list as Markdown, which [`read`] reads back.
pub(crate) fn write(items: &[ListItem]) -> String {
    let mut out = String::new();
    write_into(&mut out, items, 0);
    out
}

fn write_into(out: &mut String, items: &[ListItem], depth: usize) {
    let blanks = "  ".repeat(depth);
    for item in items {
        let mark = if item.done { "x" } else { " " };
        let title = item.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "{blanks}- [{mark}] {title}");
        for (key, values) in [("criteria", &item.criteria), ("tests", &item.tests)] {
            for value in values {
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                let _ = writeln!(out, "{blanks}  {key}: {value}");
            }
        }
        write_into(out, &item.items, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nested_lists_with_boxes_and_checks_are_read() {
        let text = "Plan:\n- [x] Read the log\n  - see `a.log`\n    and b\n- Fix it [cmd: make check]\n  tests: problems: src/**\n* Tell Ada\n";
        let items = read(text);
        assert_eq!(items.len(), 3);
        assert!(items[0].done && !items[1].done);
        assert_eq!(items[0].items[0].title, "see `a.log` and b");
        assert_eq!(items[1].tests, ["cmd: make check", "problems: src/**"]);
        assert_eq!(items[2].title, "Tell Ada");
    }

    #[test]
    fn numbers_in_a_text_are_not_bullets() {
        assert_eq!(unmarked("2.5 times faster"), None);
        assert_eq!(unmarked("2. times"), Some("times"));
        assert_eq!(unmarked("-v is a flag"), None);
        assert_eq!(read("2.5 times faster\n-v is a flag").len(), 2);
        assert_eq!(read(" \n\n"), []);
        assert_eq!(read("- \n- a"), [ListItem::titled("a")]);
    }

    fn items() -> impl Strategy<Value = Vec<ListItem>> {
        let words = "[a-zäöü]{1,8}( [a-z]{1,8}){0,3}";
        let leaf = (words, any::<bool>(), prop::collection::vec("cmd: [a-z]{1,8}", 0..2));
        let leaf =
            leaf.prop_map(|(title, done, tests)| ListItem { title, done, tests, ..ListItem::default() });
        let tree = leaf.prop_recursive(3, 24, 4, |inner| {
            (inner.clone(), prop::collection::vec(inner, 0..3))
                .prop_map(|(item, items)| ListItem { items, ..item })
        });
        prop::collection::vec(tree, 0..5)
    }

    proptest! {
        #[test]
        fn written_list_reads_back_the_same(items in items()) {
            prop_assert_eq!(read(&write(&items)), items);
        }
    }
}
