//! Sections of documents: Markdown, reStructuredText, AsciiDoc and plain text.

use std::ops::Range;

use super::text_format::TextFormat;

/// A part of a document below one heading, up to the next heading of any level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub bytes: Range<usize>,
    /// The headings above it and its own, outermost first. Empty for what comes before the first heading.
    pub headings: Vec<String>,
}

/// A line that begins a section.
struct Heading {
    /// Where the section begins.
    start: usize,
    /// 1 is the outermost.
    level: usize,
    text: String,
}

/// The sections of a document, in order, without gaps.
pub(crate) fn sections(format: TextFormat, text: &str) -> Vec<Section> {
    let headings = match format {
        TextFormat::Markdown => markdown(text),
        TextFormat::AsciiDoc => asciidoc(text),
        _ => underlined(text),
    };
    let mut sections = Vec::new();
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut start = 0;
    for heading in headings {
        push(&mut sections, start..heading.start, &path, text);
        start = heading.start;
        path.retain(|(level, _)| *level < heading.level);
        path.push((heading.level, heading.text));
    }
    push(&mut sections, start..text.len(), &path, text);
    sections
}

fn push(sections: &mut Vec<Section>, bytes: Range<usize>, path: &[(usize, String)], text: &str) {
    if !text[bytes.clone()].trim().is_empty() {
        sections.push(Section { bytes, headings: path.iter().map(|(_, heading)| heading.clone()).collect() });
    }
}

/// Lines with their first byte, without line ends.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches(['\n', '\r']))
    })
}

fn markdown(text: &str) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut before: Option<(usize, &str)> = None;
    for (start, line) in lines(text) {
        let bare = line.trim_start();
        let mark = bare.chars().next().unwrap_or(' ');
        let run = bare.chars().take_while(|c| *c == mark).count();
        if let Some((open, length)) = fence {
            if mark == open && run >= length && bare[run..].trim().is_empty() {
                fence = None;
            }
            continue;
        }
        let indent = line.len() - bare.len();
        if matches!(mark, '`' | '~') && run >= 3 {
            fence = Some((mark, run));
        } else if mark == '#'
            && run <= 6
            && indent <= 3
            && (bare.len() == run || bare[run..].starts_with([' ', '\t']))
        {
            let text = bare[run..].trim().trim_end_matches('#').trim().to_owned();
            headings.push(Heading { start, level: run, text });
        } else if matches!(mark, '=' | '-')
            && run == bare.trim_end().len()
            && run >= 3
            && indent <= 3
            && let Some((title_start, title)) = before
            && is_title(title)
        {
            let level = if mark == '=' { 1 } else { 2 };
            headings.push(Heading { start: title_start, level, text: title.trim().to_owned() });
        }
        before = Some((start, line));
    }
    headings
}

/// A line of prose that an underline may make a heading.
fn is_title(line: &str) -> bool {
    let bare = line.trim();
    !bare.is_empty()
        && bare.len() <= 200
        && !line.starts_with([' ', '\t', '>', '|', '#', '-', '*', '+'])
        && bare.chars().any(char::is_alphanumeric)
}

fn asciidoc(text: &str) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut block: Option<&str> = None;
    for (start, line) in lines(text) {
        let line = line.trim_end();
        if let Some(open) = block {
            if line == open {
                block = None;
            }
            continue;
        }
        let same = line.len() >= 4
            && ["-", ".", "+", "/", "="]
                .iter()
                .any(|mark| line.bytes().all(|byte| byte == mark.as_bytes()[0]));
        if same {
            block = Some(line);
            continue;
        }
        let run = line.bytes().take_while(|byte| *byte == b'=').count();
        if (1..=6).contains(&run) && line[run..].starts_with(' ') {
            headings.push(Heading { start, level: run, text: line[run..].trim().to_owned() });
        }
    }
    headings
}

