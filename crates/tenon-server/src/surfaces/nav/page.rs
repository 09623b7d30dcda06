//! Pages of a result list: bounded by items and bytes, with a note on what is left out.

use serde_json::Value;
use tenon_contract::budget::value_len;

/// The most items of a page.
const MAX_ITEMS: usize = 100;

/// The most bytes of a page, structured result and text together.
const MAX_BYTES: usize = 64 * 1024;

/// A part of a list.
pub(super) struct Page {
    pub(super) values: Vec<Value>,
    pub(super) lines: Vec<String>,
    /// What the page leaves out, and how to get it.
    pub(super) note: Option<String>,
}

impl Page {
    /// The page that starts at `offset`, built from as few items as possible.
    pub(super) fn of<T>(items: &[T], offset: usize, show: impl Fn(&T) -> (Value, String)) -> Self {
        let (mut values, mut lines, mut bytes) = (Vec::new(), Vec::new(), 0);
        for item in items.iter().skip(offset).take(MAX_ITEMS) {
            let (value, line) = show(item);
            bytes += value_len(&value) + line.len();
            // One item always fits: the surface's own limit is larger than any item.
            if bytes > MAX_BYTES && !values.is_empty() {
                break;
            }
            values.push(value);
            lines.push(line);
        }
        let note = note(offset, values.len(), items.len());
        Self { values, lines, note }
    }
}

fn note(offset: usize, shown: usize, total: usize) -> Option<String> {
    let end = offset + shown;
    match (offset, shown) {
        (0, _) if shown == total => None,
        (_, 0) => Some(format!("`offset` {offset} is past the last of {total}")),
        _ if end == total => Some(format!("{} to {end} of {total}", offset + 1)),
        _ => Some(format!("{} to {end} of {total}; continue with `offset` {end}", offset + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(total: usize, length: usize, offset: usize) -> Page {
        let items: Vec<usize> = (0..total).collect();
        Page::of(&items, offset, |item| (Value::from("x".repeat(length)), item.to_string()))
    }

    #[test]
    fn pages_cover_the_list_once() {
        for (total, length) in [(0, 1), (1, 1), (100, 1), (101, 1), (250, 1), (50, 20_000), (2, 100_000)] {
            let (mut seen, mut offset) = (Vec::new(), 0);
            loop {
                let page = page(total, length, offset);
                assert!(page.values.len() <= MAX_ITEMS);
                seen.extend(page.lines);
                match page.note {
                    Some(note) if note.contains("continue") => offset = seen.len(),
                    _ => break,
                }
            }
            assert_eq!(seen, (0..total).map(|item| item.to_string()).collect::<Vec<_>>(), "{total} {length}");
        }
    }

    #[test]
    fn note_says_the_total_and_how_to_continue() {
        assert_eq!(page(100, 1, 0).note, None);
        assert_eq!(page(101, 1, 0).note.unwrap(), "1 to 100 of 101; continue with `offset` 100");
        assert_eq!(page(101, 1, 100).note.unwrap(), "101 to 101 of 101");
        assert_eq!(page(101, 1, 101).note.unwrap(), "`offset` 101 is past the last of 101");
        assert_eq!(page(0, 1, 7).note.unwrap(), "`offset` 7 is past the last of 0");
    }
}
