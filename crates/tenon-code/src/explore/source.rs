//! Lines of source and of outlines.

use tenon_contract::position::LineIndex;
use tenon_index::{SourceRange, SymbolRef};
use tenon_lsp::diagnostic_line::one_line;

/// Longer lines of code are cut in lists, in code points.
pub(super) const MAX_CODE: usize = 160;

/// The lines of a declaration, exactly as they are in the file.
pub(super) fn lines_of(lines: &LineIndex, range: SourceRange) -> Vec<String> {
    let line =
        |number: u32| lines.line(number - 1).map(|line| line.trim_end_matches(['\r', '\n']).to_owned());
    (range.first_line..=range.last_line).map_while(line).collect()
}

/// One line of code for a list: without indentation, cut if it is long.
pub(super) fn code_line(lines: &LineIndex, line: u32) -> String {
    one_line(lines.line(line).unwrap_or_default().trim(), MAX_CODE)
}

/// `1475 def filter(self, *args, **kwargs)`, indented.
pub(super) fn outline_line(symbol: SymbolRef<'_>, depth: usize) -> String {
    let line = symbol.range().first_line;
    let shown = match symbol.signature() {
        "" => format!("{} {}", symbol.kind(), symbol.name()),
        signature => signature.to_owned(),
    };
    format!("{:indent$}{line} {shown}", "", indent = 2 * depth)
}
