//! Replaces a part or all of a file's text and preserves the byte order mark and line endings.
//!
//! Texts are matched with all line endings as `\n`, so that text quoted by a model matches a file with other line endings. The
//! new text gets the line endings of the text it replaces.

use super::EditError;

const MARK: char = '\u{feff}';

/// A text without its byte order mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    marked: bool,
    body: String,
}

/// A range of lines, counted from 1, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    pub first: u32,
    pub last: u32,
}

/// A new text, with the replaced lines of the old text and the new lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) text: Text,
    pub(super) old: Lines,
    pub(super) new: Lines,
}

impl Text {
    /// From the bytes of a file.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, EditError> {
        let text = String::from_utf8(bytes).map_err(|_| EditError::NotText)?;
        if text.contains('\0') {
            return Err(EditError::NotText);
        }
        Ok(Self::new(text))
    }

    /// From a requested text.
    pub(super) fn new(text: String) -> Self {
        match text.strip_prefix(MARK) {
            Some(body) => Self { marked: true, body: body.to_owned() },
            None => Self { marked: false, body: text },
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.body.len() + MARK.len_utf8());
        if self.marked {
            bytes.extend_from_slice(MARK.encode_utf8(&mut [0; 4]).as_bytes());
        }
        bytes.extend_from_slice(self.body.as_bytes());
        bytes
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    /// Another text with the same byte order mark, or without one as this.
    pub(super) fn with_body(&self, body: String) -> Self {
        Self { marked: self.marked, body }
    }

    /// The text without its byte order mark, as language servers count positions.
    pub(super) fn into_body(self) -> String {
        self.body
    }

    /// Replaces `old`, which must occur once, by `new`.
    pub(super) fn replace(&self, old: &str, new: &str) -> Result<Rewritten, EditError> {
        let (old, new) = match (self.marked, old.strip_prefix(MARK)) {
            (true, Some(rest)) => (rest, new.strip_prefix(MARK).unwrap_or(new)),
            _ => (old, new),
        };
        let (plain, old) = (unbroken(&self.body), unbroken(old));
        let at = only_match(&plain, &old)?;
        let from = self.in_body(at);
        let to = self.in_body(at + old.len());
        let (before, replaced, after) = (&self.body[..from], &self.body[from..to], &self.body[to..]);
        let ending = Ending::of(replaced).or_else(|| Ending::of(&self.body));
        let new = ending.map_or_else(|| new.to_owned(), |ending| ending.put(new));
        let first = line_of(&plain, at);
        let (old_last, new_last) = (last_line(first, &old), last_line(first, &unbroken(&new)));
        let body = [before, &new, after].concat();
        Ok(Rewritten {
            text: Self { marked: self.marked, body },
            old: Lines { first, last: old_last },
            new: Lines { first, last: new_last },
        })
    }

    /// Replaces the whole text.
    pub(super) fn overwrite(&self, text: &str) -> Rewritten {
        let text = Self::new(text.to_owned());
        let body = match Ending::only(&self.body) {
            Some(ending) => ending.put(&text.body),
            None => text.body,
        };
        let (old, new) = (all_lines(&self.body), all_lines(&body));
        Rewritten { text: Self { marked: self.marked || text.marked, body }, old, new }
    }

    /// Converts an offset in the text with `\n` line endings to an offset in the body.
    fn in_body(&self, at: usize) -> usize {
        let pairs = self.body.match_indices("\r\n").enumerate();
        at + pairs.take_while(|(index, (place, _))| place - index < at).count()
    }
}

