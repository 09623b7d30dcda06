//! `tenon find`: shows declarations by name.

use tenon_code::explore::{Body, ExploreRequest, Find};

use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show where a symbol is declared, with its source
///
/// NAME is a name (`filter`), the end of a name path (`QuerySet.filter`), one in a file (`query.py#filter`) or a place
/// (`query.py:1475`). Several matches are listed with their signatures. Exits with 1 if there is none.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the symbol
    #[arg(value_name = "NAME")]
    name: String,
    /// Only this kind, for example `class` or `function`
    #[arg(long)]
    kind: Option<String>,
    /// Only in this file, folder or glob
    #[arg(long)]
    path: Option<String>,
    /// Leave out the source
    #[arg(long)]
    no_source: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { name, kind, path, no_source } = args;
    let body = if no_source { Body::No } else { Body::Auto };
    let request = Find { name, kind, path, body, max_bytes: Some(explore_text::MAX_BYTES) };
    explore_text::ask(ExploreRequest::Find(request), invocation)
}
