//! A diagnostic as printed: positions count from 1, and the message is one line.
//!
//! This is the only place that turns a server's text into ours. Nothing that a server sends can end a line early or move a
//! terminal's cursor.

use serde::{Deserialize, Serialize};
use tenon_contract::visible::visible;

use crate::model::{Diagnostic, Severity};

/// Longer messages are cut, in code points.
pub const MAX_MESSAGE: usize = 500;

/// A diagnostic with one-based positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticLine {
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, in UTF-16 units.
    pub character: u32,
    pub severity: Severity,
    /// As the server sent it.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl From<&Diagnostic> for DiagnosticLine {
    fn from(found: &Diagnostic) -> Self {
        Self {
            line: found.range.start.line.saturating_add(1),
            character: found.range.start.character.saturating_add(1),
            severity: found.severity(),
            message: found.message.clone(),
            code: found.code.clone(),
            source: found.source.clone(),
        }
    }
}

impl DiagnosticLine {
    /// `ERROR [12:5] message (code)`.
    pub fn to_line(&self) -> String {
        let severity = self.severity.as_str().to_ascii_uppercase();
        let message = one_line(&self.message, MAX_MESSAGE);
        let line = format!("{severity} [{}:{}] {message}", self.line, self.character);
        match &self.code {
            Some(code) => format!("{line} ({})", one_line(code, MAX_MESSAGE)),
            None => line,
        }
    }
}

/// The plural name of a severity.
pub fn plural(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "errors",
        Severity::Warning => "warnings",
        Severity::Info => "infos",
        Severity::Hint => "hints",
    }
}

/// A text as one line of at most `max` code points. Line breaks and control characters, with the white space around them,
/// become one space, bidirectional controls are made visible, and an
/// ellipsis marks a cut.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    // Pending white space, and whether it contains a break.
    let (mut gap, mut broken) = (String::new(), false);
    for one in text.trim_matches(|one: char| one.is_whitespace() || one.is_control()).chars() {
        if one.is_whitespace() || one.is_control() {
            broken |= is_break(one);
            gap.push(one);
            continue;
        }
        line.push_str(if broken { " " } else { &gap });
        line.push(one);
        (gap, broken) = (String::new(), false);
    }
    let line = visible(&line).into_owned();
    match line.char_indices().nth(max) {
        None => line,
        Some(_) => {
            let kept: String = line.chars().take(max.saturating_sub(1)).collect();
            kept + "…"
        }
    }
}

/// Whether a character would end a line or control a terminal.
fn is_break(one: char) -> bool {
    one.is_control() || matches!(one, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_becomes_one_line() {
        for (given, told) in [
            ("plain  words", "plain  words"),
            ("one\ntwo", "one two"),
            ("one\r\n\u{a0}\u{a0}two \n", "one two"),
            ("bell\u{7}and\u{1b}[31mred", "bell and [31mred"),
            ("\u{0}\u{0}a\u{2028}b\u{85}c\tz", "a b c z"),
            ("\n \t", ""),
            ("gnp\u{202e}exe", "gnp<U+202E>exe"),
        ] {
            assert_eq!(one_line(given, 100), told, "{given:?}");
        }
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüß", 3), "äö…");
    }

    #[test]
    fn diagnostic_prints_severity_position_message_and_code() {
        let mut found = DiagnosticLine {
            line: 12,
            character: 5,
            severity: Severity::Error,
            message: "not\nassignable".to_owned(),
            code: Some("TS2322".to_owned()),
            source: Some("ts".to_owned()),
        };
        assert_eq!(found.to_line(), "ERROR [12:5] not assignable (TS2322)");
        (found.severity, found.code) = (Severity::Hint, None);
        assert_eq!(found.to_line(), "HINT [12:5] not assignable");
    }

    proptest! {
        #[test]
        fn any_text_fits_one_line_and_the_limit(text in any::<String>(), max in 1usize..50) {
            let line = one_line(&text, max);
            prop_assert!(line.chars().count() <= max);
            prop_assert!(!line.contains(is_break));
        }
    }
}
