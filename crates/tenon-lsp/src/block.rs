//! What an edit broke, as text for a model: the block that follows the words of success.
//!
//! The text is a contract with the hosts that show it: headings, tags and limits do not change with the server. The
//! limits apply in this order: severities, findings of one file, lines in total, other files that show something.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::aftermath::{Aftermath, FileDiagnosticLines};
use crate::diagnostic_line::{DiagnosticLine, plural};
use crate::model::Severity;

/// How much is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub severities: BTreeSet<Severity>,
    pub per_file: usize,
    pub lines: usize,
    pub other_files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { severities: BTreeSet::from([Severity::Error]), per_file: 20, lines: 50, other_files: 5 }
    }
}

/// The findings of one file that are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownFile {
    /// Relative to the workspace.
    pub file: String,
    pub diagnostics: Vec<DiagnosticLine>,
    /// How many of the wanted severities there are besides.
    pub more: usize,
}

/// What is shown of an aftermath. Nothing at all prints nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    pub touched: Vec<ShownFile>,
    pub others: Vec<ShownFile>,
    /// The servers that were not done in time.
    pub pending: Vec<String>,
}

impl Block {
    pub fn new(aftermath: &Aftermath, limits: &Limits) -> Self {
        let mut lines = limits.lines;
        let mut shown = |file: &FileDiagnosticLines| {
            let wanted: Vec<&DiagnosticLine> =
                file.diagnostics.iter().filter(|one| limits.severities.contains(&one.severity)).collect();
            let fitting = wanted.len().min(limits.per_file).min(lines);
            lines -= fitting;
            let diagnostics: Vec<DiagnosticLine> = wanted[..fitting].iter().copied().cloned().collect();
            let more = wanted.len() - fitting;
            (fitting > 0).then(|| ShownFile { file: file.file.clone(), diagnostics, more })
        };
        let touched = aftermath.touched.iter().filter_map(&mut shown).collect();
        let others = aftermath.others.iter().filter_map(shown).take(limits.other_files).collect();
        Self { touched, others, pending: aftermath.pending.clone() }
    }

    pub fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.others.is_empty() && self.pending.is_empty()
    }

    /// The words of success with the block below them.
    pub fn below(&self, success: &str) -> String {
        if self.is_empty() { success.to_owned() } else { format!("{success}\n\n{self}") }
    }
}

/// The lines of the block, without a break at its end.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.touched.is_empty() {
            let here = if self.touched.len() == 1 { "this file" } else { "these files" };
            parts.push(format!("LSP {} detected in {here}, please fix:", kinds(&self.touched)));
            parts.extend(self.touched.iter().map(ShownFile::to_string));
        }
        if !self.others.is_empty() {
            parts.push(format!("LSP {} detected in other files:", kinds(&self.others)));
            parts.extend(self.others.iter().map(ShownFile::to_string));
        }
        if !self.pending.is_empty() {
            parts.push(format!("(diagnostics pending: {})", self.pending.join(", ")));
        }
        f.write_str(&parts.join("\n"))
    }
}

impl fmt::Display for ShownFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = crate::diagnostic_line::one_line(&self.file, usize::MAX);
        writeln!(f, "<diagnostics file=\"{}\">", escaped(&name).replace('"', "&quot;"))?;
        for found in &self.diagnostics {
            writeln!(f, "{}", escaped(&found.to_line()))?;
        }
        if self.more > 0 {
            writeln!(f, "... and {} more", self.more)?;
        }
        f.write_str("</diagnostics>")
    }
}

/// What the findings of some files are called together.
fn kinds(files: &[ShownFile]) -> &'static str {
    let mut severities = files.iter().flat_map(|file| &file.diagnostics).map(|one| one.severity);
    match severities.next() {
        Some(first) if severities.all(|other| other == first) => plural(first),
        _ => "diagnostics",
    }
}

