//! The results of language servers, in one form for all servers.
//!
//! Positions are zero-based and count UTF-16 units, whatever encoding a server uses. All paths are inside the roots; results
//! outside are dropped before counting. Positions do not count a byte order mark, as in servers and editors.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenon_contract::position::{Position, Range};
use tenon_contract::root::WorkspacePath;

use tenon_servers::registry::ServerId;

use crate::outside::OutsidePlace;

/// A range in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub path: WorkspacePath,
    pub range: Range,
}

/// A symbol of a document or the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub path: WorkspacePath,
    pub name: String,
    pub kind: SymbolKind,
    /// The full range, or what the server's flat list gives.
    pub range: Range,
    /// The range of the name, or the full range if the name is not found in it.
    pub selection: Range,
    /// The name of the enclosing symbol.
    pub container: Option<String>,
    /// The nesting depth in a document's symbols, which list parents first; zero in flat lists.
    pub depth: u32,
}

impl Symbol {
    fn key(&self) -> (&WorkspacePath, Range, &str, SymbolKind, Option<&str>, Range) {
        (&self.path, self.range, &self.name, self.kind, self.container.as_deref(), self.selection)
    }

    /// The order of merged lists.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The kind of a symbol, by the protocol's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolKind(pub u32);

impl SymbolKind {
    /// The protocol's name in lower camel case, or `unknown`.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 26] = [
            "file",
            "module",
            "namespace",
            "package",
            "class",
            "method",
            "property",
            "field",
            "constructor",
            "enum",
            "interface",
            "function",
            "variable",
            "constant",
            "string",
            "number",
            "boolean",
            "array",
            "object",
            "key",
            "null",
            "enumMember",
            "struct",
            "event",
            "operator",
            "typeParameter",
        ];
        (self.0 as usize).checked_sub(1).and_then(|index| NAMES.get(index)).copied().unwrap_or("unknown")
    }
}

/// The format of a hover's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Markup {
    Markdown,
    Plaintext,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoverPart {
    pub markup: Markup,
    pub value: String,
}

/// The hover at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoverInfo {
    pub parts: Vec<HoverPart>,
    pub range: Option<Range>,
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    Info,
    Hint,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Hint => "hint",
        }
    }
}

/// A diagnostic of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub range: Range,
    /// The protocol's number as the server sent it, if it did.
    pub severity: Option<u32>,
    pub code: Option<String>,
    pub source: Option<String>,
    pub message: String,
    #[serde(skip)]
    pub fix_data: FixData,
}

/// What a server wants back when it is asked for fixes of a diagnostic: a code that is not text, and the server's own data, as
/// one JSON object. It is not part of what the diagnostic says, so all are equal.
#[derive(Debug, Clone, Default)]
pub struct FixData(pub(crate) Option<Arc<str>>);

impl PartialEq for FixData {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for FixData {}

impl Diagnostic {
    /// A missing severity is an error, an unknown one is information.
    pub fn severity(&self) -> Severity {
        match self.severity {
            None | Some(1) => Severity::Error,
            Some(2) => Severity::Warning,
            Some(4) => Severity::Hint,
            Some(_) => Severity::Info,
        }
    }

    fn key(&self) -> (Position, Severity, Option<&str>, &str, Position, Option<&str>) {
        (
            self.range.start,
            self.severity(),
            self.source.as_deref(),
            &self.message,
            self.range.end,
            self.code.as_deref(),
        )
    }

    /// The order of every list of diagnostics of one file: line, character, severity, source, message.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Merges the diagnostics of one file from several servers into one sorted list. If several servers report the same message
/// for the same range, the server whose diagnostic sorts first wins; within one server, only exact duplicates are removed.
pub(crate) fn merge_diagnostics(shares: Vec<Vec<Diagnostic>>) -> Vec<Diagnostic> {
    let servers = shares.into_iter().enumerate();
    let mut all: Vec<(usize, Diagnostic)> =
        servers.flat_map(|(server, share)| share.into_iter().map(move |one| (server, one))).collect();
    all.sort_by(|(_, a), (_, b)| a.compare(b));
    let mut said = std::collections::BTreeMap::new();
    let keep: Vec<bool> = all
        .iter()
        .map(|(server, one)| *said.entry((one.range, one.message.as_str())).or_insert(*server) == *server)
        .collect();
    let mut kept: Vec<Diagnostic> =
        all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|((_, one), _)| one).collect();
    kept.dedup();
    kept
}

/// Why a server's results are missing from an answer or may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    /// It was still starting or loading its project at the deadline.
    Indexing,
    /// It was ready but did not answer in time, or a newer edit superseded the request.
    Pending,
    /// It crashed, or was marked broken before.
    Broken,
    /// It returned an error, with this message.
    Refused(String),
    /// It takes this character in the file's path for something else, so it does not get the file.
    UnsupportedPath(char),
    /// Its answer reached the server's limit.
    Limit,
    /// Its answer is larger than what we read from a server; it was skipped.
    TooLarge,
    /// It gave no evidence that its answers are complete.
    Unproven(Doubt),
    /// It is not installed or may not run. Such a gap does not make an answer incomplete.
    Unavailable(String),
}

