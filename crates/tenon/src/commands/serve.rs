//! `tenon serve`: runs the daemon in the foreground, optionally with HTTP.

use tenon_server::config::FlagSetting;

use crate::daemon_client::{self, ServeOptions};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Run the daemon in the foreground, optionally with HTTP
///
/// Runs until you stop it. With `--http`, serves MCP at `/mcp` and `/mcp/<surface>` on a loopback port and prints the
/// address on stdout. If the workspace's daemon is already running, that daemon serves HTTP for as long as this command
/// runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serve HTTP on a loopback port
    #[arg(long)]
    http: bool,
    /// Port, or 0 for any free port [default: the setting `http.port`]
    #[arg(long, requires = "http")]
    port: Option<u16>,
    /// Allow clients to change files of this workspace through the `edit` surface
    #[arg(long)]
    allow_edit: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let mut flags = Vec::new();
    if args.allow_edit {
        flags.push(FlagSetting { name: "--allow-edit", key: "edit.allow", value: root.to_string() });
    }
    daemon_client::serve(invocation, &root, ServeOptions { http: args.http, port: args.port, flags })
}
