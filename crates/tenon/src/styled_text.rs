//! Text for a terminal with our own colours, in which everything else is visible.

use annotate_snippets::{Group, Renderer};
use tenon_contract::visible::visible;

/// Text whose only escape sequences are our own.
#[derive(Debug, Default)]
pub(crate) struct StyledText(String);

/// The colour of a label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Red,
    Blue,
    Green,
    Yellow,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "\u{1b}[1;31m",
            Self::Blue => "\u{1b}[1;36m",
            Self::Green => "\u{1b}[1;32m",
            Self::Yellow => "\u{1b}[1;33m",
        }
    }
}

impl StyledText {
    /// Adds a line that starts with a coloured label.
    pub(crate) fn labelled(&mut self, indent: &str, colour: Colour, label: &'static str, text: &str) {
        let code = colour.code();
        self.0.push_str(&format!("{indent}{code}{label}\u{1b}[0m: {}\n", visible(text)));
    }

    /// Adds a coloured part of a line.
    pub(crate) fn coloured(&mut self, colour: Colour, text: &str) {
        self.0.push_str(&format!("{}{}\u{1b}[0m", colour.code(), visible(text)));
    }

    /// Adds a part of a line without colours.
    pub(crate) fn plain(&mut self, text: &str) {
        self.0.push_str(&visible(text));
    }

    /// Ends a line that was made of parts.
    pub(crate) fn end_line(&mut self) {
        self.0.truncate(self.0.trim_end_matches(' ').len());
        self.0.push('\n');
    }

    /// Adds a line with a word in it that is coloured and links to a file.
    pub(crate) fn linked_line(&mut self, before: &str, word: &str, uri: &str, after: &str) {
        let (before, word, after) = (visible(before), visible(word), visible(after));
        let (start, end) = (format!("\u{1b}]8;;{}\u{1b}\\", visible(uri)), "\u{1b}]8;;\u{1b}\\");
        self.0.push_str(&format!("{before}{start}\u{1b}[36m{word}\u{1b}[0m{end}{after}\n"));
    }

    /// Adds a line without colours.
    pub(crate) fn line(&mut self, text: &str) {
        self.0.push_str(&visible(text));
        self.0.push('\n');
    }

    /// Adds a message with source lines; lines longer than 140 columns are cut around the mark. It has colours only if its
    /// text has no hidden characters, since colours of the text could not be told from ours.
    pub(crate) fn snippets(&mut self, group: Group<'_>) {
        let report = [group];
        let plain = Renderer::plain().render(&report);
        if plain.lines().all(|line| visible(line) == line) {
            self.0.push_str(&Renderer::styled().render(&report));
            self.0.push('\n');
        } else {
            plain.lines().for_each(|line| self.line(line));
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
