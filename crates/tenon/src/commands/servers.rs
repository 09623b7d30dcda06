//! `tenon servers`: lists, installs, restarts and removes language servers.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{DaemonRequest, DaemonResponse, ServerSummary};
use tenon_servers::find::{Availability, ProgramOrigin};
use tenon_servers::install::{self, InstallError, InstallProgress, Installed, Managed, PackageLock, Tools};
use tenon_servers::language_count::LanguageCount;
use tenon_servers::registry::{Install, ServerEntry};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;

/// List, install, restart and remove language servers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List language servers, and why some are unavailable
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install servers in pinned versions, with npm and pip
    ///
    /// Installs into Tenon's own folder. Checks every package against the hashes that Tenon ships, and runs no code of a
    /// package during the installation.
    Install {
        /// Server ids, as shown by `tenon servers list`
        #[arg(value_name = "ID", required_unless_present = "workspace")]
        ids: Vec<String>,
        /// Install every missing server that the files of this workspace need
        #[arg(long = "for", value_name = "DIR", conflicts_with = "ids")]
        workspace: Option<Utf8PathBuf>,
    },
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
        Action::List { json } => list(json, invocation),
        Action::Install { ids, workspace } => install(&ids, workspace, invocation),
        Action::Restart { id } => restart(id, invocation),
        Action::Logs { id } => logs(id, invocation),
        Action::Remove { ids } => remove(&ids, invocation),
    }
}

fn list(json: bool, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let installed = language_servers::managed(&workspace).installed();
    let running = running(&root, invocation)?;
    let rows: Vec<ServerRow> = workspace
        .finder()
        .find_all(&registry)
        .into_iter()
        .flat_map(|(entry, availability)| ServerRow::rows(entry, availability, &installed, &running))
        .collect();
    if json {
        let servers: Vec<Value> = rows.iter().map(ServerRow::json).collect();
        invocation.print(json!({"root": root, "servers": servers}).to_string())?;
        return Ok(Exit::Success);
    }
    let width = |cell: fn(&ServerRow) -> &str| rows.iter().map(|row| cell(row).len()).max().unwrap_or(0);
    let (ids, states) = (width(|row| &row.id), width(|row| &row.state));
    for row in &rows {
        let text = format!("{:ids$}  {:states$}  {}", row.id, row.state, row.detail);
        invocation.print(text.trim_end())?;
    }
    Ok(Exit::Success)
}

/// The servers that the daemon runs, if a daemon is running.
fn running(root: &Utf8Path, invocation: &Invocation) -> Result<Vec<ServerSummary>, Failure> {
    if daemon_client::status(invocation, root)?.is_none() {
        return Ok(Vec::new());
    }
    match daemon_client::request(invocation, root, DaemonRequest::List)? {
        DaemonResponse::List(lines) => Ok(lines.into_iter().filter(|line| line.project.is_some()).collect()),
        _ => Err(DaemonError::InvalidResponse.into()),
    }
}

/// One row of the list.
struct ServerRow {
    id: String,
    language: String,
    state: String,
    detail: String,
    path: Option<Utf8PathBuf>,
    fix: Option<String>,
    versions: Vec<String>,
}

