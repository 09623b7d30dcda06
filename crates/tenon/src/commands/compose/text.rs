//! Formats diagnostics like compiler errors: message, source line, subjects and help.

use std::ops::Range;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Snippet};
use tenon_compose::registry::{DiagnosticCategory, DiagnosticSeverity};
use tenon_compose::{
    DiagnosticSubject, InputLocation, ParseError, PointerStep, SubjectOwnerKind, WorkspaceDiagnostic, locate,
};

use tenon_contract::visible::visible;

use crate::styled_text::StyledText;

/// Longer lines are referenced by position only; finding the part to show would cost too much.
const LONGEST_LINE: usize = 4096;

/// A source file that diagnostics point into.
pub(super) struct Source {
    name: String,
    pub(super) bytes: Vec<u8>,
    line_starts: Vec<usize>,
}

impl Source {
    pub(super) fn new(file: Option<&Path>, bytes: Vec<u8>) -> Self {
        let name = match file {
            Some(file) if file != Path::new("-") => visible(&file.display().to_string()).into_owned(),
            _ => "<stdin>".to_owned(),
        };
        let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(index, _)| index + 1)).collect();
        Self { name, bytes, line_starts }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The line that contains `offset`: one-based number, and byte range without the line end.
    fn line(&self, offset: usize) -> (usize, Range<usize>) {
        let number = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[number - 1];
        let next = self.line_starts.get(number).map_or(self.bytes.len(), |next| next - 1);
        (number, start..next)
    }

    /// The first line of `range` with a mark under it, or only the position if the line is too long.
    fn element<'s>(&'s self, range: &Range<usize>, note: &'s str, kind: AnnotationKind) -> Element<'s> {
        let (number, line) = self.line(range.start);
        let shown = self.text().get(line.clone()).filter(|shown| shown.len() <= LONGEST_LINE);
        let Some(shown) = shown else {
            let column = self.text().get(line.start..range.start).map_or(0, |before| before.chars().count());
            return Origin::path(self.name.as_str()).line(number).char_column(column + 1).into();
        };
        // Mark only the opening bracket of an array or object.
        let open = matches!(self.bytes.get(range.start), Some(b'{' | b'['));
        let end = if open { range.start + 1 } else { range.end.min(line.end) };
        let mut annotation = kind.span(range.start - line.start..end - line.start);
        if !note.is_empty() {
            annotation = annotation.label(visible(note));
        }
        Snippet::source(shown).line_start(number).path(self.name.as_str()).annotation(annotation).into()
    }
}

/// All diagnostics, with their source lines where a source is given.
pub(super) fn render(
    diagnostics: &[WorkspaceDiagnostic],
    input: Option<&Source>,
    policy: Option<&Source>,
) -> StyledText {
    let marks = find(diagnostics, input, policy);
    let mut text = StyledText::default();
    for (diagnostic, marks) in diagnostics.iter().zip(&marks) {
        let subjects = diagnostic.subjects.iter().map(|found| subject(found, diagnostic.category));
        let level = match diagnostic.severity {
            DiagnosticSeverity::Error => Level::ERROR,
            DiagnosticSeverity::Warning => Level::WARNING,
            DiagnosticSeverity::Info => Level::INFO,
        };
        let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
        let mut elements: Vec<Element<'_>> = Vec::new();
        for (index, mark) in marks.iter().enumerate() {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            elements.push(mark.source.element(&mark.range, mark.note, kind));
        }
        for (who, what) in subjects {
            elements.push(Level::NOTE.with_name(who).message(visible(&what).into_owned()).into());
        }
        let help = help(diagnostic);
        if diagnostic.is_error() {
            elements.push(Level::HELP.message(visible(&help)).into());
        }
        let group = Group::with_title(title).elements(elements);
        text.snippets(group);
        text.line("");
    }
    text
}

