//! Macros that a grammar cannot read: `class MY_EXPORT Type {`, `int count GUARDED_BY(lock);`.
//!
//! A parser without a preprocessor takes them for names. They are replaced by spaces for the parser alone, so that offsets,
//! signatures and words stay those of the file.

use std::borrow::Cow;
use std::ops::Range;

use regex::RegexSet;

use crate::language::LanguageRules;

/// A text without macros.
pub(crate) struct ParsedText<'t> {
    /// Of the same length as the text.
    pub text: Cow<'t, str>,
    /// What was replaced, sorted.
    macros: Vec<Range<usize>>,
}

impl ParsedText<'_> {
    /// Where a declaration starts, with the macros directly before it.
    pub(crate) fn start(&self, original: &str, start: usize) -> usize {
        let before = self.macros.partition_point(|range| range.end <= start);
        match before.checked_sub(1).map(|last| &self.macros[last]) {
            Some(range) if original[range.end..start].trim().is_empty() => range.start,
            _ => start,
        }
    }
}

/// The text for the parser.
pub(crate) fn without_macros<'t>(text: &'t str, rules: &LanguageRules) -> ParsedText<'t> {
    let unchanged = ParsedText { text: Cow::Borrowed(text), macros: Vec::new() };
    let mut ranges: Vec<Range<usize>> = rules
        .macro_words
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text))
        .filter_map(|found| found.get(1).map(|word| word.range()))
        .filter(|range| !is_directive(text, range.start))
        .collect();
    if ranges.is_empty() {
        return unchanged;
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut bytes = text.as_bytes().to_vec();
    for range in &ranges {
        for byte in &mut bytes[range.clone()] {
            // Lines stay lines.
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }
    // A match ends at the end of a character, so the rest is as valid as before.
    String::from_utf8(bytes).map_or(unchanged, |text| ParsedText { text: Cow::Owned(text), macros: ranges })
}

/// Whether the line is for the preprocessor: it declares macros.
fn is_directive(text: &str, byte: usize) -> bool {
    let start = text[..byte].rfind('\n').map_or(0, |at| at + 1);
    text[start..].trim_start().starts_with('#')
}

/// Patterns with the macro as their first group.
pub(crate) fn patterns(list: &[String]) -> Result<Vec<regex::Regex>, String> {
    // All errors at once, before each is compiled by itself.
    RegexSet::new(list).map_err(|error| error.to_string())?;
    let pattern = |one: &String| match regex::Regex::new(one) {
        Ok(pattern) if pattern.captures_len() == 2 => Ok(pattern),
        Ok(_) => Err(format!("`{one}` must have one group: the macro")),
        Err(error) => Err(error.to_string()),
    };
    list.iter().map(pattern).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceLanguage;

    fn shown(text: &str) -> String {
        let rules = SourceLanguage::parse("cpp").expect("a known language").rules();
        let parsed = without_macros(text, rules).text;
        assert_eq!(parsed.len(), text.len());
        parsed.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn macros_between_keyword_and_name_are_left_out() {
        assert_eq!(shown("class MY_EXPORT Type {"), "class Type {");
        assert_eq!(shown("struct MY_API(1) Type final : Base {"), "struct Type final : Base {");
        assert_eq!(shown("MY_EXPORT extern const int* run(int a);"), "extern const int* run(int a);");
        assert_eq!(shown("int count GUARDED_BY(lock_[1]);"), "int count ;");
        assert_eq!(shown("void Run()\n    EXCLUSIVE_LOCKS_REQUIRED(a, b(c)) {"), "void Run() {");
    }

    #[test]
    fn names_that_only_look_like_macros_stay() {
        for text in ["struct STAT buffer;", "class FOO {", "struct FOO bar = {};", "int GET_COUNT(void);"] {
            assert_eq!(shown(text), text);
        }
        let text = "#define GUARDED_BY(x) __attribute__((guarded_by(x)))";
        assert_eq!(shown(text), text);
    }
}
