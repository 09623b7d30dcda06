//! `tenon daemon`: the detached daemon process. Other commands start it; users run `tenon up`, `tenon mcp` or `tenon serve`.

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Run the workspace's daemon, detached
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The parent process holds the start lock
    #[arg(long)]
    start_lock_held: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    Ok(daemon_client::run_daemon(invocation, &root, args.start_lock_held))
}
