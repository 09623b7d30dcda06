//! What an answer says about its completeness: nothing if all is well, else one line for each reason.

use std::collections::BTreeSet;

use tenon_lsp::ServerId;
use tenon_lsp::model::{AnswerNote, Doubt, Gap, GapReason, LspAnswer};

/// Notes without duplicates, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    lines: Vec<String>,
    seen: BTreeSet<String>,
}

impl Notes {
    pub(super) fn add(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.seen.insert(note.clone()) {
            self.lines.push(note);
        }
    }

    /// Adds what is missing in an answer of language servers.
    pub(super) fn add_gaps<T>(&mut self, answer: &LspAnswer<T>) {
        for gap in &answer.gaps {
            self.add(gap_note(gap));
        }
        if answer.notes.contains(&AnswerNote::FilesUnread) {
            self.add(FILES_UNREAD);
        }
    }

    /// Whether the index does not know all files.
    pub(super) fn files_unread(&self) -> bool {
        self.seen.contains(FILES_UNREAD)
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// The watcher has not read all files yet.
pub(super) const FILES_UNREAD: &str = "the files of the workspace are still being read; ask again";

fn gap_note(gap: &Gap) -> String {
    let server: &ServerId = &gap.server;
    match &gap.why {
        GapReason::Indexing => format!("{server} is still loading the project; ask again"),
        GapReason::Pending => format!("{server} did not answer in time; ask again"),
        GapReason::Broken => format!("{server} is broken; run `tenon servers restart {server}`"),
        GapReason::Refused(message) => {
            format!("{server} refused: {}", tenon_lsp::diagnostic_line::one_line(message, 200))
        }
        GapReason::Limit => format!("{server} does not list more than this"),
        GapReason::UnsupportedPath(found) => format!("{server} does not support `{found}` in a path"),
        GapReason::TooLarge => format!("the answer of {server} was too large; some results are missing"),
        GapReason::Unavailable(reason) => format!("{server} is not available: {reason}"),
        GapReason::Unproven(Doubt::NoProgress) => {
            format!("{server} does not report indexing progress; results may be incomplete")
        }
        GapReason::Unproven(Doubt::HeaderErrors) => {
            format!("{server} reports errors in headers; results may be incomplete")
        }
        GapReason::Unproven(Doubt::LibrarySource) => {
            format!(
                "{server} lacks the standard library's source, so uses inside its macros are missing; `tenon doctor` says how to install it"
            )
        }
        GapReason::Unproven(Doubt::UnreadFiles) => {
            format!("{server} has not read all files that may belong here; results may be incomplete")
        }
    }
}