/// Why it is not known whether a server's answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// It does not report when it has loaded the project, or has no readiness rule.
    NoProgress,
    /// It reported errors in headers that it read by themselves: what it finds there replaces what it found while it read the
    /// whole program.
    HeaderErrors,
    /// It lacks the source of the standard library, so it finds nothing inside that library's macros.
    LibrarySource,
    /// Files that may belong to the answer are neither in its projects nor opened for the question.
    UnreadFiles,
}

/// A server whose results are missing or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    pub server: ServerId,
    pub why: GapReason,
}

/// A merged answer, with the servers behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LspAnswer<T> {
    pub value: T,
    /// The servers that were asked or should have been, in registry order.
    pub servers: Vec<ServerId>,
    /// In registry order. The answer is complete if this has only [`GapReason::Unavailable`].
    pub gaps: Vec<Gap>,
    /// What else to say about the answer.
    pub notes: Vec<AnswerNote>,
}

/// Something to say about an answer that is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerNote {
    /// The position is on a declaration but beside the name, so servers were queried at the name.
    AskedAtName { name: String, at: Position },
    /// A definition is outside the roots.
    Outside(OutsidePlace),
    /// The workspace's files were not all known in time, so some servers may not have been asked.
    FilesUnread,
}

impl<T> LspAnswer<T> {
    /// Whether no available server's results are missing.
    pub fn is_complete(&self) -> bool {
        self.gaps.iter().all(|gap| matches!(gap.why, GapReason::Unavailable(_)))
            && !self.notes.contains(&AnswerNote::FilesUnread)
    }

    /// Whether every available server answered, whether or not its answer is proven complete.
    pub fn is_answered(&self) -> bool {
        self.gaps.iter().all(|gap| matches!(gap.why, GapReason::Unproven(_) | GapReason::Unavailable(_)))
            && !self.notes.contains(&AnswerNote::FilesUnread)
    }

    /// The servers that have not finished.
    pub fn pending(&self) -> impl Iterator<Item = &ServerId> {
        self.gaps
            .iter()
            .filter(|gap| matches!(gap.why, GapReason::Indexing | GapReason::Pending))
            .map(|gap| &gap.server)
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> LspAnswer<U> {
        LspAnswer { value: change(self.value), servers: self.servers, gaps: self.gaps, notes: self.notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line: u32, severity: u32, source: &str, message: &str) -> Diagnostic {
        Diagnostic {
            range: Range::new(Position::new(line, 0), Position::new(line, 1)),
            severity: Some(severity),
            code: None,
            source: Some(source.to_owned()),
            message: message.to_owned(),
            fix_data: FixData::default(),
        }
    }

    #[test]
    fn same_diagnostic_from_two_servers_is_listed_once() {
        let pyright = vec![
            diagnostic(1, 1, "pyright", "unused"),
            diagnostic(1, 1, "pyright", "undefined"),
            diagnostic(1, 2, "pyright", "unused"),
            diagnostic(1, 1, "pyright", "unused"),
        ];
        let ruff = vec![diagnostic(2, 1, "b", "unused"), diagnostic(1, 2, "ruff", "unused")];
        let merged = merge_diagnostics(vec![ruff, pyright]);
        let shown: Vec<_> = merged
            .iter()
            .map(|one| {
                let source = one.source.as_deref().unwrap();
                (one.range.start.line, one.severity.unwrap(), source, one.message.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (1, 1, "pyright", "undefined"),
                (1, 1, "pyright", "unused"),
                (1, 2, "pyright", "unused"),
                (2, 1, "b", "unused"),
            ]
        );
    }

    #[test]
    fn missing_severity_is_error_and_unknown_is_info() {
        let of = |severity| Diagnostic { severity, ..diagnostic(0, 1, "", "") };
        assert_eq!(of(None).severity(), Severity::Error);
        assert_eq!(of(Some(9)).severity(), Severity::Info);
        assert_eq!(of(Some(4)).severity().as_str(), "hint");
    }

    #[test]
    fn kinds_have_the_protocols_names() {
        assert_eq!(SymbolKind(12).name(), "function");
        assert_eq!(SymbolKind(22).name(), "enumMember");
        assert_eq!(SymbolKind(0).name(), "unknown");
        assert_eq!(SymbolKind(27).name(), "unknown");
    }
}
