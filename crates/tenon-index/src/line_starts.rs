//! Lines and columns of byte offsets in a text.

use std::ops::Range;

use crate::{NamePosition, SourceRange};

/// Where the lines start. They end in `\n`, `\r\n` or a lone `\r`, as for language servers.
pub(crate) struct LineStarts {
    pub starts: Vec<u32>,
}

impl LineStarts {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
                starts.push(at as u32 + 1);
            }
        }
        Self { starts }
    }

    /// The number of lines; a line break at the end starts no other one.
    pub(crate) fn count(&self, text: &str) -> u32 {
        let last_is_empty = self.starts.last().is_some_and(|last| *last as usize == text.len());
        (self.starts.len() - usize::from(last_is_empty)) as u32
    }

    /// Counted from 0.
    pub(crate) fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= byte) - 1
    }

    /// Without white space at the end, which some grammars include.
    pub(crate) fn range(&self, text: &str, bytes: Range<usize>) -> SourceRange {
        let trimmed = text[bytes.clone()].trim_end().len().max(1).min(bytes.len());
        let end = bytes.start + trimmed;
        SourceRange {
            start: bytes.start as u32,
            end: end as u32,
            first_line: self.line(bytes.start) as u32 + 1,
            last_line: self.line(end.saturating_sub(1).max(bytes.start)) as u32 + 1,
        }
    }
}

/// Counts UTF-16 columns, from the last counted place where it is on the same line.
pub(crate) struct Columns<'a> {
    pub text: &'a str,
    pub lines: &'a LineStarts,
    /// Line, byte and column.
    pub last: (usize, usize, u32),
}

impl Columns<'_> {
    pub(crate) fn position(&mut self, bytes: Range<usize>) -> NamePosition {
        let line = self.lines.line(bytes.start);
        let (from, counted) = match self.last {
            (last_line, byte, column) if last_line == line && byte <= bytes.start => (byte, column),
            _ => (self.lines.starts[line] as usize, 0),
        };
        let column = counted + self.text[from..bytes.start].encode_utf16().count() as u32;
        self.last = (line, bytes.start, column);
        NamePosition { start: bytes.start as u32, end: bytes.end as u32, line: line as u32 + 1, column }
    }
}
