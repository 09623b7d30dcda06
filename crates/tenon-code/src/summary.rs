//! The one-line summary of every answer: short, stable, and with no path except those of unchecked files.

use std::collections::BTreeSet;
use std::fmt::Write;

use tenon_lsp::ServerId;
use tenon_lsp::model::AnswerNote;

use crate::completeness::CompleteAnswer;

/// The most modules outside the workspace that a summary names.
const MAX_OUTSIDE: usize = 3;

/// What limits the value of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Caveats {
    /// Languages with files here but without an available server.
    pub(crate) uncovered: Vec<String>,
    /// Servers for the document that are not installed or may not run.
    pub(crate) unavailable: Vec<ServerId>,
    /// Servers that do not report when they have loaded the workspace.
    pub(crate) unproven: Vec<ServerId>,
    /// What else there is to say.
    pub(crate) notes: Vec<AnswerNote>,
    /// Files that some server did not check, with the reason.
    pub(crate) unchecked: Vec<String>,
    /// Whether results were cut off.
    pub(crate) capped: bool,
}

/// How many unchecked files are listed before the rest is counted.
const MAX_UNCHECKED: usize = 3;

impl Caveats {
    /// The caveats of an answer about one document.
    pub(crate) fn of<T>(found: &CompleteAnswer<T>, notes: Vec<AnswerNote>) -> Self {
        Self {
            unavailable: found.unavailable.clone(),
            unproven: found.unproven.clone(),
            notes,
            ..Self::default()
        }
    }

    /// The summary that begins with `beginning`: `Returned 3 symbols (next page available). Not covered: go. (Capped.)`.
    pub(crate) fn summary(&self, beginning: &str, more: bool) -> String {
        let mut text = beginning.to_owned();
        text.push_str(if more { " (next page available)." } else { "." });
        if self.notes.iter().any(|note| matches!(note, AnswerNote::AskedAtName { .. })) {
            text.push_str(" Answered for the name beside the position.");
        }
        let outside: BTreeSet<String> = self
            .notes
            .iter()
            .filter_map(|note| match note {
                AnswerNote::Outside(place) => Some(place.module()),
                AnswerNote::AskedAtName { .. } | AnswerNote::FilesUnread => None,
            })
            .collect();
        let outside: Vec<String> = outside.into_iter().take(MAX_OUTSIDE).collect();
        let names =
            |servers: &[ServerId]| servers.iter().map(ServerId::as_str).collect::<Vec<_>>().join(", ");
        let notes = [
            ("Defined outside the workspace", outside.join(", ")),
            ("Not covered", self.uncovered.join(", ")),
            ("Not available", names(&self.unavailable)),
            ("Not proven complete", names(&self.unproven)),
        ];
        for (words, names) in notes.iter().filter(|(_, names)| !names.is_empty()) {
            write!(text, " {words}: {names}.").expect("a string takes everything");
        }
        if !self.unchecked.is_empty() {
            let shown = self.unchecked.iter().take(MAX_UNCHECKED).cloned().collect::<Vec<_>>().join(", ");
            let more = match self.unchecked.len().saturating_sub(MAX_UNCHECKED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            write!(text, " Not checked: {shown}{more}.").expect("a string takes everything");
        }
        if self.capped {
            text.push_str(" (Capped.)");
        }
        text
    }
}

/// `1 reference`, `2 references`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_1_summaries_are_short_and_stable() {
        let none = Caveats::default();
        let beginning = format!("Returned {}", count(50, "reference"));
        assert_eq!(none.summary(&beginning, true), "Returned 50 references (next page available).");
        assert_eq!(none.summary("Found 1 definition", false), "Found 1 definition.");
        let caveats = Caveats {
            uncovered: vec!["go".to_owned(), "zig".to_owned()],
            unavailable: vec![ServerId::new("other").unwrap()],
            unproven: vec![ServerId::new("mine").unwrap()],
            notes: Vec::new(),
            unchecked: ["a", "b", "c", "d", "e"].map(|file| format!("{file} (mine did not finish)")).into(),
            capped: true,
        };
        assert_eq!(
            caveats.summary(&format!("Returned {}", count(1, "symbol")), false),
            "Returned 1 symbol. Not covered: go, zig. Not available: other. Not proven complete: mine. \
             Not checked: a (mine did not finish), b (mine did not finish), c (mine did not finish) and 2 more. (Capped.)"
        );
    }
}
