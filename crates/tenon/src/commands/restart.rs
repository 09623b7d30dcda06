//! `tenon restart`: stops the workspace's daemon and starts a new one.

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Restart the workspace's daemon
///
/// Waits until the daemon and its language servers have exited, then starts a daemon with the current settings and trust.
/// Disconnects clients.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kill the daemon if it does not respond
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let stopped = daemon_client::stop(invocation, &root, args.force)?;
    let started = daemon_client::probe(invocation, &root)?;
    let what = if stopped { "restarted" } else { "started" };
    invocation.eprint(format!("{what}: {root}, process {}", started.daemon.pid));
    Ok(Exit::Success)
}
