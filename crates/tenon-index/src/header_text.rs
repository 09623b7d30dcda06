//! Short texts about a declaration: the signature on one line, and the first line of documentation.

use std::ops::Range;

pub(crate) const MAX_SIGNATURE: usize = 200;
pub(crate) const MAX_DOC: usize = 160;
/// A longer header is cut before it is folded.
pub(crate) const MAX_HEADER: usize = 2048;

/// The text without the ranges in `skipped` (sorted, in bytes of `text`), with all whitespace folded.
pub(crate) fn signature(text: &str, skipped: &[Range<usize>]) -> String {
    let end = text.len();
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for range in skipped.iter().take_while(|range| range.start < end) {
        words.extend(text.get(start..range.start).unwrap_or_default().split_whitespace());
        start = range.end.min(end).max(start);
    }
    words.extend(text.get(start..end).unwrap_or_default().split_whitespace());
    let mut folded = String::new();
    for word in words {
        // Brackets may have been on lines of their own.
        let tight = folded.ends_with(['(', '[']) || word.starts_with([')', ']', ',', ';']);
        if !folded.is_empty() && !tight {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    let trimmed =
        folded.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '{' | ';' | ',' | ':' | '='));
    // Ruby without a body.
    let trimmed = trimmed.strip_suffix("; end").unwrap_or(trimmed);
    // A list of arguments over several lines ends in a comma.
    cut(&trimmed.replace(",)", ")"), MAX_SIGNATURE)
}

/// At most `limit` bytes, with `…` if it was longer.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit - MARK.len());
    format!("{}{MARK}", &text[..end])
}

/// The first line with words of a comment or of a docstring.
pub(crate) fn doc_line(text: &str) -> String {
    let end = text.floor_char_boundary(4096.min(text.len()));
    let line = text[..end].lines().map(strip_marks).find(|line| line.contains(char::is_alphanumeric));
    cut(&line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "), MAX_DOC)
}

/// Without the signs of comments, docstrings and documentation tags.
fn strip_marks(line: &str) -> &str {
    let mut line = line.trim();
    for quotes in ["\"\"\"", "'''"] {
        // With prefixes such as `r`.
        if let Some((prefix, rest)) = line.split_once(quotes)
            && prefix.len() <= 2
            && prefix.chars().all(|c| c.is_ascii_alphabetic())
        {
            line = rest;
        }
        line = line.strip_suffix(quotes).unwrap_or(line);
    }
    line = line.trim_end_matches("*/").trim();
    line = line.trim_start_matches(['/', '*', '#', '!', '-', ';', ':']).trim_start();
    if line.starts_with(['"', '\'']) && line.len() > 1 {
        line = line.trim_matches(['"', '\'']);
    }
    for tag in ["<summary>", "</summary>", "<para>", "</para>", "<p>"] {
        line = line.strip_prefix(tag).unwrap_or(line);
        line = line.strip_suffix(tag).unwrap_or(line);
    }
    let line = line.trim();
    // Directives for tools are not documentation.
    let directive = [
        "eslint",
        "@ts-",
        "prettier-",
        "nolint",
        "noqa",
        "type: ignore",
        "go:build",
        "clang-format",
        "rubocop:",
    ];
    if directive.iter().any(|start| line.starts_with(start)) { "" } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_one_line_without_comments() {
        let comments = [15..22, 29..31];
        assert_eq!(signature("def f(\n    a,  # first\n    b,#b\n):", &comments), "def f(a, b)");
        assert_eq!(
            signature("fn f<T>(\n\ta: T,\n) -> T\nwhere\n\tT: Copy,\n{", &[]),
            "fn f<T>(a: T) -> T where T: Copy"
        );
        assert_eq!(signature("", &[]), "");
    }

    #[test]
    fn long_signature_is_cut_at_a_character() {
        let long = signature(&"ä".repeat(5000), &[]);
        assert!(long.len() <= MAX_SIGNATURE && long.ends_with('…'), "{long}");
    }

    #[test]
    fn doc_line_is_the_first_line_with_words() {
        for (text, line) in [
            ("\"\"\"\n    Return all.\n\n    More.\n    \"\"\"", "Return all."),
            ("r\"\"\"Raw.\"\"\"", "Raw."),
            ("'One.'", "One."),
            ("/**\n * Sends it.\n * @param a\n */", "Sends it."),
            ("/// <summary>\n/// Sends it.\n/// </summary>", "Sends it."),
            ("// eslint-disable-next-line\n// Sends it.", "Sends it."),
            ("// ----\n// Title\n// ----", "Title"),
            ("#: The limit.", "The limit."),
            ("//", ""),
        ] {
            assert_eq!(doc_line(text), line, "{text}");
        }
    }
}
