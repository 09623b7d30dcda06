//! Where the text of an edit by declaration goes: its indentation, the blank lines around it, and the comments that belong to
//! a declaration.

use std::ops::Range;

use tenon_index::{IndexedFile, SymbolRef};

use super::indentation::{self, IndentStyle};

/// Where a text is put, relative to a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    Replace,
    Before,
    After,
}

/// The declaration shares a line with other code, so that there is no line for text before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharesLine;

/// A declaration in the text of a file.
pub(super) struct Placed<'a> {
    text: &'a str,
    file: &'a IndexedFile,
    symbol: SymbolRef<'a>,
    /// Without line breaks at the end.
    range: Range<usize>,
}

impl<'a> Placed<'a> {
    pub(super) fn new(text: &'a str, file: &'a IndexedFile, symbol: SymbolRef<'a>) -> Self {
        let Range { start, end } = symbol.range().bytes();
        let end = start + text[start..end].trim_end().len();
        Self { text, file, symbol, range: start..end }
    }

    /// The lines of the declaration with the comments right above it, without the last line break.
    pub(super) fn lines(&self) -> Result<Range<usize>, SharesLine> {
        Ok(self.first_line()?..self.last_line()?)
    }

    /// The file's text with `new` in its place.
    pub(super) fn with(&self, placement: Placement, new: &str) -> Result<String, SharesLine> {
        let shown = |indent: &str| {
            indentation::adapted(new, indent, IndentStyle::of(self.text), self.file.language().name())
        };
        let (at, piece) = match placement {
            Placement::Replace => {
                let indent = self.indent().unwrap_or_default();
                // The indentation of the first line is in the file already.
                (self.range.clone(), shown(indent)[indent.len()..].to_owned())
            }
            Placement::Before => {
                let at = self.first_line()?;
                let piece = shown(self.indent().ok_or(SharesLine)?);
                let above = self.blank_lines_above(at);
                let more = usize::from(above == Some(0) && !self.is_compact(&piece));
                (
                    at..at,
                    ["\n".repeat(more), piece.clone(), "\n".repeat(self.gap(above, &piece) + 1)].concat(),
                )
            }
            Placement::After => {
                let at = self.last_line()?;
                let piece = shown(self.indent().ok_or(SharesLine)?);
                let below = self.blank_lines_below(at);
                let more = usize::from(below == Some(0) && !self.is_compact(&piece));
                (
                    at..at,
                    ["\n".repeat(self.gap(below, &piece) + 1), piece.clone(), "\n".repeat(more)].concat(),
                )
            }
        };
        let piece = if self.has_dos_endings() { piece.replace('\n', "\r\n") } else { piece };
        Ok([&self.text[..at.start], &piece, &self.text[at.end..]].concat())
    }

    /// The file's text without the declaration.
    pub(super) fn without(&self) -> Result<String, SharesLine> {
        let Range { start, end } = self.lines()?;
        let (head, tail) = (self.text[..start].trim_end(), without_blank_lines(&self.text[end..]));
        let ending = if self.has_dos_endings() { "\r\n" } else { "\n" };
        if head.is_empty() || tail.is_empty() {
            let ending = if head.is_empty() { "" } else { ending };
            return Ok([head, ending, tail].concat());
        }
        let gap = match (self.blank_lines_above(start), self.blank_lines_below(end)) {
            (Some(above), Some(below)) => above.max(below),
            // It was the last one in the block.
            (Some(_), None) => breaks(&self.text[end..self.text.len() - tail.len()]),
            // It was the first one.
            (None, _) => breaks(&self.text[head.len()..start]),
        };
        Ok([head, &ending.repeat(gap + 1), tail].concat())
    }

