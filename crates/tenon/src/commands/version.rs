//! `tenon version`: the versions of this program and of the running daemon.

use serde_json::json;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Print the versions of this program and of the workspace's daemon
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let own = env!("CARGO_PKG_VERSION");
    // Without a workspace there is no daemon to ask.
    let daemon =
        invocation.root(None).and_then(|root| daemon_client::status(invocation, &root)).ok().flatten();
    let daemon = daemon.map(|info| info.version);
    if args.json {
        invocation.print_data(json!({"version": own, "daemon": daemon}).to_string())?;
        return Ok(Exit::Success);
    }
    invocation.print(format!("tenon {own}"))?;
    match daemon {
        Some(version) => invocation.print(format!("daemon {version}"))?,
        None => invocation.print("daemon not running")?,
    }
    Ok(Exit::Success)
}
