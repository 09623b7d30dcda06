//! The names of declarations: found from a position beside one, and in the text of a declaration.

use tenon_contract::position::{Encoding, LineIndex, Position, Range};

use crate::identifiers;
use crate::model::Symbol;

/// The symbol whose declaration a position is on, left of the name or on an earlier line of the head, such as a decorator's.
///
/// A word on an earlier line never counts: it belongs to another expression.
pub(super) fn beside<'a>(symbols: &'a [Symbol], lines: &LineIndex, position: Position) -> Option<&'a Symbol> {
    let is_on_word = touches_word(lines, position);
    let mut heads: Vec<&Symbol> = symbols
        .iter()
        .filter(|one| {
            let name = one.selection.start;
            let is_head = position >= one.range.start || is_before_all(lines, one.range.start, position);
            position < name && is_head && (position.line == name.line || !is_on_word)
        })
        .collect();
    // The nearest name on this line, else the innermost declaration.
    heads.sort_by_key(|one| (one.selection.start, std::cmp::Reverse(one.depth)));
    heads.into_iter().next()
}

/// Whether a position is left of a declaration, with nothing but modifiers such as `export const` on the line before it.
fn is_before_all(lines: &LineIndex, declaration: Position, position: Position) -> bool {
    let start = lines.offset_clamped(Position::new(declaration.line, 0), Encoding::Utf16);
    let end = lines.offset_clamped(declaration, Encoding::Utf16);
    let before = lines.text().get(start..end).unwrap_or_default();
    position.line == declaration.line && before.chars().all(|c| c.is_whitespace() || identifiers::is_part(c))
}

fn touches_word(lines: &LineIndex, position: Position) -> bool {
    let at = lines.offset_clamped(position, Encoding::Utf16);
    let text = lines.text();
    text[at..].starts_with(identifiers::is_part) || text[..at].ends_with(identifiers::is_part)
}

/// The range of a declaration's name in its text. `None` if it does not contain the name as a word.
pub(super) fn in_text(lines: &LineIndex, declaration: Range, name: &str) -> Option<Range> {
    let word = simple(name)?;
    let end = lines.offset_clamped(declaration.end, Encoding::Utf16);
    let mut at = lines.offset_clamped(declaration.start, Encoding::Utf16);
    let text = lines.text().get(at..end)?;
    for line in text.split_inclusive('\n') {
        if !is_before_name(line.trim_start())
            && let Some(column) = identifiers::find(line, word)
        {
            let start = lines.position_clamped(at + column, Encoding::Utf16);
            let end = lines.position_clamped(at + column + word.len(), Encoding::Utf16);
            return Some(Range::new(start, end));
        }
        at += line.len();
    }
    None
}

/// Whether a line of a declaration is a comment, decorator or attribute.
fn is_before_name(line: &str) -> bool {
    ["@", "//", "/*", "*", "#"].iter().any(|start| line.starts_with(start))
}

/// The last word of a name such as `Base::filter`, `Server.Handle` or `total(int)`.
fn simple(name: &str) -> Option<&str> {
    let name = name.split('(').next().unwrap_or_default();
    name.rsplit(|c| !identifiers::is_part(c)).find(|word| !word.is_empty())
}

/// Whether a range is as long as a name, and so is the name's range already.
pub(super) fn is_range_of(range: Range, name: &str) -> bool {
    let units = name.encode_utf16().count();
    range.start.line == range.end.line
        && usize::try_from(range.end.character - range.start.character.min(range.end.character)) == Ok(units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SymbolKind;
    use tenon_contract::root::RootGate;

    const TEXT: &str = "class A(B):\n    @cached(key)\n    def filter(self, x):\n        pass\nlimit, size = 1, 2\nexport const total = 1\n";

    fn range(numbers: [u32; 4]) -> Range {
        Range::new(Position::new(numbers[0], numbers[1]), Position::new(numbers[2], numbers[3]))
    }

    fn symbols() -> (tempfile::TempDir, Vec<Symbol>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.py"), TEXT).unwrap();
        let path = RootGate::new([folder.path()]).unwrap().admit_path("a.py").unwrap();
        let symbol = |name: &str, full, selection, depth| Symbol {
            path: path.clone(),
            name: name.to_owned(),
            kind: SymbolKind(12),
            range: range(full),
            selection: range(selection),
            container: None,
            depth,
        };
        let symbols = vec![
            symbol("A", [0, 0, 3, 12], [0, 6, 0, 7], 0),
            symbol("filter", [1, 4, 3, 12], [2, 8, 2, 14], 1),
            symbol("limit", [4, 0, 4, 5], [4, 0, 4, 5], 0),
            symbol("size", [4, 7, 4, 11], [4, 7, 4, 11], 0),
            symbol("total", [5, 13, 5, 22], [5, 13, 5, 18], 0),
        ];
        (folder, symbols)
    }

    #[test]
    fn position_left_of_a_name_means_the_name() {
        let (_folder, symbols) = symbols();
        let lines = LineIndex::new(TEXT);
        let named = |line, character| {
            beside(&symbols, &lines, Position::new(line, character)).map(|one| one.name.as_str())
        };
        assert_eq!(named(0, 0), Some("A"));
        assert_eq!(named(2, 0), Some("filter"), "indentation");
        assert_eq!(named(2, 4), Some("filter"), "`def`");
        assert_eq!(named(1, 4), Some("filter"), "the decorator's sign");
        assert_eq!(named(1, 6), None, "a word of the decorator");
        assert_eq!(named(4, 6), None, "between two declarations");
        assert_eq!(named(5, 0), Some("total"), "a modifier outside the declaration's range");
        assert_eq!(named(0, 8), None, "right of the name");
        assert_eq!(named(3, 0), None, "the body");
    }

    #[test]
    fn name_is_found_in_the_declarations_text() {
        let text = "@pick\nexport function pick(a) {}\n// x\nint Größe::total(int a);";
        let lines = LineIndex::new(text);
        let found = |full, name| in_text(&lines, range(full), name);
        assert_eq!(found([0, 0, 1, 27], "pick"), Some(range([1, 16, 1, 20])));
        assert_eq!(found([3, 0, 3, 24], "Größe::total(int)"), Some(range([3, 11, 3, 16])));
        assert_eq!(found([0, 0, 1, 27], "nothing"), None);
        assert_eq!(found([0, 0, 1, 27], "<function>"), Some(range([1, 7, 1, 15])));
        assert_eq!(found([9, 0, 9, 5], "pick"), None);
    }
}
