//! Positions and ranges in a text, and exact conversion between byte offsets and UTF-8, UTF-16 and UTF-32 columns.
//!
//! Lines end in `\n`, `\r\n` or a lone `\r`, as LSP specifies. Line breaks have no columns; a byte order mark is
//! ordinary text. Conversions are exact or fail: a column past the line end, inside a surrogate pair or inside a UTF-8
//! sequence is an error. Language servers are less careful, so `_clamped` variants take the nearest valid position
//! before the given one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::deserialize_integer;

/// A zero-based line and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    #[serde(deserialize_with = "deserialize_integer")]
    pub line: u32,
    #[serde(deserialize_with = "deserialize_integer")]
    pub character: u32,
}

impl Position {
    #[must_use]
    pub const fn new(line: u32, character: u32) -> Self {
        Self { line, character }
    }
}

/// `line:character`, as in canonical strings.
impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.character)
    }
}

/// From `start` up to, not including, `end`. Ordered by start, then end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

impl Range {
    #[must_use]
    pub const fn new(start: Position, end: Position) -> Self {
        Self { start, end }
    }
}

/// The unit of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16")]
    Utf16,
    #[serde(rename = "utf-32")]
    Utf32,
}

impl Encoding {
    /// The LSP name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    const fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    fn width_of(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Utf32 => text.chars().count(),
        }
    }
}

/// Why a position or offset is invalid for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    #[error("line {line} is past the last line, {last}")]
    PastLastLine { line: u32, last: u32 },
    #[error("character {character} is past the end of the line, {length}")]
    PastLineEnd { character: u32, length: u32 },
    #[error("the position is inside a character")]
    InsideCharacter,
    #[error("the position is inside a line break")]
    InsideLineBreak,
    #[error("offset {offset} is past the end of the text, {length}")]
    PastTextEnd { offset: usize, length: usize },
}

/// A text and its line starts. Converting a column is free in an ASCII line and scans the line otherwise. Cheap to
/// clone.
///
/// Positions have 32 bits; in a text over 4 GiB they saturate.
#[derive(Clone, Debug)]
pub struct LineIndex {
    text: Arc<str>,
    starts: Arc<[usize]>,
    /// Lines with non-ASCII characters, ascending.
    wide: Arc<[usize]>,
}

