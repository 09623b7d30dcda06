//! `tenon search`: finds lines by text, regular expression or syntax pattern.

use tenon_code::explore::{ExploreRequest, Search, SearchMode};

use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Search text, a regular expression or a syntax pattern
///
/// Lists the lines by file, each with the declaration around it. A syntax pattern is code in which `$A` matches one
/// node and `$$$` any number: `foo($A, $$$)`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to search for
    #[arg(value_name = "PATTERN")]
    pattern: String,
    /// Read PATTERN as a regular expression
    #[arg(long, conflicts_with = "syntax")]
    regex: bool,
    /// Read PATTERN as a syntax pattern
    #[arg(long)]
    syntax: bool,
    /// Only in this file, folder or glob
    #[arg(long)]
    path: Option<String>,
    /// Only in files of this language
    #[arg(long)]
    language: Option<String>,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { pattern, regex, syntax, path, language } = args;
    let mode = match (regex, syntax) {
        (true, _) => SearchMode::Regex,
        (_, true) => SearchMode::Syntax,
        _ => SearchMode::Text,
    };
    let max_bytes = Some(explore_text::MAX_BYTES);
    let request = Search { pattern, mode, path, language, cursor: None, max_bytes };
    explore_text::ask(ExploreRequest::Search(request), invocation)
}
