//! Problems of a configuration, with their locations.
//!
//! A problem carries the source text, so that a terminal can show the line; the message itself contains only file and
//! line number.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use camino::Utf8PathBuf;

/// A text that settings are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    pub path: Utf8PathBuf,
    pub text: Arc<str>,
}

impl SourceText {
    pub(crate) fn new(path: impl Into<Utf8PathBuf>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// The line, from 1, that contains the byte offset.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        self.text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The span of a line, from 1, without indentation and line end.
    pub(crate) fn span_of_line(&self, line: usize) -> Range<usize> {
        let lines = self.text.split_inclusive('\n').take(line);
        let (start, text) = lines.fold((0, ""), |(start, text), next| (start + text.len(), next));
        let text = text.trim_end();
        start + text.len() - text.trim_start().len()..start + text.len()
    }
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigLocation {
    Text { source: SourceText, span: Range<usize> },
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for ConfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { source, span } => write!(f, "{}:{}", source.path, source.line_of(span.start)),
            Self::Variable(name) => write!(f, "the environment variable `{name}`"),
            Self::Flag(name) => write!(f, "the flag `{name}`"),
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({location})")]
pub struct ConfigProblem {
    pub message: String,
    pub hint: Option<String>,
    pub location: ConfigLocation,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// At least one problem, in the order of the sources and then of the text.
    #[error("{}", first(.0))]
    Invalid(Vec<ConfigProblem>),
    #[error("`{path}` exceeds {limit} bytes")]
    TooLarge { path: Utf8PathBuf, limit: usize },
    #[error("`{path}` is not UTF-8 text")]
    NotText { path: Utf8PathBuf },
    #[error("`{path}` is not a regular file")]
    NotAFile { path: Utf8PathBuf },
    #[error("`{path}` links to a file outside the workspace")]
    Outside { path: Utf8PathBuf },
    #[error("cannot read `{path}`")]
    Unreadable { path: Utf8PathBuf, source: std::io::Error },
}

fn first(problems: &[ConfigProblem]) -> String {
    match problems {
        [] => "the configuration is invalid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_lines_convert_both_ways() {
        let source = SourceText::new("x", "[a]\n  b = 1  \n\nlast");
        assert_eq!(&source.text[source.span_of_line(1)], "[a]");
        assert_eq!(&source.text[source.span_of_line(2)], "b = 1");
        assert_eq!(&source.text[source.span_of_line(3)], "");
        assert_eq!(&source.text[source.span_of_line(4)], "last");
        for line in 1..=4 {
            assert_eq!(source.line_of(source.span_of_line(line).start), line);
        }
    }
}
