//! `tenon mcp`: the MCP server that an agent starts.

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Serve MCP on stdin and stdout
///
/// Agents run this. Forwards messages between an agent and the workspace's daemon, and starts the daemon if necessary. All
/// agents of a workspace share one daemon and its language servers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Surfaces to offer, for example `code,tasks` [default: the setting `mcp.surfaces`]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    surface: Vec<String>,
    /// Serve from this process, without a daemon
    #[arg(long)]
    no_daemon: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let surfaces = (!args.surface.is_empty()).then_some(args.surface);
    invocation.eprint(format!("root: {root}"));
    match args.no_daemon {
        true => daemon_client::serve_in_process(invocation, &root, surfaces.as_deref()),
        false => daemon_client::bridge(invocation, &root, surfaces),
    }
}
