//! `tenon serve`: the daemon in the foreground, and HTTP.

use tenon_server::config::Flag;

use crate::daemon_client::{self, ServeOptions};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Serve the workspace in the foreground, over HTTP if asked
///
/// Does not end by itself. With `--http`, MCP is served at `/mcp` and `/mcp/<surface>` on a loopback port; its address is
/// printed on stdout. If a daemon serves the workspace already, HTTP is served by that one for as long as this command runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serve HTTP on loopback
    #[arg(long)]
    http: bool,
    /// The port; otherwise `http.port`, and any free one if that is 0
    #[arg(long, requires = "http")]
    port: Option<u16>,
    /// Let clients change files of this workspace through the `edit` surface
    #[arg(long)]
    allow_edit: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let mut flags = Vec::new();
    if args.allow_edit {
        flags.push(Flag { name: "--allow-edit", key: "edit.allow", value: root.to_string() });
    }
    daemon_client::serve(invocation, &root, ServeOptions { http: args.http, port: args.port, flags })
}