    /// The whitespace before the declaration; `None` if other code is before it in its line.
    fn indent(&self) -> Option<&'a str> {
        let before = &self.text[line_start(self.text, self.range.start)..self.range.start];
        before.trim().is_empty().then_some(before)
    }

    /// The start of the line of the declaration, or of the comments right above it.
    fn first_line(&self) -> Result<usize, SharesLine> {
        let indent = self.indent().ok_or(SharesLine)?;
        let mut at = self.range.start - indent.len();
        while at > 0 {
            let above = line_start(self.text, at - 1);
            let line = self.text[above..at].trim_end();
            let is_attached = indent_len(line) == indent.len() && self.is_comment(line.trim_start());
            if !is_attached {
                break;
            }
            at = above;
        }
        Ok(at)
    }

    /// The end of the line of the declaration, after a comma, a semicolon or a comment.
    fn last_line(&self) -> Result<usize, SharesLine> {
        let rest = &self.text[self.range.end..];
        let line = rest.split('\n').next().unwrap_or_default().trim_end();
        let left = line.trim_start_matches([',', ';', ' ', '\t']);
        match left.is_empty() || self.is_comment(left) {
            true => Ok(self.range.end + line.len()),
            false => Err(SharesLine),
        }
    }

    fn is_comment(&self, line: &str) -> bool {
        match self.file.language().name() {
            "python" | "ruby" | "bash" => line.starts_with('#') && !line.starts_with("#!"),
            _ => {
                ["//", "/*", "*/"].iter().any(|sign| line.starts_with(sign))
                    || line == "*"
                    || line.starts_with("* ")
            }
        }
    }

    fn has_dos_endings(&self) -> bool {
        let (all, dos) = (self.text.matches('\n').count(), self.text.matches("\r\n").count());
        all > 0 && all == dos
    }

    /// Fields, constants and the like in one line have no blank lines between them.
    fn is_compact(&self, piece: &str) -> bool {
        (self.symbol.kind().is_value() || self.symbol.body().is_none()) && !piece.contains('\n')
    }

    /// The blank lines between the declaration and a new neighbour: as many as between it and its neighbour there.
    fn gap(&self, found: Option<usize>, piece: &str) -> usize {
        let is_top_level = self.symbol.parent().is_none();
        match (found.unwrap_or_default(), self.is_compact(piece)) {
            (found, true) => found,
            (found, false) if found > 0 => found,
            _ if self.file.language().name() == "python" && is_top_level => 2,
            _ => 1,
        }
    }

    /// The blank lines above a place; `None` if the line before them begins the block, or there is none.
    fn blank_lines_above(&self, at: usize) -> Option<usize> {
        let head = self.text[..at].trim_end();
        self.is_beside(&head[line_start(head, head.len())..]).then(|| breaks(&self.text[head.len()..at]))
    }

    /// The blank lines below a place; `None` if the line after them ends the block, or there is none.
    fn blank_lines_below(&self, at: usize) -> Option<usize> {
        let tail = without_blank_lines(&self.text[at..]);
        self.is_beside(tail).then(|| breaks(&self.text[at..self.text.len() - tail.len()]))
    }

    /// Whether a line belongs to the block of the declaration.
    fn is_beside(&self, line: &str) -> bool {
        let own = self.indent().map_or(0, str::len);
        !line.trim().is_empty() && indent_len(line) >= own && !line.trim_start().starts_with(['}', ')', ']'])
            || (own == 0 && line.starts_with('}'))
    }
}

/// The blank lines in a text between two lines.
fn breaks(between: &str) -> usize {
    between.matches('\n').count().saturating_sub(1)
}

/// The rest of a text from the first line with code on; the text begins at the end of a line.
fn without_blank_lines(text: &str) -> &str {
    match text.trim_start() {
        "" => "",
        code => &text[line_start(text, text.len() - code.len())..],
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |before| before + 1)
}

