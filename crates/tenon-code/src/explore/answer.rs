//! The text of an answer within a number of bytes: the finest view that fits, then the notes.
//!
//! Views are given from the finest to the coarsest. A finer view that does not fit whole is replaced by the next coarser one, so
//! that an answer never ends in the middle of what it shows first. Only the coarsest view is cut, at the end of a line, and says
//! how many items are left and how to see them.

use std::fmt::Write as _;

/// The bytes of an answer, unless the caller chooses.
pub const DEFAULT_BYTES: usize = 8_000;
/// The most bytes that a caller can choose.
pub const MAX_BYTES: usize = 64_000;
/// The fewest bytes: below this, not even the notes fit.
pub const MIN_BYTES: usize = 500;

/// A line of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// The place by which a cursor names the line; `None` for headings.
    pub(super) place: Option<String>,
}

impl Line {
    pub(super) fn heading(text: impl Into<String>) -> Self {
        Self { text: text.into(), place: None }
    }

    pub(super) fn item(text: impl Into<String>, place: impl Into<String>) -> Self {
        Self { text: text.into(), place: Some(place.into()) }
    }
}

/// One way to show an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) lines: Vec<Line>,
    /// Said after the lines: what this view leaves out, and how to see it.
    pub(super) hint: Option<String>,
}

impl View {
    pub(super) fn new(lines: Vec<Line>) -> Self {
        Self { lines, hint: None }
    }

    /// A view that is one text.
    pub(super) fn of_text(text: &str) -> Self {
        Self::new(text.lines().map(Line::heading).collect())
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.text.len() + 1).sum();
        lines + self.hint.as_ref().map_or(0, |hint| hint.len() + 1)
    }
}

/// How a list that is cut continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// With a cursor: the place of the last line shown.
    Cursor,
    /// By another question.
    Narrow(&'static str),
}

/// An answer before it is fitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// From the finest to the coarsest.
    pub(super) views: Vec<View>,
    pub(super) notes: Vec<String>,
    pub(super) continuation: Continuation,
}

impl Answer {
    pub(super) fn new(views: Vec<View>) -> Self {
        Self { views, notes: Vec::new(), continuation: Continuation::Narrow("max_bytes") }
    }

    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    pub(super) fn continued_by(mut self, continuation: Continuation) -> Self {
        self.continuation = continuation;
        self
    }

    /// The text, with at most `max_bytes` and without a line break at the end.
    pub(super) fn fit(&self, max_bytes: usize) -> String {
        let notes = self.notes_text(max_bytes / 2);
        let room = max_bytes - notes.len();
        // The last line has no break; notes begin with one.
        let whole = self.views.iter().find(|view| view.bytes() <= room + 1);
        let mut text = match (whole, self.views.last()) {
            (Some(view), _) => joined(&view.lines, view.hint.as_deref()),
            (None, Some(coarsest)) => self.cut(coarsest, room),
            (None, None) => String::new(),
        };
        if text.is_empty() {
            text.push_str(notes.trim_start_matches('\n'));
        } else {
            text.push_str(&notes);
        }
        text
    }

    /// The notes, each in a line that begins with a break; the last ones are counted if they do not fit.
    fn notes_text(&self, room: usize) -> String {
        let mut text = String::new();
        for (index, note) in self.notes.iter().enumerate() {
            let line = format!("\nnote: {note}");
            let more = format!("\nnote: {} more notes", self.notes.len() - index);
            if text.len() + line.len() + more.len() > room {
                text.push_str(&more);
                break;
            }
            text.push_str(&line);
        }
        text
    }

    fn cut(&self, view: &View, room: usize) -> String {
        let items = view.lines.iter().filter(|line| line.place.is_some()).count();
        let longest = view.lines.iter().filter_map(|line| line.place.as_ref()).map(String::len).max();
        // Room for the line that says how to go on, with the longest place and numbers.
        let reserve = 90 + longest.unwrap_or(0);
        let mut shown = 0;
        let mut bytes = 0;
        for line in &view.lines {
            bytes += line.text.len() + 1;
            if bytes + reserve > room {
                break;
            }
            shown += 1;
        }
        // A heading says nothing without its items.
        while shown > 0 && items > 0 && view.lines[shown - 1].place.is_none() {
            shown -= 1;
        }
        let listed = view.lines[..shown].iter().filter(|line| line.place.is_some()).count();
        let last = view.lines[..shown].iter().rev().find_map(|line| line.place.as_deref());
        let left = if items > 0 { items - listed } else { view.lines.len() - shown };
        let what = if items > 0 { "items" } else { "lines" };
        let more = match (self.continuation, last) {
            (Continuation::Cursor, Some(last)) => format!("more: {left} {what}; cursor \"{last}\""),
            (Continuation::Cursor, None) => format!("more: {left} {what}; use a larger max_bytes"),
            (Continuation::Narrow(argument), _) => format!("more: {left} {what}; use {argument}"),
        };
        joined(&view.lines[..shown], Some(&more))
    }
}

fn joined(lines: &[Line], last: Option<&str>) -> String {
    let mut text = String::new();
    for line in lines.iter().map(|line| line.text.as_str()).chain(last) {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = write!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize) -> View {
        let item =
            |number: usize| Line::item(format!("  {number} some line of code"), format!("a.py:{number}"));
        View::new(std::iter::once(Line::heading("a.py")).chain((1..=count).map(item)).collect())
    }

    #[test]
    fn finest_view_that_fits_whole_is_shown() {
        let coarse = View::of_text("a.py 100").with_hint("lines: cursor \"a.py:0\"");
        let answer = Answer::new(vec![list(100), coarse]).continued_by(Continuation::Cursor);
        assert!(answer.fit(8_000).contains("  100 some"));
        assert_eq!(answer.fit(600), "a.py 100\nlines: cursor \"a.py:0\"");
    }

    #[test]
    fn coarsest_view_is_cut_at_a_line_and_counts_the_rest() {
        let answer = Answer::new(vec![list(100)])
            .continued_by(Continuation::Cursor)
            .with_notes(vec!["pyright is still loading".to_owned()]);
        let text = answer.fit(500);
        assert!(text.len() <= 500, "{}", text.len());
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.iter().filter(|line| line.contains("some line")).count();
        let last = format!("more: {} items; cursor \"a.py:{shown}\"", 100 - shown);
        assert_eq!(lines[lines.len() - 2..], [last.as_str(), "note: pyright is still loading"]);
    }

    #[test]
    fn limit_holds_to_the_byte_for_every_size() {
        let views = vec![list(60), View::of_text(&"x".repeat(700)), list(40)];
        let notes = (0..9).map(|number| format!("note number {number}")).collect();
        let answer = Answer::new(views).with_notes(notes).continued_by(Continuation::Cursor);
        for max_bytes in MIN_BYTES..3_000 {
            assert!(answer.fit(max_bytes).len() <= max_bytes, "{max_bytes}");
        }
    }

    #[test]
    fn heading_without_items_is_not_left_at_the_end() {
        let mut view = list(3);
        view.lines.push(Line::heading("b.py"));
        view.lines.extend((1..=90).map(|number| Line::item("x".repeat(30), format!("b.py:{number}"))));
        let answer = Answer::new(vec![view]).continued_by(Continuation::Cursor);
        for max_bytes in MIN_BYTES..800 {
            let text = answer.fit(max_bytes);
            let before_last = text.lines().rev().nth(1).unwrap();
            assert!(!before_last.ends_with(".py"), "{text}");
        }
    }
}