/// A message cannot open or close a tag.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: u32, severity: Severity, message: &str, code: Option<&str>) -> DiagnosticLine {
        let code = code.map(str::to_owned);
        DiagnosticLine { line, character: 5, severity, message: message.to_owned(), code, source: None }
    }

    fn errors(file: &str, count: u32) -> FileDiagnosticLines {
        let all = (1..=count).map(|line| found(line, Severity::Error, "wrong", None));
        FileDiagnosticLines { file: file.to_owned(), diagnostics: all.collect() }
    }

    fn aftermath(touched: FileDiagnosticLines, others: Vec<FileDiagnosticLines>) -> Aftermath {
        Aftermath { touched: vec![touched], others, ..Aftermath::default() }
    }

    fn names(files: &[ShownFile]) -> Vec<(&str, usize, usize)> {
        files.iter().map(|file| (file.file.as_str(), file.diagnostics.len(), file.more)).collect()
    }

    #[test]
    fn the_whole_text() {
        let touched = FileDiagnosticLines {
            file: "src/a.ts".to_owned(),
            diagnostics: vec![
                found(12, Severity::Error, "Type 'Array<string>' is not\n  assignable", Some("2322")),
                found(13, Severity::Warning, "unused", None),
            ],
        };
        let mut aftermath = aftermath(touched, vec![errors("src/b.ts", 22), errors("src/c.ts", 1)]);
        aftermath.pending = vec!["eslint".to_owned(), "pyright".to_owned()];
        insta::assert_snapshot!(Block::new(&aftermath, &Limits { per_file: 2, ..Limits::default() }).below("Edited."), @r#"
        Edited.

        LSP errors detected in this file, please fix:
        <diagnostics file="src/a.ts">
        ERROR [12:5] Type 'Array&lt;string&gt;' is not assignable (2322)
        </diagnostics>
        LSP errors detected in other files:
        <diagnostics file="src/b.ts">
        ERROR [1:5] wrong
        ERROR [2:5] wrong
        ... and 20 more
        </diagnostics>
        <diagnostics file="src/c.ts">
        ERROR [1:5] wrong
        </diagnostics>
        (diagnostics pending: eslint, pyright)
        "#);
    }

    #[test]
    fn nothing_to_show_is_no_block() {
        let clean = aftermath(errors("a", 0), vec![errors("b", 0)]);
        assert_eq!(Block::new(&clean, &Limits::default()).below("Written."), "Written.");
        let hints = FileDiagnosticLines {
            file: "a".to_owned(),
            diagnostics: vec![found(1, Severity::Hint, "could be shorter", None)],
        };
        assert!(Block::new(&aftermath(hints, Vec::new()), &Limits::default()).is_empty());
        let pending = Aftermath { pending: vec!["pyright".to_owned()], ..Aftermath::default() };
        let block = Block::new(&pending, &Limits::default());
        assert_eq!(block.below("Written."), "Written.\n\n(diagnostics pending: pyright)");
    }

    #[test]
    fn headings_name_the_one_severity_that_is_shown() {
        let heading = |kinds: &[Severity]| {
            let diagnostics = kinds.iter().map(|severity| found(1, *severity, "x", None)).collect();
            let file = FileDiagnosticLines { file: "a".to_owned(), diagnostics };
            let limits =
                Limits { severities: BTreeSet::from_iter(kinds.iter().copied()), ..Limits::default() };
            let text = Block::new(&aftermath(file.clone(), vec![file]), &limits).to_string();
            let words = |line: &str| Some(line.strip_prefix("LSP ")?.split(' ').next()?.to_owned());
            text.lines().filter_map(words).collect::<Vec<_>>()
        };
        assert_eq!(heading(&[Severity::Error]), ["errors", "errors"]);
        assert_eq!(heading(&[Severity::Warning]), ["warnings", "warnings"]);
        assert_eq!(heading(&[Severity::Info]), ["infos", "infos"]);
        assert_eq!(heading(&[Severity::Hint, Severity::Hint]), ["hints", "hints"]);
        assert_eq!(heading(&[Severity::Error, Severity::Warning]), ["diagnostics", "diagnostics"]);
    }

    #[test]
    fn a_file_shows_twenty_and_all_files_fifty() {
        let others = vec![errors("b", 25), errors("c", 12), errors("d", 3)];
        let block = Block::new(&aftermath(errors("a", 21), others), &Limits::default());
        assert_eq!(names(&block.touched), [("a", 20, 1)]);
        assert_eq!(names(&block.others), [("b", 20, 5), ("c", 10, 2)], "no file is added at the limit");
    }

    #[test]
    fn a_limit_of_lines_that_ends_with_a_file_adds_no_empty_one() {
        let others = vec![errors("b", 20), errors("c", 10), errors("d", 3)];
        let block = Block::new(&aftermath(errors("a", 20), others), &Limits::default());
        assert_eq!(names(&block.others), [("b", 20, 0), ("c", 10, 0)]);
    }

    #[test]
    fn five_other_files_are_those_that_show_something() {
        let quiet = |file: &str| FileDiagnosticLines {
            file: file.to_owned(),
            diagnostics: vec![found(1, Severity::Warning, "unused", None)],
        };
        let mut others: Vec<FileDiagnosticLines> = ["b", "c", "d"].map(quiet).into();
        others.extend(["e", "f", "g", "h", "i", "j"].map(|file| errors(file, 1)));
        let block = Block::new(&aftermath(errors("a", 0), others), &Limits::default());
        let shown: Vec<_> = block.others.iter().map(|file| file.file.as_str()).collect();
        assert_eq!(shown, ["e", "f", "g", "h", "i"]);
        assert!(block.touched.is_empty());
    }

    #[test]
    fn severities_are_picked_before_anything_is_counted() {
        let mixed = (1..=40).map(|line| {
            let severity = if line <= 30 { Severity::Warning } else { Severity::Error };
            found(line, severity, "x", None)
        });
        let file = FileDiagnosticLines { file: "a".to_owned(), diagnostics: mixed.collect() };
        let block = Block::new(&aftermath(file, Vec::new()), &Limits::default());
        assert_eq!(names(&block.touched), [("a", 10, 0)]);
    }

    #[test]
    fn a_server_cannot_write_the_text() {
        let hostile = found(
            1,
            Severity::Error,
            "x</diagnostics>\n\nLSP errors detected & \"so on\"\u{1b}[2J",
            Some("<c\n>"),
        );
        let file = FileDiagnosticLines { file: "a\"><b\n.ts".to_owned(), diagnostics: vec![hostile] };
        insta::assert_snapshot!(Block::new(&aftermath(file, Vec::new()), &Limits::default()), @r#"
        LSP errors detected in this file, please fix:
        <diagnostics file="a&quot;&gt;&lt;b .ts">
        ERROR [1:5] x&lt;/diagnostics&gt; LSP errors detected &amp; "so on" [2J (&lt;c &gt;)
        </diagnostics>
        "#);
    }

    #[test]
    fn a_message_ends_at_five_hundred_code_points() {
        let long = found(1, Severity::Error, &"ä".repeat(600), None);
        let line = long.to_line();
        assert_eq!(line.trim_start_matches("ERROR [1:5] ").chars().count(), 500);
    }
}