fn indent_len(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;
    use tenon_contract::clock::Clock;
    use tenon_index::{IndexOptions, SyntaxIndex};

    use super::*;

    /// The text of a Python file after an edit of the declaration with this name path.
    fn edited(text: &str, name: &str, work: impl Fn(&Placed<'_>) -> Result<String, SharesLine>) -> String {
        let options = IndexOptions { root: "/nowhere".into(), store: None, clock: Clock::system() };
        let file = SyntaxIndex::open(options).parse(Utf8Path::new("a.py"), text).unwrap();
        let symbol = file.symbols().find(|symbol| symbol.name_path() == name).expect(name);
        work(&Placed::new(text, &file, symbol)).unwrap_or_else(|SharesLine| "shares its line".to_owned())
    }

    fn with(text: &str, name: &str, placement: Placement, new: &str) -> String {
        edited(text, name, |placed| placed.with(placement, new))
    }

    fn without(text: &str, name: &str) -> String {
        edited(text, name, |placed| placed.without())
    }

    const CLASS: &str = "\
import os


class A:
    x = 1
    y = 2

    # About f.
    @cached
    def f(self):
        return 1

    def g(self):
        return 2


def last():
    pass
";

    #[test]
    fn declaration_is_replaced_with_its_decorators_and_without_its_comments() {
        let text = with(CLASS, "A.f", Placement::Replace, "def f(self):\n    return 3\n");
        assert_eq!(
            text,
            CLASS.replace("@cached\n    def f(self):\n        return 1", "def f(self):\n        return 3")
        );
    }

    #[test]
    fn neighbours_get_the_blank_lines_of_the_place() {
        let new = "def new(self):\n    pass";
        let after = with(CLASS, "A.f", Placement::After, new);
        assert_eq!(after, CLASS.replace("return 1\n", "return 1\n\n    def new(self):\n        pass\n"));
        let before = with(CLASS, "A.f", Placement::Before, new);
        assert_eq!(
            before,
            CLASS.replace("    # About f.", "    def new(self):\n        pass\n\n    # About f.")
        );
        let after = with(CLASS, "last", Placement::After, "def new():\n    pass");
        assert_eq!(after, format!("{CLASS}\n\ndef new():\n    pass\n"));
        let before = with(CLASS, "A", Placement::Before, "B = 1");
        assert_eq!(before, CLASS.replace("class A", "B = 1\n\n\nclass A"));
        assert_eq!(
            with(CLASS, "A.x", Placement::After, "z = 3"),
            CLASS.replace("x = 1\n", "x = 1\n    z = 3\n")
        );
        assert_eq!(with("def f(): pass", "f", Placement::After, "x = 1"), "def f(): pass\n\n\nx = 1");
    }

    #[test]
    fn deleted_declaration_leaves_sensible_blank_lines() {
        let first = without(CLASS, "A.x");
        assert_eq!(first, CLASS.replace("    x = 1\n", ""));
        let comment = "\n    # About f.\n    @cached\n    def f(self):\n        return 1\n";
        assert_eq!(without(CLASS, "A.f"), CLASS.replace(comment, ""));
        assert_eq!(without(CLASS, "A.g"), CLASS.replace("\n    def g(self):\n        return 2\n", ""));
        assert_eq!(without(CLASS, "last"), CLASS.replace("\n\ndef last():\n    pass\n", ""));
        assert_eq!(without("def f():\n    pass\n\n\nx = 1\n", "f"), "x = 1\n");
        assert_eq!(without("def f():\n    pass\n", "f"), "");
        assert_eq!(
            without("a = 1\r\n\r\ndef f():\r\n    pass\r\n\r\nb = 1\r\n", "f"),
            "a = 1\r\n\r\nb = 1\r\n"
        );
    }

    #[test]
    fn declaration_that_shares_its_line_is_only_replaced() {
        let text = "a = 1; b = 2\n";
        assert_eq!(with(text, "a", Placement::After, "c = 3"), "shares its line");
        assert_eq!(with(text, "b", Placement::Before, "c = 3"), "shares its line");
        assert_eq!(without(text, "b"), "shares its line");
        assert_eq!(with("x = 1  # why\n", "x", Placement::After, "y = 2"), "x = 1  # why\ny = 2\n");
    }

    #[test]
    fn line_endings_of_the_file_are_kept() {
        let text = with("def f():\r\n    pass\r\n", "f", Placement::Replace, "def f():\n    return 1\n");
        assert_eq!(text, "def f():\r\n    return 1\r\n");
    }
}
