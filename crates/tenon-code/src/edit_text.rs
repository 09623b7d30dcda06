//! The delta of a change as text for a model: what was changed, how many diagnostics changed, each new one, what is missing.
//!
//! ```text
//! edited src/a.py:1475-1481
//! 1 new, 0 gone, 47 unchanged
//! NEW error src/a.py:1481:9 in QuerySet.filter: "kwargx" is not defined (reportUndefinedVariable)
//! ```
//!
//! New diagnostics are cut only at the size limit of the text, and then counted; so are many similar ones ([`new_lines`]). Counts appear only if a server reported on
//! both texts: what is not known does not look clean.

mod new_lines;

use std::fmt;

use tenon_lsp::diagnostic_line::{MAX_MESSAGE, one_line};

use crate::edit::{EditDiagnostics, EditKind, EditedFile, FileState, FoundDiagnostic, Lines};
use new_lines::{NewLine, new_lines};

/// The most bytes of new diagnostics.
const MAX_BYTES: usize = 64 * 1024;
/// The most bytes of a hook's text. Codex cuts longer texts at 10,000 characters; others may do the same.
const MAX_HOOK_BYTES: usize = 9_500;
/// Room for the line that counts what is not listed.
const COUNT_BYTES: usize = 32;
/// The most diagnostics that are listed although they may be old, and the most changed files that are named.
const MAX_UNDATED: usize = 20;
const MAX_FILES: usize = 20;

/// See the module.
#[derive(Debug)]
pub struct EditText<'a> {
    found: &'a EditDiagnostics,
    /// The lines for new diagnostics.
    lines: Vec<String>,
    /// How many new diagnostics they stand for.
    listed: usize,
    /// How many diagnostics without a baseline are listed.
    undated: usize,
}

impl<'a> EditText<'a> {
    pub fn new(found: &'a EditDiagnostics) -> Self {
        let listed = fitting(&found.new, MAX_BYTES);
        let lines = new_lines(&found.new[..listed]).into_iter().map(|line| line.text).collect();
        Self { found, lines, listed, undated: found.undated.len().min(MAX_UNDATED) }
    }

    /// A text that agents pass on completely.
    pub fn for_hook(found: &'a EditDiagnostics) -> Self {
        Self::within(found, MAX_HOOK_BYTES)
    }

    /// A text with at most this many bytes, unless the lines without diagnostics have more.
    pub fn within(found: &'a EditDiagnostics, max_bytes: usize) -> Self {
        let bare = Self { found, lines: Vec::new(), listed: 0, undated: 0 };
        let mut left = max_bytes.saturating_sub(bare.to_string().len() + COUNT_BYTES);
        let (mut lines, mut listed) = (Vec::new(), 0);
        for NewLine { text, count } in new_lines(&found.new) {
            let Some(rest) = left.checked_sub(text.len() + 1) else { break };
            left = rest;
            listed += count;
            lines.push(text);
        }
        let undated = fitting(&found.undated[..found.undated.len().min(MAX_UNDATED)], left);
        Self { found, lines, listed, undated }
    }

    /// The new diagnostics up to the size limit.
    pub fn new_ones(&self) -> &'a [FoundDiagnostic] {
        &self.found.new[..self.listed]
    }

    /// The diagnostics without a baseline that are listed.
    fn undated(&self) -> &'a [FoundDiagnostic] {
        &self.found.undated[..self.undated]
    }

    /// The names of changed files in this state.
    fn files(&self, state: FileState) -> Option<String> {
        let named = self.found.edited.iter().filter(|file| file.state == state);
        let names: Vec<String> = named.map(|file| name(&file.file)).collect();
        let more = names.len().saturating_sub(MAX_FILES);
        let mut list = names[..names.len() - more].join(", ");
        if more > 0 {
            list.push_str(&format!(" and {more} more"));
        }
        (!names.is_empty()).then_some(list)
    }

    /// What was not checked, in one line each.
    fn missing(&self) -> Vec<String> {
        let found = self.found;
        let mut lines = Vec::new();
        if found.superseded {
            lines.push("not checked: a newer edit replaced this text".to_owned());
        }
        if let Some(files) = self.files(FileState::Unserved) {
            lines.push(format!("not checked: no language server for {files}"));
        }
        if let Some(files) = self.files(FileState::Unavailable) {
            lines.push(format!("not checked: no language server is available for {files}"));
        }
        if let Some(files) = self.files(FileState::Unreadable) {
            lines.push(format!("not checked: {files} (not UTF-8 text, or too large)"));
        }
        if let Some(files) = self.files(FileState::NoBaseline) {
            lines.push(format!(
                "no baseline: the diagnostics before are not known for {files}; {}",
                self.undated_count()
            ));
        } else if !found.undated.is_empty() {
            lines.push(format!("no baseline from every language server; {}", self.undated_count()));
        }
        lines.extend(self.undated().iter().map(line));
        if !found.pending.is_empty() {
            lines.push(format!("pending: {}", found.pending.join(", ")));
        }
        if !found.unanswered.is_empty() && !found.superseded {
            lines.push(format!("not checked by: {}", found.unanswered.join(", ")));
        }
        match found.unchecked {
            0 => {}
            1 => lines.push("not checked: 1 file that may depend on the change".to_owned()),
            many => lines.push(format!("not checked: {many} files that may depend on the change")),
        }
        if lines.is_empty() && !found.complete {
            lines.push("not checked: some language server did not report on all files".to_owned());
        }
        lines
    }

    fn undated_count(&self) -> String {
        match (self.undated().len(), self.found.undated.len()) {
            (_, 0) => "none now".to_owned(),
            (listed, all) if listed < all => format!("{listed} of {all} listed"),
            (_, all) => format!("all {all} listed"),
        }
    }
}

