//! `tenon stop`: the end of the workspace's daemon.

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// End the workspace's daemon
///
/// Waits until it has ended, its language servers included. Clients that are connected lose it; the next one starts a new
/// one. Ends with 1 when there was none.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kill it if it does not answer
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let stopped = daemon_client::stop(invocation, &root, args.force)?;
    invocation.eprint(if stopped { format!("stopped: {root}") } else { format!("not running: {root}") });
    Ok(if stopped { Exit::Success } else { Exit::No })
}
