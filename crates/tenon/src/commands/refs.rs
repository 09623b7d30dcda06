//! `tenon refs`: shows where a symbol is used.

use clap::ValueEnum;
use tenon_code::explore::{ExploreRequest, OnlyRole, References};

use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show where a symbol is used
///
/// Lists the lines by file, each with the declaration around it. Exits with 1 if there is no such symbol.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the symbol, as for `tenon find`
    #[arg(value_name = "SYMBOL")]
    symbol: String,
    /// Only uses of this kind
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Only in this file, folder or glob
    #[arg(long)]
    path: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Only {
    Calls,
    Imports,
    Writes,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { symbol, only, path } = args;
    let only = only.map(|only| match only {
        Only::Calls => OnlyRole::Calls,
        Only::Imports => OnlyRole::Imports,
        Only::Writes => OnlyRole::Writes,
    });
    let max_bytes = Some(explore_text::MAX_BYTES);
    let request = References { symbol, only, path, cursor: None, max_bytes };
    explore_text::ask(ExploreRequest::References(request), invocation)
}
