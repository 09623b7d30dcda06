//! Budgets: a limit on the UTF-8 bytes of an answer.
//!
//! A budget is spent from front to back. Once an item does not fit, all later items are rejected too, so the delivered
//! items are always a prefix of the full result. [`Budget::truncated`] reports whether items were left out.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// A limit on delivered bytes, and how many are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: usize,
    used: usize,
    truncated: bool,
}

impl Budget {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, used: 0, truncated: false }
    }

    /// Takes the longest prefix of the text that fits, cut at a character boundary.
    pub fn take<'text>(&mut self, text: &'text str) -> &'text str {
        let delivered = cut_bytes(text, self.remaining());
        self.used += delivered.len();
        self.truncated |= delivered.len() < text.len();
        delivered
    }

    /// Takes a whole item or nothing. Returns whether it fit.
    #[must_use]
    pub fn try_take(&mut self, bytes: usize) -> bool {
        let fits = !self.truncated && bytes <= self.remaining();
        if fits {
            self.used += bytes;
        } else {
            self.truncated = true;
        }
        fits
    }

    /// Bytes that may still be delivered; zero once an item did not fit.
    #[must_use]
    pub fn remaining(&self) -> usize {
        if self.truncated { 0 } else { self.limit - self.used }
    }

    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }

    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether anything was left out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}

/// The longest prefix of at most `bytes` bytes that does not end inside a character.
#[must_use]
pub fn cut_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The first `characters` code points.
#[must_use]
pub fn cut_characters(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// Length in bytes of a value's JSON, counted without building it.
///
/// # Errors
/// If the value has no JSON form.
pub fn serialized_len<T: Serialize + ?Sized>(value: &T) -> Result<usize, serde_json::Error> {
    let mut counter = ByteCounter::default();
    serde_json::to_writer(&mut counter, value)?;
    Ok(counter.bytes)
}

/// The same for a JSON value, several times faster.
#[must_use]
pub fn value_len(value: &Value) -> usize {
    // Of a list or map: its brackets, and a comma after each item but the last.
    let around = |items: usize| 2 + items.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => match number.as_u64() {
            Some(number) => number.checked_ilog10().unwrap_or(0) as usize + 1,
            None => serialized_len(number).expect("numbers serialise"),
        },
        Value::String(text) => text_len(text),
        Value::Array(items) => around(items.len()) + items.iter().map(value_len).sum::<usize>(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| text_len(key) + 1 + value_len(value);
            around(fields.len()) + fields.iter().map(field).sum::<usize>()
        }
    }
}

fn text_len(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(more).sum::<usize>()
}

/// A writer that only counts bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteCounter {
    bytes: usize,
}

impl ByteCounter {
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_boundary_and_later_text_rejected() {
        let mut budget = Budget::new(6);
        assert_eq!(budget.take("ab"), "ab");
        assert!(!budget.truncated());
        assert_eq!(budget.take("é😀"), "é");
        assert_eq!((budget.used(), budget.limit(), budget.truncated()), (4, 6, true));
        assert_eq!(budget.take("x"), "");
        assert_eq!((budget.used(), budget.remaining()), (4, 0));
    }

    #[test]
    fn exact_fit_is_not_truncated() {
        let mut budget = Budget::new(4);
        assert_eq!(budget.take("😀"), "😀");
        assert_eq!(budget.take(""), "");
        assert!(!budget.truncated());
        assert_eq!(budget.take("a"), "");
        assert!(budget.truncated());
    }

    #[test]
    fn item_over_budget_rejects_all_later_items() {
        let mut budget = Budget::new(10);
        assert!(budget.try_take(4));
        assert!(!budget.try_take(7));
        assert!(!budget.try_take(1));
        assert_eq!((budget.used(), budget.truncated()), (4, true));
    }

    #[test]
    fn cuts_end_at_character_boundaries() {
        assert_eq!(cut_bytes("aé", 2), "a");
        assert_eq!(cut_bytes("aé", 99), "aé");
        assert_eq!(cut_characters("aé😀b", 3), "aé😀");
        assert_eq!(cut_characters("aé", 9), "aé");
        assert_eq!(cut_characters("aé", 0), "");
    }

    #[test]
    fn serialized_len_equals_the_length_of_built_json() {
        let value = serde_json::json!({"a": [1, 2.5, "é\n"], "b": null});
        assert_eq!(serialized_len(&value).unwrap(), value.to_string().len());
        assert!(serialized_len(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err());
    }
}
