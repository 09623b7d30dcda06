//! `tenon status`: shows whether the workspace's daemon is running.

use serde_json::json;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Show the status of the workspace's daemon
///
/// Exits with 1 if no daemon is running.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let welcome = daemon_client::status(invocation, &root)?;
    if args.json {
        let answer = match &welcome {
            Some(welcome) => {
                let mut answer =
                    serde_json::to_value(welcome).expect("a struct of strings and numbers serialises");
                answer["running"] = json!(true);
                answer
            }
            None => json!({"running": false, "root": root}),
        };
        invocation.print(answer.to_string())?;
    } else {
        invocation.print(format!("root: {root}"))?;
        let Some(welcome) = &welcome else {
            invocation.print("daemon: not running")?;
            invocation.eprint("  hint: run `tenon up` to start it");
            return Ok(Exit::No);
        };
        invocation.print(format!("daemon: running, process {}, version {}", welcome.pid, welcome.version))?;
        invocation.print(format!("started: {}", welcome.started_at))?;
        invocation.print(format!("clients: {}", welcome.clients))?;
        invocation.print(format!("surfaces: {}", welcome.surfaces.join(", ")))?;
        if let Some(http) = &welcome.http {
            invocation.print(format!("http: {http}/mcp"))?;
        }
        invocation.print(format!("log: {}", welcome.log))?;
        if welcome.outdated {
            invocation.eprint("warning: settings or trust changed after the daemon started");
            invocation
                .eprint("  hint: run `tenon stop`; the next client starts a daemon with the new settings");
        }
    }
    Ok(if welcome.is_some() { Exit::Success } else { Exit::No })
}
