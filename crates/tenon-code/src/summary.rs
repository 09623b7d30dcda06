//! The one-line summary of every answer: short, stable, and without a path.

use std::fmt::Write;

use tenon_lsp::ServerId;

/// What limits the value of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Caveats {
    /// Languages with files here but without an available server.
    pub(crate) uncovered: Vec<String>,
    /// Servers that do not report when they have loaded the workspace.
    pub(crate) unproven: Vec<ServerId>,
    /// Whether results were cut off.
    pub(crate) capped: bool,
}

impl Caveats {
    /// The summary that begins with `beginning`: `Returned 3 symbols (next page available). Not covered: go. (Capped.)`.
    pub(crate) fn summary(&self, beginning: &str, more: bool) -> String {
        let mut text = beginning.to_owned();
        text.push_str(if more { " (next page available)." } else { "." });
        let unproven: Vec<&str> = self.unproven.iter().map(ServerId::as_str).collect();
        let notes = [("Not covered", self.uncovered.join(", ")), ("Perhaps incomplete", unproven.join(", "))];
        for (words, names) in notes.iter().filter(|(_, names)| !names.is_empty()) {
            write!(text, " {words}: {names}.").expect("a string takes everything");
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
            unproven: vec![ServerId::new("mine").unwrap()],
            capped: true,
        };
        assert_eq!(
            caveats.summary(&format!("Returned {}", count(1, "symbol")), false),
            "Returned 1 symbol. Not covered: go, zig. Perhaps incomplete: mine. (Capped.)"
        );
    }
}
