//! `tenon servers list`: every server, whether this workspace can use it, and what to do if not.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tenon_server::daemon::DaemonError;
use tenon_server::daemon::protocol::{DaemonRequest, DaemonResponse, ServerSummary};
use tenon_servers::find::{Availability, Finder, ProgramOrigin};
use tenon_servers::install::{Installed, PackageLock};
use tenon_servers::registry::{Install, ServerEntry};

use crate::daemon_client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;
use crate::server_choices;

/// List language servers, and why some are unavailable
///
/// `unproven` marks servers that were never run with this version of Tenon's settings for them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only servers of which Tenon installed another version than it installs now
    #[arg(long)]
    outdated: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = language_servers::registry(&workspace)?;
    let installed = language_servers::managed(&workspace).installed();
    let running = running(&root, invocation)?;
    let finder = workspace.finder();
    let mut rows: Vec<ServerRow> = finder
        .find_all(&registry)
        .into_iter()
        .flat_map(|(entry, availability)| ServerRow::rows(entry, availability, &installed, &running, &finder))
        .collect();
    if args.outdated {
        rows.retain(|row| row.update().is_some());
    }
    let choices = server_choices::of(&workspace, &registry)?;
    if args.json {
        let servers: Vec<Value> = rows.iter().map(ServerRow::json).collect();
        let choices = server_choices::json(&choices);
        invocation.print_data(json!({"root": root, "servers": servers, "choices": choices}).to_string())?;
        return Ok(Exit::Success);
    }
    if args.outdated && rows.is_empty() {
        invocation.eprint("up to date: every installed server has the version that this Tenon pins");
    }
    let width = |cell: fn(&ServerRow) -> &str| rows.iter().map(|row| cell(row).len()).max().unwrap_or(0);
    let (ids, states) = (width(|row| &row.id), width(|row| &row.state));
    for row in &rows {
        let text = match row.update().filter(|_| args.outdated) {
            Some(update) => format!("{:ids$}  {update}", row.id),
            None => format!("{:ids$}  {:states$}  {}", row.id, row.state, row.text()),
        };
        invocation.print(text.trim_end())?;
    }
    if args.outdated && !rows.is_empty() {
        invocation.eprint("  hint: run `tenon servers update`");
    }
    if !args.outdated {
        for line in server_choices::lines(&choices) {
            invocation.print(line)?;
        }
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
    /// What Tenon would install now, if it installed another version.
    newer: Vec<&'static PackageLock>,
    /// Old versions beside the one that Tenon installs now.
    left_over: Vec<String>,
    is_unproven: bool,
    warning: Option<String>,
}

impl ServerRow {
    /// One row, or one per project if the daemon runs the server.
    fn rows(
        entry: &ServerEntry,
        availability: Availability,
        installed: &[Installed],
        running: &[ServerSummary],
        finder: &Finder,
    ) -> Vec<Self> {
        let matching: Vec<&Installed> = match &entry.install {
            Install::Managed { locks, .. } => {
                let is_own = |one: &&Installed| locks.iter().any(|lock| lock == one.lock.name);
                installed.iter().filter(is_own).collect()
            }
            Install::Command { .. } | Install::Manual { .. } => Vec::new(),
        };
        let mut newer: Vec<&'static PackageLock> = Vec::new();
        let mut left_over = Vec::new();
        for one in matching.iter().filter(|one| !one.current) {
            if matching.iter().any(|other| other.current && other.lock == one.lock) {
                left_over.push(one.version.clone());
            } else if !newer.contains(&one.lock) {
                newer.push(one.lock);
            }
        }
        let mut warning = None;
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
                warning = finder.missing_library(entry).map(language_servers::missing_library);
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
            versions: matching.iter().map(|one| one.version.clone()).collect(),
            newer: newer.clone(),
            left_over: left_over.clone(),
            is_unproven: entry.is_unproven(),
            warning: warning.clone(),
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

    /// What `tenon servers update` would do: `1.1.410 installed, 1.1.414 available`, or remove old versions.
    fn update(&self) -> Option<String> {
        let newer: Vec<&str> = self.newer.iter().map(|lock| lock.version).collect();
        let installed = self.versions.join(", ");
        let available =
            (!newer.is_empty()).then(|| format!("{installed} installed, {} available", newer.join(", ")));
        let left_over = (!self.left_over.is_empty())
            .then(|| format!("old versions to be removed: {}", self.left_over.join(", ")));
        let parts: Vec<String> = available.into_iter().chain(left_over).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn text(&self) -> String {
        let unproven = self.is_unproven.then(|| "unproven".to_owned());
        let notes = [Some(self.detail.clone()), self.update(), self.warning.clone(), unproven];
        notes.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn json(&self) -> Value {
        let available: Vec<&str> = self.newer.iter().map(|lock| lock.version).collect();
        json!({
            "id": self.id, "language": self.language, "state": self.state, "detail": self.detail,
            "path": self.path, "fix": self.fix, "installed": self.versions, "outdated": !available.is_empty(),
            "available": available, "leftOver": self.left_over, "unproven": self.is_unproven, "warning": self.warning,
        })
    }
}