/// Without a line break at the end.
impl fmt::Display for EditText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found;
        let mut lines: Vec<String> = found.edited.iter().take(MAX_FILES).map(heading).collect();
        if found.edited.len() > MAX_FILES {
            lines.push(format!("and {} more changed files", found.edited.len() - MAX_FILES));
        }
        if found.is_compared() {
            let (new, gone) = (found.new.len(), found.gone.len());
            lines.push(format!("{new} new, {gone} gone, {} unchanged", found.unchanged));
        }
        lines.extend(self.lines.iter().cloned());
        if self.listed < found.new.len() {
            lines.push(format!("and {} more new", found.new.len() - self.listed));
        }
        lines.extend(self.missing());
        // Errors that the project's own compiler would not report.
        if !found.new.is_empty() || !found.undated.is_empty() {
            lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// How many of these fit, one in each line.
fn fitting(found: &[FoundDiagnostic], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |one: &&FoundDiagnostic| {
        bytes += "NEW ".len() + line(one).len() + 1;
        bytes <= max_bytes
    };
    found.iter().take_while(fits).count()
}

/// `edited src/a.py:12-14`.
fn heading(file: &EditedFile) -> String {
    let span = |lines: Lines| match lines {
        Lines { first, last } if first == last => format!(":{first}"),
        Lines { first, last } => format!(":{first}-{last}"),
    };
    let (done, lines) = match file.kind {
        EditKind::Created(lines) => ("created", span(lines)),
        EditKind::Edited(lines) => ("edited", lines.map(span).unwrap_or_default()),
        EditKind::Tried(lines) => ("tried", lines.map(span).unwrap_or_default()),
        EditKind::Unchanged => ("unchanged", String::new()),
        EditKind::Deleted => ("deleted", String::new()),
    };
    format!("{done} {}{lines}", name(&file.file))
}

/// `error src/a.py:1481:9 in QuerySet.filter: message (code)`.
fn line(found: &FoundDiagnostic) -> String {
    let FoundDiagnostic { file, line, symbol, .. } = found;
    let symbol = symbol.as_ref().map(|symbol| format!(" in {}", one_line(symbol, MAX_MESSAGE)));
    let code = line.code.as_ref().map(|code| format!(" ({})", one_line(code, MAX_MESSAGE)));
    let (severity, message) = (line.severity.as_str(), one_line(&line.message, MAX_MESSAGE));
    let place = format!("{}:{}:{}", name(file), line.line, line.character);
    format!("{severity} {place}{}: {message}{}", symbol.unwrap_or_default(), code.unwrap_or_default())
}

fn name(file: &str) -> String {
    one_line(file, usize::MAX)
}

#[cfg(test)]
mod tests {
    use tenon_lsp::diagnostic_line::DiagnosticLine;
    use tenon_lsp::model::Severity;

    use super::*;

    fn found(file: &str, line: u32, message: &str) -> FoundDiagnostic {
        let line = DiagnosticLine {
            line,
            character: 9,
            severity: Severity::Error,
            message: message.to_owned(),
            code: Some("E1".to_owned()),
            source: None,
        };
        FoundDiagnostic { file: file.to_owned(), line, symbol: None, is_outside: false }
    }

    fn edited(file: &str, kind: EditKind, state: FileState) -> EditedFile {
        EditedFile { file: file.to_owned(), kind, state }
    }

    fn lines(first: u32, last: u32) -> Lines {
        Lines { first, last }
    }

    fn compared() -> EditDiagnostics {
        let edited = vec![edited("src/a.py", EditKind::Edited(Some(lines(12, 14))), FileState::Compared)];
        EditDiagnostics { edited, complete: true, unchanged: 47, ..EditDiagnostics::default() }
    }

    fn text(found: &EditDiagnostics) -> String {
        EditText::new(found).to_string()
    }

    #[test]
    fn new_diagnostics_follow_the_counts_and_nothing_else() {
        let mut diagnostics = compared();
        let inside = FoundDiagnostic {
            symbol: Some("QuerySet.filter".to_owned()),
            ..found("src/a.py", 13, "\"kwargx\" is not\n defined")
        };
        diagnostics.new = vec![inside, found("src/b\n.py", 1, "missing\u{1b}[2J")];
        diagnostics.gone = vec![found("src/a.py", 1, "old")];
        insta::assert_snapshot!(text(&diagnostics), @r#"
        edited src/a.py:12-14
        2 new, 1 gone, 47 unchanged
        NEW error src/a.py:13:9 in QuerySet.filter: "kwargx" is not defined (E1)
        NEW error src/b .py:1:9: missing [2J (E1)
        "#);
        assert_eq!(text(&compared()), "edited src/a.py:12-14\n0 new, 0 gone, 47 unchanged");
    }

    #[test]
    fn new_diagnostics_are_cut_only_at_the_size_limit() {
        let mut diagnostics = compared();
        diagnostics.new = (1..=500).map(|line| found("src/a.py", 9 * line, "wrong")).collect();
        assert_eq!(text(&diagnostics).lines().count(), 502);
        diagnostics.new = (1..=5000).map(|line| found("src/a.py", 9 * line, "wrong")).collect();
        let shown = text(&diagnostics);
        let listed = shown.lines().filter(|line| line.starts_with("NEW ")).count();
        assert!((1000..5000).contains(&listed), "{listed}");
        assert!(shown.starts_with("edited src/a.py:12-14\n5000 new, 0 gone, 47 unchanged\nNEW "), "{shown}");
        assert!(shown.ends_with(&format!("\nand {} more new", 5000 - listed)));
    }

    #[test]
    fn hook_text_stays_below_the_limit_of_agents() {
        let mut diagnostics = compared();
        let long = "x".repeat(400);
        diagnostics.new = (1..=100).map(|line| found("src/a.py", 9 * line, &long)).collect();
        diagnostics.undated = (1..=100).map(|line| found("src/a.py", line, &long)).collect();
        diagnostics.pending = vec!["pyright".to_owned()];
        let shown = EditText::for_hook(&diagnostics).to_string();
        assert!((9_000..10_000).contains(&shown.len()), "{}", shown.len());
        let listed = shown.lines().filter(|line| line.starts_with("NEW ")).count();
        assert!(shown.contains(&format!("\nand {} more new\n", 100 - listed)), "{shown}");
        assert!(shown.ends_with("of 100 listed\npending: pyright"), "{shown}");
        assert_eq!(EditText::for_hook(&compared()).to_string(), text(&compared()));
    }

    #[test]
    fn unchecked_file_shows_no_counts() {
        let mut diagnostics = compared();
        (diagnostics.edited[0].state, diagnostics.complete) = (FileState::Unserved, false);
        assert_eq!(text(&diagnostics), "edited src/a.py:12-14\nnot checked: no language server for src/a.py");
        diagnostics.edited[0].state = FileState::Unreadable;
        let expected = "edited src/a.py:12-14\nnot checked: src/a.py (not UTF-8 text, or too large)";
        assert_eq!(text(&diagnostics), expected);
        diagnostics.edited[0].state = FileState::Unanswered;
        diagnostics.unanswered = vec!["pyright".to_owned()];
        assert_eq!(text(&diagnostics), "edited src/a.py:12-14\nnot checked by: pyright");
        diagnostics.unanswered.clear();
        diagnostics.pending = vec!["pyright".to_owned(), "ruff".to_owned()];
        assert_eq!(text(&diagnostics), "edited src/a.py:12-14\npending: pyright, ruff");
        diagnostics.superseded = true;
        let expected =
            "edited src/a.py:12-14\nnot checked: a newer edit replaced this text\npending: pyright, ruff";
        assert_eq!(text(&diagnostics), expected);
    }

    #[test]
    fn missing_part_has_one_line_below_the_counts() {
        let mut diagnostics = compared();
        diagnostics.complete = false;
        (diagnostics.pending, diagnostics.unchecked) = (vec!["pyright".to_owned()], 12);
        insta::assert_snapshot!(text(&diagnostics), @"
        edited src/a.py:12-14
        0 new, 0 gone, 47 unchanged
        pending: pyright
        not checked: 12 files that may depend on the change
        ");
        (diagnostics.pending, diagnostics.unchecked) = (Vec::new(), 0);
        assert!(
            text(&diagnostics).ends_with("\nnot checked: some language server did not report on all files")
        );
    }

    #[test]
    fn diagnostics_without_a_baseline_are_not_called_new() {
        let edited = vec![
            edited("a.py", EditKind::Edited(None), FileState::NoBaseline),
            edited("b.py", EditKind::Deleted, FileState::Compared),
        ];
        let undated: Vec<FoundDiagnostic> = (1..=21).map(|line| found("a.py", line, "wrong")).collect();
        let mut diagnostics = EditDiagnostics { edited, undated, ..EditDiagnostics::default() };
        let shown = text(&diagnostics);
        let head = "edited a.py\ndeleted b.py\n0 new, 0 gone, 0 unchanged\nno baseline: the diagnostics before are not known for a.py; 20 of 21 listed\nerror a.py:1:9: wrong (E1)\n";
        assert!(shown.starts_with(head), "{shown}");
        assert_eq!(shown.lines().count(), 24);
        diagnostics.undated.clear();
        assert!(text(&diagnostics).ends_with("for a.py; none now"));
    }
}
