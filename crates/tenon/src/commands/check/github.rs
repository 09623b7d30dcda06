//! A report as GitHub Actions workflow commands, which GitHub shows at the lines of a change.

use std::fmt::Write;

use tenon_lsp::model::Severity;
use tenon_lsp::workspace_check::CheckReport;

/// One command per line.
pub(crate) fn render(report: &CheckReport) -> String {
    let mut text = String::new();
    for (file, found) in report.findings() {
        let command = match found.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info | Severity::Hint => "notice",
        };
        let (start, end) = (found.range.start, found.range.end);
        let _ = write!(text, "::{command} file={},line={}", property(&file.file), start.line + 1);
        // GitHub ignores the end column of a range over several lines.
        if start.line == end.line {
            let _ = write!(text, ",col={},endColumn={}", start.character + 1, end.character + 1);
        } else {
            let _ = write!(text, ",endLine={}", end.line + 1);
        }
        let title = match (&found.source, &found.code) {
            (Some(source), Some(code)) => Some(format!("{source} {code}")),
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        };
        if let Some(title) = title {
            let _ = write!(text, ",title={}", property(&title));
        }
        let _ = writeln!(text, "::{}", data(&found.message));
    }
    text
}

/// Escapes line breaks and percent signs in a message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn findings_are_rendered_as_one_command_per_line() {
        insta::assert_snapshot!(render(&example()), @r#"
        ::notice file=b.ts,line=1,endLine=4,title=ts 2554::Expected 1 argument
        ::error file=src/a b.py,line=1,col=10,endColumn=15,title=Pyright reportAssignmentType::Type "str" is not%0A  assignable to "int"
        ::warning file=src/a b.py,line=2,col=7,endColumn=16::100%25 wrong, really: yes
        "#);
    }
}