/// The lines of a whole text.
pub(super) fn all_lines(text: &str) -> Lines {
    Lines { first: 1, last: last_line(1, &unbroken(text)) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Unix,
    Dos,
}

impl Ending {
    /// The most frequent line ending, if there is any.
    fn of(text: &str) -> Option<Self> {
        let all = text.matches('\n').count();
        let dos = text.matches("\r\n").count();
        (all > 0).then_some(if 2 * dos > all { Self::Dos } else { Self::Unix })
    }

    /// The line ending of all lines, if they are equal.
    fn only(text: &str) -> Option<Self> {
        match (text.matches('\n').count(), text.matches("\r\n").count()) {
            (0, _) => None,
            (_, 0) => Some(Self::Unix),
            (all, dos) => (all == dos).then_some(Self::Dos),
        }
    }

    fn put(self, text: &str) -> String {
        let plain = unbroken(text);
        match self {
            Self::Unix => plain,
            Self::Dos => plain.replace('\n', "\r\n"),
        }
    }
}

/// A text with all line endings as `\n`.
fn unbroken(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The most lines that an error lists.
const NAMED: usize = 10;

/// The offset of the only match of `old`.
fn only_match(text: &str, old: &str) -> Result<usize, EditError> {
    if old.is_empty() {
        return if text.is_empty() { Ok(0) } else { Err(EditError::EmptyOldText) };
    }
    let first = text.find(old).ok_or(EditError::OldTextAbsent)?;
    // Matches may overlap; counting all overlapping ones would take too long for hostile texts.
    let step = old.chars().next().map_or(1, char::len_utf8);
    let Some(second) = text[first + step..].find(old).map(|at| first + step + at) else {
        return Ok(first);
    };
    let apart: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    let places = if apart.len() > 1 { apart } else { vec![first, second] };
    let lines = places.iter().take(NAMED).map(|at| line_of(text, *at)).collect();
    Err(EditError::OldTextAmbiguous { count: places.len(), lines })
}

fn line_of(text: &str, at: usize) -> u32 {
    count(text[..at].matches('\n').count()) + 1
}

/// The last line of a text that begins in line `first`. A line ending belongs to its line.
fn last_line(first: u32, text: &str) -> u32 {
    let body = text.strip_suffix('\n').unwrap_or(text);
    first + count(body.matches('\n').count())
}

fn count(lines: usize) -> u32 {
    u32::try_from(lines).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(text: &str, old: &str, new: &str) -> Result<(String, Lines, Lines), EditError> {
        let rewritten = Text::new(text.to_owned()).replace(old, new)?;
        let text = String::from_utf8(rewritten.text.to_bytes()).unwrap();
        Ok((text, rewritten.old, rewritten.new))
    }

    fn lines(first: u32, last: u32) -> Lines {
        Lines { first, last }
    }

    #[test]
    fn single_match_is_replaced() {
        let (text, old, new) = replaced("a\nb\nc\n", "b\n", "x\ny\n").unwrap();
        assert_eq!((text.as_str(), old, new), ("a\nx\ny\nc\n", lines(2, 2), lines(2, 3)));
        assert_eq!(replaced("a\nb", "\nb", "").unwrap(), ("a".to_owned(), lines(1, 2), lines(1, 1)));
        assert_eq!(replaced("", "", "new").unwrap().0, "new");
    }

    #[test]
    fn line_endings_are_preserved() {
        assert_eq!(replaced("a\r\nb\r\nc", "a\nb", "x\ny\nz").unwrap().0, "x\r\ny\r\nz\r\nc");
        assert_eq!(replaced("a\r\nb\r\nc", "\nb\n", "\nq\n").unwrap().0, "a\r\nq\r\nc");
        assert_eq!(replaced("a\nb\n", "a\r\nb", "c\r\nd").unwrap().0, "c\nd\n");
        assert_eq!(replaced("a\r\nb", "b", "c\nd").unwrap().0, "a\r\nc\r\nd");
        // In a mixed file, the replaced text decides.
        assert_eq!(replaced("a\nb\r\nc\nd\n", "b\nc", "b\nB\nc").unwrap().0, "a\nb\r\nB\r\nc\nd\n");
        assert_eq!(replaced("one line", "one", "two\r\n").unwrap().0, "two\r\n line");
        let over = |before: &str, text: &str| {
            let text = Text::new(before.to_owned()).overwrite(text).text;
            String::from_utf8(text.to_bytes()).unwrap()
        };
        assert_eq!(over("a\r\n", "b\nc\n"), "b\r\nc\r\n");
        assert_eq!(over("a\nb\r\n", "b\nc\r\n"), "b\nc\r\n");
        assert_eq!(over("", "b\r\n"), "b\r\n");
    }

    #[test]
    fn byte_order_mark_is_preserved() {
        assert_eq!(replaced("\u{feff}a b", "a", "c").unwrap().0, "\u{feff}c b");
        assert_eq!(replaced("\u{feff}a b", "\u{feff}a", "\u{feff}c").unwrap().0, "\u{feff}c b");
        let over = Text::new("\u{feff}a".to_owned()).overwrite("b").text;
        assert_eq!(over.to_bytes(), "\u{feff}b".as_bytes());
    }

    #[test]
    fn missing_or_repeated_old_text_is_rejected() {
        assert!(matches!(replaced("a", "b", ""), Err(EditError::OldTextAbsent)));
        assert!(matches!(replaced("a", "", "b"), Err(EditError::EmptyOldText)));
        let Err(EditError::OldTextAmbiguous { count, lines }) = replaced("x\nx\n\nx", "x", "y") else {
            panic!("three places");
        };
        assert_eq!((count, lines), (3, vec![1, 2, 4]));
        let overlapping = replaced("aXaXa", "aXa", "b");
        assert!(matches!(overlapping, Err(EditError::OldTextAmbiguous { count: 2, .. })), "{overlapping:?}");
        let many = replaced(&"a".repeat(400_000), &"a".repeat(100_000), "b");
        assert!(matches!(many, Err(EditError::OldTextAmbiguous { count: 4, .. })));
    }

    #[test]
    fn binary_files_are_rejected() {
        assert!(matches!(Text::read(vec![0xff, 0xfe, b'a', 0]), Err(EditError::NotText)));
        assert!(matches!(Text::read(b"\x7fELF\0".to_vec()), Err(EditError::NotText)));
        assert!(Text::read(Vec::new()).is_ok());
    }

    proptest! {
        /// The surrounding text stays unchanged, whatever the line endings.
        #[test]
        fn only_the_match_changes(before in "[a\r\n]{0,12}", old in "[bc\n]{0,6}b", after in "[a\r\n]{0,12}", dos: bool) {
            let shown = if dos { old.replace('\n', "\r\n") } else { old.clone() };
            // A lone `\r` before a `\n` would become a line ending.
            prop_assume!(!before.ends_with('\r'));
            let text = format!("{before}{shown}{after}");
            if let Ok((changed, ..)) = replaced(&text, &old, "NEW") {
                prop_assert_eq!(changed, format!("{before}NEW{after}"));
            }
        }
    }
}
