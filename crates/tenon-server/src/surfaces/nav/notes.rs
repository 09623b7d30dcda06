//! What the text of a result says besides the result: missing servers, another place, a list that continues.

use serde_json::Value;
use tenon_lsp::codec::MAX_BODY_BYTES;
use tenon_lsp::model::{AnswerNote, Doubt, Gap, GapReason, LspAnswer};

use super::classify::Failure;
use super::page::Page;
use super::shape::object;
use crate::surface::ToolAnswer;

/// The most further places outside the workspace that a text names.
const MAX_OUTSIDE: usize = 3;

/// What a result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryScope {
    /// The symbol at a position: one server that knows it suffices.
    Position,
    /// The text of one document.
    Document,
    /// All files, which every server must have read.
    Workspace,
}

/// The notes of one result.
pub(super) struct Notes {
    /// The text of an empty result.
    nothing: String,
    lines: Vec<String>,
}

impl Notes {
    /// The notes on a result. Empty and without a server that could know is a failure, not "nothing found".
    pub(super) fn new<T>(found: &LspAnswer<T>, scope: QueryScope, is_empty: bool) -> Result<Self, Failure> {
        // A server may run once per project; one note names it.
        let mut missing: Vec<String> = found.gaps.iter().filter_map(gap_note).collect();
        missing.dedup();
        let files_unread = found.notes.contains(&AnswerNote::FilesUnread);
        let unread = "the files of the workspace are still being read; ask again".to_owned();
        if is_empty && !found.is_answered() {
            return Err(Failure::Incomplete(
                missing.into_iter().chain(files_unread.then_some(unread)).collect(),
            ));
        }
        let mut nothing = "nothing found".to_owned();
        let mut lines = missing;
        lines.extend(files_unread.then_some(unread));
        let is_outside = found.notes.iter().any(|note| matches!(note, AnswerNote::Outside(_)));
        let doubts =
            scope == QueryScope::Workspace || (is_empty && scope == QueryScope::Position && !is_outside);
        if doubts {
            lines.extend(found.gaps.iter().filter_map(doubt_note));
        }
        if found.servers.is_empty() {
            let what = if scope == QueryScope::Workspace { "the files here" } else { "this file" };
            lines.push(format!("no language server answers this for {what}"));
        }
        let mut outside = 0;
        for note in &found.notes {
            match note {
                AnswerNote::AskedAtName { name, at } => lines.push(format!(
                    "the position is beside the name `{name}`; answered for {}:{}",
                    u64::from(at.line) + 1,
                    u64::from(at.character) + 1
                )),
                AnswerNote::Outside(place) if is_empty && nothing == "nothing found" => {
                    nothing = format!("defined outside the workspace: {place}");
                }
                AnswerNote::Outside(place) if outside < MAX_OUTSIDE => {
                    outside += 1;
                    lines.push(format!("also defined outside the workspace: {place}"));
                }
                AnswerNote::Outside(_) | AnswerNote::FilesUnread => {}
            }
        }
        Ok(Self { nothing, lines })
    }

    /// A result with this text.
    pub(super) fn answer(self, structured: Value, text: String) -> ToolAnswer {
        let mut text = text;
        for line in self.lines {
            text.push_str(&format!("\n({line})"));
        }
        ToolAnswer::structured(structured).with_text(text)
    }

    /// A page of a list.
    pub(super) fn list(mut self, key: &str, page: Page) -> ToolAnswer {
        self.lines.extend(page.note);
        let text = if page.lines.is_empty() { self.nothing.clone() } else { page.lines.join("\n") };
        self.answer(object([(key, Value::Array(page.values))]), text)
    }
}

/// The note for a server that did not contribute to a result.
fn gap_note(gap: &Gap) -> Option<String> {
    let server = &gap.server;
    match &gap.why {
        GapReason::Indexing => Some(format!("`{server}` is still loading the project; ask again")),
        GapReason::Pending => Some(format!("`{server}` did not answer in time; ask again")),
        GapReason::Broken => {
            Some(format!("`{server}` is broken; restart it with `tenon servers restart {server}`"))
        }
        GapReason::Refused(message) => Some(format!("`{server}` refused: {message}")),
        GapReason::Limit => Some(format!("`{server}` does not list more than this")),
        GapReason::UnsupportedPath(found) => Some(format!("`{server}` does not support `{found}` in a path")),
        GapReason::TooLarge => Some(format!("the answer of `{server}` exceeds {MAX_BODY_BYTES} bytes")),
        GapReason::Unavailable(reason) => Some(format!("`{server}` is not available: {reason}")),
        GapReason::Unproven(_) => None,
    }
}

/// The note for a server whose result may be incomplete.
fn doubt_note(gap: &Gap) -> Option<String> {
    let GapReason::Unproven(doubt) = gap.why else {
        return None;
    };
    let why = match doubt {
        Doubt::NoProgress => "does not report indexing progress",
        Doubt::HeaderErrors => "reports errors in headers, which it reads by themselves",
        Doubt::LibrarySource => {
            "lacks the standard library's source, so uses inside its macros are missing (see `tenon doctor`)"
        }
        Doubt::UnreadFiles => "has not read all files that may belong to the result",
    };
    Some(format!("`{}` {why}; results may be incomplete", gap.server))
}
