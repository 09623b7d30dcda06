//! A report as text, like a compiler's: the message, its location and the source line.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Snippet};
use tenon_contract::position::Encoding;
use tenon_contract::visible::visible;

use tenon_lsp::diagnostic_line::{MAX_MESSAGE, one_line};
use tenon_lsp::model::{Diagnostic, Severity};
use tenon_lsp::workspace_check::{CheckReport, CheckedFile, Verdict};

use crate::styled_text::StyledText;

/// A longer range is cut after this many lines.
const MAX_LINES: u32 = 5;

/// All findings, each followed by an empty line.
pub(crate) fn render(report: &CheckReport) -> StyledText {
    let mut text = StyledText::default();
    for (file, found) in report.findings() {
        text.snippets(finding(file, found));
        text.line("");
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
    let mut title = level.primary_title(message_with_source(found));
    if let Some(code) = &found.code {
        title = title.id(one_line(code, MAX_MESSAGE));
    }
    let Some(lines) = &file.lines else {
        return title.element(Origin::path(visible(&file.file)));
    };
    // A server may report a position after the end of the text.
    let first = found.range.start.line.min(lines.line_count().saturating_sub(1));
    let last = found.range.end.line.clamp(first, first + MAX_LINES - 1);
    let from = lines.offset_clamped(position(first), Encoding::Utf16);
    let to = lines.offset_clamped(position(last + 1), Encoding::Utf16);
    let to = if last + 1 >= lines.line_count() { lines.text().len() } else { to };
    let at = |position| lines.offset_clamped(position, Encoding::Utf16).clamp(from, to) - from;
    let span = at(found.range.start)..at(found.range.end).max(at(found.range.start));
    title.element(
        Snippet::source(&lines.text()[from..to])
            .path(visible(&file.file))
            .line_start(first as usize + 1)
            .annotation(AnnotationKind::Primary.span(span)),
    )
}

fn position(line: u32) -> tenon_contract::position::Position {
    tenon_contract::position::Position::new(line, 0)
}

/// The message with its source.
fn message_with_source(found: &Diagnostic) -> String {
    match &found.source {
        Some(source) => format!("{} ({})", found.message.trim_end(), one_line(source, MAX_MESSAGE)),
        None => found.message.trim_end().to_owned(),
    }
}

/// `2 errors and 1 warning in 2 files`.
pub(crate) fn summary(report: &CheckReport) -> String {
    let mut counts = counts(report);
    if let Some(compared) = report.compared {
        counts.push_str(&format!("; {} gone, {} unchanged", compared.gone, compared.unchanged));
    }
    let unfinished = report.files.iter().filter(|file| !file.missing.is_empty()).count();
    match report.verdict() {
        _ if unfinished > 0 => {
            format!("{counts}, but the check is incomplete: {} unknown", plural(unfinished, "file"))
        }
        Verdict::Incomplete => format!("{counts}, but the check is incomplete"),
        Verdict::Clean | Verdict::Findings => counts,
    }
}

fn counts(report: &CheckReport) -> String {
    let counts: Vec<String> = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Info, "remark"),
        (Severity::Hint, "hint"),
    ]
    .into_iter()
    .map(|(severity, word)| (report.count(severity), word))
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| match report.compared {
        Some(_) => plural(count, &format!("new {word}")),
        None => plural(count, word),
    })
    .collect();
    let found = report.files.iter().filter(|file| !file.diagnostics.is_empty()).count();
    match counts.split_last() {
        None => format!(
            "no {}findings in {}",
            if report.compared.is_some() { "new " } else { "" },
            plural(report.checked, "file")
        ),
        Some((only, [])) => format!("{only} in {}", plural(found, "file")),
        Some((last, others)) => {
            format!("{} and {last} in {}", others.join(", "), plural(found, "file"))
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::super::example::{example, file, found, report};
    use super::*;

    fn plain(report: &CheckReport) -> String {
        let styled = render(report);
        anstream::adapter::strip_str(styled.as_str()).to_string()
    }

    #[test]
    fn findings_are_rendered_like_compiler_errors() {
        insta::assert_snapshot!(plain(&example()), @r#"
        info[2554]: Expected 1 argument (ts)
         --> b.ts:1:1
          |
        1 | / f(
        2 | |   1,
        3 | |   2,
        4 | | )
          | |_^

        error[reportAssignmentType]: Type "str" is not
                                       assignable to "int" (Pyright)
         --> src/a b.py:1:10
          |
        1 | x: int = 'ä🎉'
          |          ^^^^^

        warning: 100% wrong, really: yes
         --> src/a b.py:2:7
          |
        2 | print(undefined)
          |       ^^^^^^^^^
        "#);
        assert_eq!(summary(&example()), "1 error, 1 warning and 1 remark in 2 files");
        assert_eq!(summary(&report(vec![])), "no findings in 0 files");
    }

    #[test]
    fn positions_beyond_the_text_and_control_characters_are_harmless() {
        let odd = file(
            "a.py",
            "x\u{1b}[31m = 1",
            vec![
                found([9, 9, 9, 9], 1, "s\u{1b}", "c\u{7}", "red \u{1b}[31mmessage"),
                found([0, 3, 0, 1], 1, "", "", "backwards"),
                found([0, 0, 900, 0], 1, "", "", "to the end"),
            ],
        );
        let empty = file("empty.py", "", vec![found([0, 0, 0, 0], 1, "", "", "nothing here")]);
        let shown = plain(&report(vec![odd, empty]));
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
        insta::assert_snapshot!(shown, @r#"
        error[c]: red ␛[31mmessage (s)
         --> a.py:1:11
          |
        1 | x␛[31m = 1
          |           ^

        error: backwards
         --> a.py:1:4
          |
        1 | x␛[31m = 1
          |    ^

        error: to the end
         --> a.py:1:1
          |
        1 | x␛[31m = 1
          | ^^^^^^^^^^

        error: nothing here
         --> empty.py:1:1
          |
        1 |
          | ^
        "#);
    }
}