/// Titles with a line of punctuation below them, or above and below. Levels are in the order in which styles appear.
fn underlined(text: &str) -> Vec<Heading> {
    let all: Vec<(usize, &str)> = lines(text).collect();
    let mut styles: Vec<(char, bool)> = Vec::new();
    let mut headings = Vec::new();
    let mut at = 0;
    while at + 1 < all.len() {
        let (start, title) = all[at];
        let over = adornment(title).is_some() && at + 2 < all.len();
        let (title_start, title, under) =
            if over { (start, all[at + 1].1, all[at + 2].1) } else { (start, title, all[at + 1].1) };
        let mark = adornment(under);
        let long_enough = mark.is_some_and(|(_, length)| length + 2 >= title.trim().chars().count());
        let same = !over || adornment(all[at].1).map(|(mark, _)| mark) == mark.map(|(mark, _)| mark);
        let titled = is_title(title.trim_start())
            && (over || !title.starts_with([' ', '\t']))
            && adornment(title).is_none();
        let alone =
            at == 0 || all[at - 1].1.trim().is_empty() || over || !all[at - 1].1.starts_with([' ', '\t']);
        match mark {
            Some((mark, _)) if long_enough && same && titled && alone => {
                let level = styles.iter().position(|style| *style == (mark, over)).unwrap_or_else(|| {
                    styles.push((mark, over));
                    styles.len() - 1
                });
                headings.push(Heading {
                    start: title_start,
                    level: level + 1,
                    text: title.trim().to_owned(),
                });
                at += if over { 3 } else { 2 };
            }
            _ => at += 1,
        }
    }
    headings
}

/// A line of one punctuation mark, at least three times.
fn adornment(line: &str) -> Option<(char, usize)> {
    let line = line.trim_end();
    let mark = line.chars().next().filter(char::is_ascii_punctuation)?;
    let length = line.chars().count();
    (length >= 3 && line.chars().all(|c| c == mark)).then_some((mark, length))
}

/// Places inside a long section where it may be cut: a described object of reStructuredText, with its name.
pub(crate) fn described_objects(text: &str) -> Vec<(usize, String)> {
    let object = |(start, line): (usize, &str)| {
        let rest = line.strip_prefix(".. ")?;
        let (directive, argument) = rest.split_once(":: ")?;
        let last = directive.rsplit(':').next().unwrap_or(directive);
        let argument = argument.trim();
        (OBJECTS.contains(&last) && !argument.is_empty()).then(|| (start, argument.to_owned()))
    };
    lines(text).filter_map(object).collect()
}

/// Directives that describe something with a name.
const OBJECTS: &[&str] = &[
    "attribute",
    "class",
    "classmethod",
    "cmdoption",
    "confval",
    "data",
    "decorator",
    "decoratormethod",
    "describe",
    "directive",
    "django-admin",
    "django-admin-option",
    "enum",
    "envvar",
    "event",
    "exception",
    "fieldlookup",
    "function",
    "macro",
    "method",
    "module",
    "object",
    "option",
    "property",
    "role",
    "setting",
    "staticmethod",
    "struct",
    "templatefilter",
    "templatetag",
    "type",
    "var",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(format: TextFormat, text: &str) -> Vec<String> {
        sections(format, text).into_iter().map(|section| section.headings.join(" > ")).collect()
    }

    #[test]
    fn markdown_headings_outside_of_fences_begin_sections() {
        let text = "intro\n# A #\ntext\n## B\n```sh\n# comment\n```\n## C\ntext\nSetext\n======\nlast\n";
        assert_eq!(paths(TextFormat::Markdown, text), ["", "A", "A > B", "A > C", "Setext"]);
    }

    #[test]
    fn underlined_titles_have_levels_by_first_use() {
        let text = "=====\nTitle\n=====\n\nintro\n\nOne\n===\ntext\n\nInner\n-----\ntext\n\nTwo\n===\ntext\n\n* item\n  ----\n";
        assert_eq!(
            paths(TextFormat::ReStructuredText, text),
            ["Title", "Title > One", "Title > One > Inner", "Title > Two"]
        );
        assert_eq!(paths(TextFormat::Plain, "no title\n\n-----\n\ntext\n"), [""]);
    }

    #[test]
    fn asciidoc_headings_outside_of_blocks_begin_sections() {
        let text = "= Title\n\n== One\n----\n== no heading\n----\n=== Inner\ntext\n";
        assert_eq!(paths(TextFormat::AsciiDoc, text), ["Title", "Title > One", "Title > One > Inner"]);
    }

    #[test]
    fn sections_have_no_gaps() {
        let text = "a\n# b\nc\n# d\n";
        let parts: String =
            sections(TextFormat::Markdown, text).iter().map(|part| &text[part.bytes.clone()]).collect();
        assert_eq!(parts, text);
    }

    #[test]
    fn described_objects_are_named() {
        let text = "x\n\n.. method:: bulk_create(objs)\n\n   text\n\n.. note:: no\n\n.. py:function:: f()\n";
        let names: Vec<String> = described_objects(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["bulk_create(objs)", "f()"]);
    }
}
