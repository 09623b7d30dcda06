//! `tenon stop`: stops the workspace's daemon.

use tenon_server::workspace::former_root;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Stop the workspace's daemon
///
/// Waits until the daemon and its language servers have exited. Disconnects its clients; the next client starts a new
/// daemon. Exits with 1 if no daemon is running.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kill the daemon if it does not respond
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = match invocation.root(None) {
        Ok(root) => root,
        Err(failure) => invocation.explicit_root().and_then(former_root).ok_or(failure)?,
    };
    let stopped = daemon_client::stop(invocation, &root, args.force)?;
    invocation.eprint(if stopped { format!("stopped: {root}") } else { format!("not running: {root}") });
    Ok(if stopped { Exit::Success } else { Exit::No })
}
