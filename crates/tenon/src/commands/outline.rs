//! `tenon outline`: shows the declarations of a file, or the map of a folder.

use tenon_code::explore::{ExploreRequest, Outline};

use crate::exit::Exit;
use crate::explore_text;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show the declarations of a file, or the map of a folder or the workspace
///
/// A map lists files with their main declarations, those that most other files use first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or folder [default: the workspace]
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Depth of declarations, or of folders
    #[arg(long)]
    depth: Option<usize>,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Args { path, depth } = args;
    let request = Outline { path, depth, max_bytes: Some(explore_text::MAX_BYTES) };
    explore_text::ask(ExploreRequest::Outline(request), invocation)
}