/// The help text, with the closest expected value as a suggestion.
fn help(diagnostic: &WorkspaceDiagnostic) -> String {
    let help = diagnostic.help();
    let words = diagnostic.details.get("expected").and_then(|expected| expected.as_array());
    let close = |received: &str| {
        let score = |word: &&str| strsim::jaro_winkler(received, word);
        let words = words.into_iter().flatten().filter_map(|word| word.as_str());
        words.filter(|word| score(word) > 0.85).max_by(|a, b| score(a).total_cmp(&score(b)))
    };
    match diagnostic.details.text("received").and_then(close) {
        Some(word) => format!("{help}: did you mean `{word}`?"),
        None => help.to_owned(),
    }
}

/// A subject as label and text.
fn subject(subject: &DiagnosticSubject, category: DiagnosticCategory) -> (&'static str, String) {
    let kind = match subject.owner_kind {
        Some(SubjectOwnerKind::Host) if category == DiagnosticCategory::Policy => {
            return ("host", "policy".to_owned());
        }
        Some(SubjectOwnerKind::Host) => return ("host", "workspace".to_owned()),
        Some(kind) => kind.as_str(),
        None => "claim",
    };
    let name = subject.canonical_key.as_ref().or(subject.owner_id.as_ref());
    let mut words = vec![name.cloned().unwrap_or_default()];
    words.extend(subject.package_id.as_ref().map(|package| format!("({package})")));
    words.extend(subject.route_path.as_ref().map(|path| format!("at {path}")));
    words.extend(subject.renderer_claim.as_ref().map(|claim| format!("for {claim}")));
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        words.push("unnamed".to_owned());
    }
    (kind, words.join(" "))
}

/// A location found in a source.
struct Mark<'s> {
    source: &'s Source,
    range: Range<usize>,
    note: &'s str,
}

/// Finds the locations of all diagnostics, walking each source once.
fn find<'s>(
    diagnostics: &'s [WorkspaceDiagnostic],
    input: Option<&'s Source>,
    policy: Option<&'s Source>,
) -> Vec<Vec<Mark<'s>>> {
    let mut marks: Vec<Vec<Mark<'s>>> = diagnostics.iter().map(|_| Vec::new()).collect();
    let locations: Vec<(usize, &InputLocation)> = diagnostics
        .iter()
        .enumerate()
        .flat_map(|(index, diagnostic)| diagnostic.locations.iter().map(move |location| (index, location)))
        .collect();
    // With a separate policy file, pointers below `policy` are found there.
    let in_policy_file = |location: &InputLocation| {
        policy.is_some() && location.pointer.first() == Some(&PointerStep::Field("policy".into()))
    };
    for (source, cut) in [(input, 0), (policy, 1)] {
        let Some(source) = source else { continue };
        let here: Vec<&(usize, &InputLocation)> =
            locations.iter().filter(|(_, location)| in_policy_file(location) == (cut == 1)).collect();
        let pointers: Vec<&[PointerStep]> =
            here.iter().map(|(_, location)| &location.pointer[cut..]).collect();
        for ((index, location), range) in here.into_iter().zip(locate(source.text(), &pointers)) {
            marks[*index].extend(range.map(|range| Mark { source, range, note: &location.note }));
        }
    }
    marks
}

/// A parse error with the source line.
pub(super) fn parse_error(source: &Source, error: &ParseError, help: &str) -> StyledText {
    let title = Level::ERROR.primary_title(error.reason.as_str());
    let group =
        Group::with_title(title).element(break_point(source, error)).element(Level::HELP.message(help));
    let mut text = StyledText::default();
    text.snippets(group);
    text
}

fn break_point<'s>(source: &'s Source, error: &ParseError) -> Element<'s> {
    let Ok(text) = std::str::from_utf8(&source.bytes) else {
        return Origin::path(source.name.as_str()).line(error.line).char_column(error.column).into();
    };
    let start = error.line.checked_sub(1).and_then(|line| source.line_starts.get(line)).copied().unwrap_or(0);
    let (_, line) = source.line(start);
    // The column may be one past the end of the line.
    let mut at = (start + error.column.saturating_sub(1)).min(line.end.saturating_sub(1)).max(start);
    while at > start && !text.is_char_boundary(at) {
        at -= 1;
    }
    let width = text[at..].chars().next().map_or(0, char::len_utf8);
    source.element(&(at..at + width), "", AnnotationKind::Primary)
}