impl LineIndex {
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        let mut wide: Vec<usize> = Vec::new();
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            } else if !byte.is_ascii() && wide.last() != Some(&(starts.len() - 1)) {
                wide.push(starts.len() - 1);
            }
        }
        Self { text, starts: starts.into(), wide: wide.into() }
    }

    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Number of lines; an empty text has one.
    #[must_use]
    pub fn line_count(&self) -> u32 {
        narrow(self.starts.len())
    }

    /// A line without its line break.
    #[must_use]
    pub fn line(&self, line: u32) -> Option<&str> {
        let (start, end) = self.bounds(line as usize)?;
        Some(&self.text[start..end])
    }

    /// The end of the text.
    #[must_use]
    pub fn end(&self, encoding: Encoding) -> Position {
        self.position_clamped(self.text.len(), encoding)
    }

    /// The byte offset of a position.
    ///
    /// # Errors
    /// If the position is past the end of the line or the text, or inside a character.
    pub fn offset(&self, position: Position, encoding: Encoding) -> Result<usize, PositionError> {
        let (start, end) = self.bounds(position.line as usize).ok_or_else(|| self.past_last(position))?;
        let column = self.column_in_bytes(position, encoding, start, end)?;
        Ok(start + column)
    }

    /// The position of a byte offset.
    ///
    /// # Errors
    /// If the offset is past the end of the text, inside a character, or between `\r` and `\n`.
    pub fn position(&self, offset: usize, encoding: Encoding) -> Result<Position, PositionError> {
        if offset > self.text.len() {
            return Err(PositionError::PastTextEnd { offset, length: self.text.len() });
        }
        if !self.text.is_char_boundary(offset) {
            return Err(PositionError::InsideCharacter);
        }
        let (line, start, end) = self.line_at(offset);
        if offset > end {
            return Err(PositionError::InsideLineBreak);
        }
        Ok(self.position_in(line, start, offset, encoding))
    }

    /// The same position with the column in another encoding.
    ///
    /// # Errors
    /// As [`LineIndex::offset`].
    pub fn convert(
        &self,
        position: Position,
        from: Encoding,
        to: Encoding,
    ) -> Result<Position, PositionError> {
        let line = position.line as usize;
        let (start, end) = self.bounds(line).ok_or_else(|| self.past_last(position))?;
        let column = self.column_in_bytes(position, from, start, end)?;
        Ok(self.position_in(line, start, start + column, to))
    }

    /// Converts both ends of a range.
    ///
    /// # Errors
    /// As [`LineIndex::offset`].
    pub fn convert_range(&self, range: Range, from: Encoding, to: Encoding) -> Result<Range, PositionError> {
        Ok(Range::new(self.convert(range.start, from, to)?, self.convert(range.end, from, to)?))
    }

    /// The byte offset of a position, or of the nearest valid one before it.
    #[must_use]
    pub fn offset_clamped(&self, position: Position, encoding: Encoding) -> usize {
        let Some((start, end)) = self.bounds(position.line as usize) else {
            return self.text.len();
        };
        match self.column_in_bytes(position, encoding, start, end) {
            Ok(column) => start + column,
            Err(PositionError::InsideCharacter) => start + self.floor_column(position, encoding, start, end),
            Err(_) => end,
        }
    }

    /// The position of a byte offset, or of the nearest valid one before it.
    #[must_use]
    pub fn position_clamped(&self, offset: usize, encoding: Encoding) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let (line, start, end) = self.line_at(offset);
        self.position_in(line, start, offset.min(end), encoding)
    }

    /// The same position in another encoding, or the nearest valid one before it.
    #[must_use]
    pub fn convert_clamped(&self, position: Position, from: Encoding, to: Encoding) -> Position {
        self.position_clamped(self.offset_clamped(position, from), to)
    }

    /// Converts and clamps both ends of a range. Keeps their order.
    #[must_use]
    pub fn convert_range_clamped(&self, range: Range, from: Encoding, to: Encoding) -> Range {
        Range::new(self.convert_clamped(range.start, from, to), self.convert_clamped(range.end, from, to))
    }

    /// Start and end of a line's text, without the line break.
    fn bounds(&self, line: usize) -> Option<(usize, usize)> {
        let start = *self.starts.get(line)?;
        let Some(&next) = self.starts.get(line + 1) else {
            return Some((start, self.text.len()));
        };
        let crlf = next >= start + 2 && self.text.as_bytes()[next - 2..next] == *b"\r\n";
        Some((start, next - if crlf { 2 } else { 1 }))
    }

    /// The line that holds an offset, with its bounds.
    fn line_at(&self, offset: usize) -> (usize, usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let (start, end) = self.bounds(line).expect("the search yields an existing line");
        (line, start, end)
    }

    fn is_ascii(&self, line: usize) -> bool {
        self.wide.is_empty() || self.wide.binary_search(&line).is_err()
    }

    fn position_in(&self, line: usize, start: usize, offset: usize, encoding: Encoding) -> Position {
        let character =
            if self.is_ascii(line) { offset - start } else { encoding.width_of(&self.text[start..offset]) };
        Position::new(narrow(line), narrow(character))
    }

    fn column_in_bytes(
        &self,
        position: Position,
        encoding: Encoding,
        start: usize,
        end: usize,
    ) -> Result<usize, PositionError> {
        let wanted = position.character as usize;
        let past =
            |length| PositionError::PastLineEnd { character: position.character, length: narrow(length) };
        if encoding == Encoding::Utf8 || self.is_ascii(position.line as usize) {
            return match end - start {
                length if wanted > length => Err(past(length)),
                _ if !self.text.is_char_boundary(start + wanted) => Err(PositionError::InsideCharacter),
                _ => Ok(wanted),
            };
        }
        let mut units = 0;
        for (at, character) in self.text[start..end].char_indices() {
            match units {
                units if units == wanted => return Ok(at),
                units if units > wanted => return Err(PositionError::InsideCharacter),
                _ => units += encoding.width(character),
            }
        }
        match units {
            units if units == wanted => Ok(end - start),
            units if units > wanted => Err(PositionError::InsideCharacter),
            units => Err(past(units)),
        }
    }

    /// The start of the character that a column points into.
    fn floor_column(&self, position: Position, encoding: Encoding, start: usize, end: usize) -> usize {
        let wanted = position.character as usize;
        let mut units = 0;
        for (at, character) in self.text[start..end].char_indices() {
            units += encoding.width(character);
            if units > wanted {
                return at;
            }
        }
        end - start
    }

    fn past_last(&self, position: Position) -> PositionError {
        PositionError::PastLastLine { line: position.line, last: self.line_count() - 1 }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use Encoding::{Utf8, Utf16, Utf32};

    use super::*;

    const ALL: [Encoding; 3] = [Utf8, Utf16, Utf32];

    fn at(line: u32, character: u32) -> Position {
        Position::new(line, character)
    }

    #[test]
    fn every_line_break_ends_a_line_and_has_no_column() {
        let index = LineIndex::new("ab\ncd\r\nef\rgh\r\r\n\n");
        let lines: Vec<_> = (0..index.line_count()).map(|line| index.line(line).unwrap()).collect();
        assert_eq!(lines, ["ab", "cd", "ef", "gh", "", "", ""]);
        assert_eq!(index.line(7), None);
        assert_eq!(index.offset(at(1, 2), Utf16), Ok(5));
        assert_eq!(
            index.offset(at(1, 3), Utf16),
            Err(PositionError::PastLineEnd { character: 3, length: 2 })
        );
        assert_eq!(index.position(5, Utf16), Ok(at(1, 2)));
        assert_eq!(index.position(6, Utf16), Err(PositionError::InsideLineBreak));
        assert_eq!(index.position_clamped(6, Utf16), at(1, 2));
        assert_eq!(index.position(7, Utf16), Ok(at(2, 0)));
        assert_eq!(index.end(Utf16), at(6, 0));
    }

    #[test]
    fn empty_text_has_one_empty_line() {
        let index = LineIndex::new("");
        for encoding in ALL {
            assert_eq!(index.line_count(), 1);
            assert_eq!(index.offset(at(0, 0), encoding), Ok(0));
            assert_eq!(index.position(0, encoding), Ok(at(0, 0)));
            assert_eq!(
                index.offset(at(0, 1), encoding),
                Err(PositionError::PastLineEnd { character: 1, length: 0 })
            );
            assert_eq!(
                index.offset(at(1, 0), encoding),
                Err(PositionError::PastLastLine { line: 1, last: 0 })
            );
            assert_eq!(index.position(1, encoding), Err(PositionError::PastTextEnd { offset: 1, length: 0 }));
            assert_eq!(index.offset_clamped(at(9, 9), encoding), 0);
        }
    }

    #[test]
    fn columns_differ_by_encoding() {
        // a, é (2 bytes), 😀 (4 bytes, 2 units), e + combining acute (3 bytes), b
        let index = LineIndex::new("x\naé😀e\u{301}b\ny");
        let b = index.text().find('b').unwrap();
        assert_eq!(index.position(b, Utf8), Ok(at(1, 10)));
        assert_eq!(index.position(b, Utf16), Ok(at(1, 6)));
        assert_eq!(index.position(b, Utf32), Ok(at(1, 5)));
        assert_eq!(index.convert(at(1, 6), Utf16, Utf8), Ok(at(1, 10)));
        assert_eq!(index.convert(at(1, 10), Utf8, Utf32), Ok(at(1, 5)));
        assert_eq!(index.convert(at(1, 6), Utf32, Utf16), Ok(at(1, 7)));
    }

    #[test]
    fn position_inside_a_character_is_rejected() {
        let index = LineIndex::new("a😀b");
        assert_eq!(index.offset(at(0, 2), Utf16), Err(PositionError::InsideCharacter));
        for inside in 2..=4 {
            assert_eq!(index.offset(at(0, inside), Utf8), Err(PositionError::InsideCharacter));
            assert_eq!(index.position(inside as usize, Utf8), Err(PositionError::InsideCharacter));
            assert_eq!(index.offset_clamped(at(0, inside), Utf8), 1);
        }
        assert_eq!(index.offset_clamped(at(0, 2), Utf16), 1);
        let last = LineIndex::new("😀");
        assert_eq!(last.offset(at(0, 1), Utf16), Err(PositionError::InsideCharacter));
        assert_eq!(last.offset(at(0, 3), Utf16), Err(PositionError::PastLineEnd { character: 3, length: 2 }));
    }

    #[test]
    fn byte_order_mark_counts_as_text() {
        let index = LineIndex::new("\u{feff}a");
        assert_eq!(index.offset(at(0, 1), Utf16), Ok(3));
        assert_eq!(index.position(3, Utf8), Ok(at(0, 3)));
    }

    #[test]
    fn clamping_takes_the_nearest_earlier_position() {
        let index = LineIndex::new("ab\r\né😀");
        assert_eq!(index.convert_clamped(at(0, 99), Utf16, Utf8), at(0, 2));
        assert_eq!(index.convert_clamped(at(1, 2), Utf16, Utf8), at(1, 2));
        assert_eq!(index.convert_clamped(at(1, 99), Utf16, Utf8), at(1, 6));
        assert_eq!(index.convert_clamped(at(u32::MAX, u32::MAX), Utf16, Utf32), at(1, 2));
        assert_eq!(index.position_clamped(usize::MAX, Utf16), at(1, 3));
    }

    #[test]
    fn ranges_order_by_start_then_end() {
        let mut ranges = [
            Range::new(at(2, 0), at(2, 1)),
            Range::new(at(1, 5), at(9, 0)),
            Range::new(at(1, 5), at(2, 0)),
            Range::new(at(1, 10), at(1, 11)),
        ];
        ranges.sort();
        let starts = ranges.map(|range| format!("{}-{}", range.start, range.end));
        assert_eq!(starts, ["1:5-2:0", "1:5-9:0", "1:10-1:11", "2:0-2:1"]);
    }

    #[test]
    fn json_round_trips_and_invalid_positions_are_rejected() {
        let range = Range::new(at(1, 0), at(1, 10));
        let text = r#"{"start":{"line":1,"character":0},"end":{"line":1,"character":10}}"#;
        assert_eq!(serde_json::to_string(&range).unwrap(), text);
        assert_eq!(serde_json::from_str::<Range>(text).unwrap(), range);
        assert_eq!(serde_json::from_str::<Position>(r#"{"line":1.0,"character":2}"#).unwrap(), at(1, 2));
        for bad in [
            r#"{"line":-1,"character":0}"#,
            r#"{"line":1.5,"character":0}"#,
            r#"{"line":4294967296,"character":0}"#,
            r#"{"line":"1","character":0}"#,
            r#"{"line":1}"#,
            r#"{"line":1,"character":0,"column":0}"#,
        ] {
            assert!(serde_json::from_str::<Position>(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_string(&ALL).unwrap(), r#"["utf-8","utf-16","utf-32"]"#);
        assert_eq!(Utf16.as_str(), "utf-16");
    }
}