impl ServerRow {
    /// One row, or one per project if the daemon runs the server.
    fn rows(
        entry: &ServerEntry,
        availability: Availability,
        installed: &[Installed],
        running: &[ServerSummary],
    ) -> Vec<Self> {
        let versions: Vec<String> = match &entry.install {
            Install::Managed { locks } => {
                let matching = installed.iter().filter(|one| locks.iter().any(|lock| lock == one.lock.name));
                matching.map(|one| one.version.clone()).collect()
            }
            Install::Command { .. } | Install::Manual { .. } => Vec::new(),
        };
        let (state, detail, path, fix) = match availability {
            Availability::Found(program) => {
                let version = installed.iter().find(|one| program.path.starts_with(&one.folder));
                let version = version.map(|one| format!(" {}", one.version)).unwrap_or_default();
                let from = match program.origin {
                    ProgramOrigin::UserConfig => "your configuration".to_owned(),
                    ProgramOrigin::Workspace => "the workspace".to_owned(),
                    ProgramOrigin::Managed => format!("installed{version}"),
                    ProgramOrigin::Path => "PATH".to_owned(),
                };
                ("found", format!("{} ({from})", program.path), Some(program.path), None)
            }
            Availability::Unavailable(unavailable) => {
                let detail = format!("{}: {}", unavailable.reason, unavailable.fix);
                ("unavailable", detail, None, Some(unavailable.fix.to_string()))
            }
            Availability::Disabled(why) => ("disabled", why.to_string(), None, None),
        };
        let row = |state: &str, detail: String| Self {
            id: entry.id.to_string(),
            language: entry.language.clone(),
            state: state.to_owned(),
            detail,
            path: path.clone(),
            fix: fix.clone(),
            versions: versions.clone(),
        };
        let rows: Vec<Self> = running
            .iter()
            .filter(|one| one.id == entry.id.as_str())
            .map(|one| {
                let project = one.project.as_deref().filter(|project| !project.is_empty()).unwrap_or(".");
                let process = one.server_pid.map(|pid| format!("process {pid}"));
                let details = [process, Some(format!("project {project}")), one.detail.clone()];
                row(one.status.as_str(), details.into_iter().flatten().collect::<Vec<_>>().join(", "))
            })
            .collect();
        if rows.is_empty() { vec![row(state, detail)] } else { rows }
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id, "language": self.language, "state": self.state, "detail": self.detail,
            "path": self.path, "fix": self.fix, "installed": self.versions,
        })
    }
}

fn install(
    ids: &[String],
    for_workspace: Option<Utf8PathBuf>,
    invocation: &mut Invocation,
) -> Result<Exit, Failure> {
    let root = invocation.root(for_workspace.as_deref())?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let managed = language_servers::managed(&workspace);
    let search = language_servers::search_path(&workspace);
    let tools = Tools::find(&search, Some(&root));
    let locks = match for_workspace {
        None => install::locks_for(&registry, ids, &tools)?,
        Some(_) => {
            let languages = LanguageCount::count(&language_servers::walk(&workspace)?, &registry);
            install::locks_for_workspace(&registry, &languages, &managed, &search, &tools)
        }
    };
    if locks.is_empty() {
        invocation.eprint("nothing to install: every server that the workspace's files need is available");
    }
    for lock in locks {
        invocation.print(install_one(lock, &managed, &tools)?)?;
    }
    Ok(Exit::Success)
}

/// Installs one lock with progress on a terminal, and returns a line that reports it.
pub(crate) fn install_one(
    lock: &'static PackageLock,
    managed: &Managed,
    tools: &Tools,
) -> Result<String, Failure> {
    let style =
        ProgressStyle::with_template("{spinner} {prefix}: {msg} {elapsed}").expect("the template is fixed");
    let bar =
        ProgressBar::new_spinner().with_style(style).with_prefix(format!("{} {}", lock.name, lock.version));
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let mut already_installed = false;
    let folder = managed.install(lock, tools, &mut |progress| match progress {
        InstallProgress::Waiting => bar.set_message("waiting for another installation"),
        InstallProgress::Step { what, .. } => bar.set_message(what),
        InstallProgress::Kept { .. } => already_installed = true,
        InstallProgress::Installed { .. } => {}
    });
    bar.finish_and_clear();
    let folder = folder?;
    let status = if already_installed { "already installed" } else { "installed" };
    Ok(format!("{status}: {} {} in {folder}", lock.name, lock.version))
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
                // Drops escape sequences: a log may repeat text of an untrusted workspace.
                let plain: String = line.chars().filter(|one| !one.is_control() || *one == '\t').collect();
                invocation.print(plain)?;
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
    let locks = install::all_locks_of(&registry, ids)?;
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
