//! `tenon daemon`: what other commands start; people use `tenon up`, `tenon mcp` or `tenon serve`.

use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::link;
use crate::report::Failure;

/// Be the workspace's daemon, detached
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whoever starts this process holds the start lock
    #[arg(long)]
    start_lock_held: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    Ok(link::daemon(invocation, &root, args.start_lock_held))
}
