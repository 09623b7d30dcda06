//! `tenon status`: whether a daemon serves the workspace, and how it is.

use serde_json::json;

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Say whether a daemon serves the workspace
///
/// Ends with 1 when none does.
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
                let mut answer = serde_json::to_value(welcome).expect("strings and numbers serialise");
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
            invocation.eprint("  hint: `tenon up` starts it, and so does `tenon mcp`");
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
            invocation.eprint("settings or trust have changed since the daemon started");
            invocation.eprint("  hint: it notices when no client is connected; `tenon stop` ends it at once");
        }
    }
    Ok(if welcome.is_some() { Exit::Success } else { Exit::No })
}
