//! `tenon servers`: lists, installs, updates, restarts and removes language servers.

use camino::Utf8PathBuf;
use clap::Subcommand;
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{DaemonRequest, DaemonResponse};
use tenon_servers::install::{self as installation, InstallError};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;

pub(crate) mod install;
mod list;
mod update;

/// List, install, update, restart and remove language servers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Args),
    Install(install::Args),
    Update(update::Args),
    /// Restart a server in the daemon, also after a crash
    Restart {
        /// Server id, as shown by `tenon servers list`
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print the latest log lines of a server in the daemon
    Logs {
        /// Server id, as shown by `tenon servers list`
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Remove all versions of servers that Tenon installed
    Remove {
        /// Server ids, as shown by `tenon servers list`
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, invocation),
        Action::Install(args) => install::run(args, invocation),
        Action::Update(args) => update::run(args, invocation),
        Action::Restart { id } => restart(id, invocation),
        Action::Logs { id } => logs(id, invocation),
        Action::Remove { ids } => remove(&ids, invocation),
    }
}

/// The workspace root, if its registry has a server with this id.
fn root_with_server(id: &str, invocation: &Invocation) -> Result<Utf8PathBuf, Failure> {
    let root = invocation.root(None)?;
    let registry = language_servers::registry(&invocation.workspace(&root, vec![])?)?;
    match registry.get(id) {
        Some(_) => Ok(root),
        None => {
            let nearest = registry.nearest_id(id).cloned();
            Err(InstallError::UnknownServer { id: id.to_owned(), nearest }.into())
        }
    }
}

fn restart(id: String, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = root_with_server(&id, invocation)?;
    daemon_client::request(invocation, &root, DaemonRequest::Restart { id: id.clone() })?;
    invocation.print(format!("restarted: {id}"))?;
    Ok(Exit::Success)
}

fn logs(id: String, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = root_with_server(&id, invocation)?;
    match daemon_client::request(invocation, &root, DaemonRequest::Logs { id })? {
        DaemonResponse::Logs(lines) => {
            for line in lines {
                invocation.print(line)?;
            }
            Ok(Exit::Success)
        }
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

fn remove(ids: &[String], invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let managed = language_servers::managed(&workspace);
    let locks = installation::all_locks_of(&registry, ids)?;
    let mut removed = 0;
    for lock in locks {
        for version in managed.remove(lock, &mut |_| {})? {
            invocation.print(format!("removed: {} {version}", lock.name))?;
            removed += 1;
        }
    }
    if removed == 0 {
        invocation.eprint("nothing to remove: Tenon did not install these servers");
        return Ok(Exit::No);
    }
    Ok(Exit::Success)
}
