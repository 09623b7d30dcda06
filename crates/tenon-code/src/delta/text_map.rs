//! Maps positions of two texts to places that both share, by a line diff and the common ends of changed lines.

use tenon_contract::position::{LineIndex, Position, Range};

use super::line_diff::{Span, changed_lines};

/// One of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Where a position is, in a form that is equal for the same place in both texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    /// In a line that did not change, by its number in the text after.
    Kept { line: u32, character: u32 },
    /// In the unchanged start of a changed line.
    Head { hunk: usize, line: u32, character: u32 },
    /// In the unchanged end of a changed line, counted from the end.
    Tail { hunk: usize, line: u32, character: u32 },
    /// In text that the other side does not have.
    Replaced { hunk: usize },
}

impl Anchor {
    /// The changed lines that the position is in.
    pub(super) fn hunk(self) -> Option<usize> {
        match self {
            Self::Kept { .. } => None,
            Self::Head { hunk, .. } | Self::Tail { hunk, .. } | Self::Replaced { hunk } => Some(hunk),
        }
    }

    pub(super) fn is_replaced(self) -> bool {
        matches!(self, Self::Replaced { .. })
    }
}

/// The common start and end of a pair of lines, in UTF-16 units, and the lengths of both.
#[derive(Debug, Clone, Copy)]
struct LinePair {
    head: u32,
    tail: u32,
    before: u32,
    after: u32,
}

/// Lines that replaced others.
#[derive(Debug)]
struct Hunk {
    before: Span,
    after: Span,
    /// One pair for each line if both sides have equally many; else the first lines, whose heads count, and the last lines,
    /// whose tails count; none if one side has no lines.
    pairs: Vec<LinePair>,
}

/// The changes from one text to another. By default there are none.
#[derive(Debug, Default)]
pub struct TextMap {
    hunks: Vec<Hunk>,
}

impl TextMap {
    pub fn new(before: &str, after: &str) -> Self {
        if before == after {
            return Self::default();
        }
        // A diff is not unique. With a fixed direction, undoing a change mirrors it exactly.
        let swapped = before > after;
        let (one, two) = if swapped { (after, before) } else { (before, after) };
        let (one, two) = (LineIndex::new(one), LineIndex::new(two));
        let lines = |index: &LineIndex| 0..index.line_count();
        let first: Vec<&str> = lines(&one).filter_map(|line| one.line(line)).collect();
        let second: Vec<&str> = lines(&two).filter_map(|line| two.line(line)).collect();
        let hunks = changed_lines(&first, &second).into_iter();
        let hunks = hunks.map(|(first, second)| Hunk::new(first, second, &one, &two));
        let hunks = hunks.map(|hunk| if swapped { hunk.swap() } else { hunk });
        Self { hunks: hunks.collect() }
    }

    /// The first and the last changed line of the text after, counted from 0; `None` without changes. Where lines were only
    /// removed, the line that follows them.
    pub(crate) fn changed_lines(&self) -> Option<(u32, u32)> {
        let (first, last) = (self.hunks.first()?.after, self.hunks.last()?.after);
        Some((first.first, (last.first + last.count.max(1) - 1).max(first.first)))
    }

    /// Where a range begins and ends.
    pub(super) fn anchors(&self, side: Side, range: Range) -> (Anchor, Anchor) {
        (self.anchor(side, range.start, true), self.anchor(side, range.end, range.start == range.end))
    }

    /// Text inserted at a position is before the start of a range, and after its end.
    fn anchor(&self, side: Side, position: Position, is_start: bool) -> Anchor {
        let Position { line, character } = position;
        let next = self.hunks.partition_point(|hunk| hunk.span(side).first <= line);
        let Some((index, hunk)) = next.checked_sub(1).map(|index| (index, &self.hunks[index])) else {
            return Anchor::Kept { line, character };
        };
        let span = hunk.span(side);
        let within = line - span.first;
        if within < span.count {
            return hunk.anchor(index, side, within, character, is_start);
        }
        let line = match side {
            Side::Before => hunk.after.first + hunk.after.count + (within - span.count),
            Side::After => line,
        };
        Anchor::Kept { line, character }
    }

    /// Whether a line of the text after is new or changed.
    pub(crate) fn is_changed(&self, line: u32) -> bool {
        self.kept_line(Side::After, line).is_none()
    }

    /// The number in the text after of a line that did not change.
    pub(super) fn kept_line(&self, side: Side, line: u32) -> Option<u32> {
        match self.anchor(side, Position::new(line, 0), true) {
            Anchor::Kept { line, .. } => Some(line),
            _ => None,
        }
    }
}

impl Hunk {
    fn new(before: Span, after: Span, one: &LineIndex, two: &LineIndex) -> Self {
        let pair = |(first, second): (u32, u32)| {
            LinePair::new(one.line(first).unwrap_or_default(), two.line(second).unwrap_or_default())
        };
        let lines = |span: Span| span.first..span.first + span.count;
        let pairs = match (before.count, after.count) {
            (0, _) | (_, 0) => Vec::new(),
            (many, equal) if many == equal => lines(before).zip(lines(after)).map(pair).collect(),
            _ => {
                let first = pair((before.first, after.first));
                let last = pair((before.first + before.count - 1, after.first + after.count - 1));
                // The only line of one side is both the first and the last.
                let alone = before.count.min(after.count) == 1;
                let length = if before.count == 1 { last.before } else { last.after };
                let tail = if alone { last.tail.min(length.saturating_sub(first.head)) } else { last.tail };
                vec![first, LinePair { tail, ..last }]
            }
        };
        Self { before, after, pairs }
    }

    fn swap(self) -> Self {
        let pairs = self.pairs.into_iter();
        let pairs = pairs.map(|pair| LinePair { before: pair.after, after: pair.before, ..pair }).collect();
        Self { before: self.after, after: self.before, pairs }
    }

    fn span(&self, side: Side) -> Span {
        match side {
            Side::Before => self.before,
            Side::After => self.after,
        }
    }

    fn anchor(&self, hunk: usize, side: Side, line: u32, character: u32, is_start: bool) -> Anchor {
        let from_end = self.span(side).count - 1 - line;
        let (head_pair, tail_pair) = if self.before.count == self.after.count {
            let pair = self.pairs.get(line as usize);
            (pair, pair)
        } else {
            (self.pairs.first().filter(|_| line == 0), self.pairs.last().filter(|_| from_end == 0))
        };
        let head = head_pair.filter(|pair| character <= pair.head);
        let head = head.map(|_| Anchor::Head { hunk, line, character });
        let tail = tail_pair.and_then(|pair| {
            let distance = pair.length(side).saturating_sub(character);
            (distance <= pair.tail).then_some(Anchor::Tail { hunk, line: from_end, character: distance })
        });
        let found = if is_start { tail.or(head) } else { head.or(tail) };
        found.unwrap_or(Anchor::Replaced { hunk })
    }
}

impl LinePair {
    fn new(before: &str, after: &str) -> Self {
        let same = |(one, other): &(char, char)| one == other;
        let units = |(one, _): (char, char)| one.len_utf16();
        let length = |text: &str| narrow(text.chars().map(char::len_utf16).sum());
        let (long, other) = (length(before), length(after));
        let head = narrow(before.chars().zip(after.chars()).take_while(same).map(units).sum());
        let tail: usize = before.chars().rev().zip(after.chars().rev()).take_while(same).map(units).sum();
        let tail = narrow(tail).min(long - head).min(other - head);
        Self { head, tail, before: long, after: other }
    }

    fn length(&self, side: Side) -> u32 {
        match side {
            Side::Before => self.before,
            Side::After => self.after,
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
