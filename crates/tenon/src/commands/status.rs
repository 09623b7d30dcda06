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
    let info = daemon_client::status(invocation, &root)?;
    if args.json {
        let answer = match &info {
            Some(info) => {
                let mut answer =
                    serde_json::to_value(info).expect("a struct of strings and numbers serialises");
                answer["running"] = json!(true);
                answer
            }
            None => json!({"running": false, "root": root}),
        };
        invocation.print_data(answer.to_string())?;
    } else {
        invocation.print(format!("root: {root}"))?;
        let Some(info) = &info else {
            invocation.print("daemon: not running")?;
            invocation.eprint("  hint: run `tenon up` to start it");
            return Ok(Exit::No);
        };
        invocation.print(format!("daemon: running, process {}, version {}", info.pid, info.version))?;
        invocation.print(format!("started: {}", info.started_at))?;
        invocation.print(format!("clients: {}", info.clients))?;
        let configured =
            invocation.workspace(&root, vec![]).map(|workspace| workspace.config().mcp.surfaces.clone());
        let configured = configured.unwrap_or_default();
        let (default, others): (Vec<&str>, Vec<&str>) = info
            .surfaces
            .iter()
            .map(String::as_str)
            .partition(|name| configured.iter().any(|default| default == name));
        invocation.print(format!("default surfaces: {}", default.join(", ")))?;
        invocation.print(format!("other surfaces: {}", others.join(", ")))?;
        if let Some(http) = &info.http {
            invocation.print(format!("http: {http}/mcp"))?;
        }
        invocation.print(format!("log: {}", info.log))?;
        if info.outdated {
            invocation.eprint("warning: settings or trust changed after the daemon started");
            invocation
                .eprint("  hint: run `tenon stop`; the next client starts a daemon with the new settings");
        }
    }
    Ok(if info.is_some() { Exit::Success } else { Exit::No })
}
