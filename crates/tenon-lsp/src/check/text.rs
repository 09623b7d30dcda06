//! A report as a compiler prints it: the message, where it is, and the line itself.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use tenon_contract::position::Encoding;

use super::{CheckedFile, Report, Verdict};
use crate::finding::{MAX_MESSAGE, one_line};
use crate::model::{Diagnostic, Severity};

/// More lines of a long range say less about it.
const MAX_LINES: u32 = 5;

/// Lines longer than this are cut around the place.
const TERM_WIDTH: usize = 140;

/// All findings, each followed by an empty line. Styled for a terminal; who prints it elsewhere strips the styles.
pub fn render(report: &Report) -> String {
    let renderer = Renderer::styled().term_width(TERM_WIDTH);
    let mut text = String::new();
    for (file, found) in report.findings() {
        text.push_str(&renderer.render(&[finding(file, found)]));
        text.push_str("\n\n");
    }
    text
}

fn finding<'r>(file: &'r CheckedFile, found: &'r Diagnostic) -> Group<'r> {
    let level = match found.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
        Severity::Hint => Level::HELP,
    };
    let mut title = level.primary_title(words(found));
    if let Some(code) = &found.code {
        title = title.id(one_line(code, MAX_MESSAGE));
    }
    let Some(lines) = &file.lines else {
        return title.element(Origin::path(file.file.as_str()));
    };
    // Servers may name places beyond the end.
    let first = found.range.start.line.min(lines.line_count().saturating_sub(1));
    let last = found.range.end.line.clamp(first, first + MAX_LINES - 1);
    let from = lines.offset_clamped(position(first), Encoding::Utf16);
    let to = lines.offset_clamped(position(last + 1), Encoding::Utf16);
    let to = if last + 1 >= lines.line_count() { lines.text().len() } else { to };
    let at = |position| lines.offset_clamped(position, Encoding::Utf16).clamp(from, to) - from;
    let span = at(found.range.start)..at(found.range.end).max(at(found.range.start));
    title.element(
        Snippet::source(&lines.text()[from..to])
            .path(file.file.as_str())
            .line_start(first as usize + 1)
            .annotation(AnnotationKind::Primary.span(span)),
    )
}

fn position(line: u32) -> tenon_contract::position::Position {
    tenon_contract::position::Position::new(line, 0)
}

/// The message with the name of who says it.
fn words(found: &Diagnostic) -> String {
    match &found.source {
        Some(source) => format!("{} ({})", found.message.trim_end(), one_line(source, MAX_MESSAGE)),
        None => found.message.trim_end().to_owned(),
    }
}

/// `2 errors and 1 warning in 2 files`.
pub fn summary(report: &Report) -> String {
    let found = found(report);
    match report.verdict() {
        Verdict::Incomplete => format!("{found}, but not everything could be checked"),
        Verdict::Clean | Verdict::Findings => found,
    }
}

fn found(report: &Report) -> String {
    let counts: Vec<String> = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Info, "remark"),
        (Severity::Hint, "hint"),
    ]
    .into_iter()
    .map(|(severity, word)| (report.count(severity), word))
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| plural(count, word))
    .collect();
    let found = report.files.iter().filter(|file| !file.diagnostics.is_empty()).count();
    match counts.split_last() {
        None => format!("nothing found in {}", plural(report.checked, "file")),
        Some((only, [])) => format!("{only} in {}", plural(found, "file")),
        Some((last, others)) => {
            format!("{} and {last} in {}", others.join(", "), plural(found, "file"))
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
