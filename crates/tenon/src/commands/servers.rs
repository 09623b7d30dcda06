//! `tenon servers`: which language servers there are, and those that Tenon installs.

use camino::Utf8PathBuf;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tenon_lsp::census::Census;
use tenon_lsp::find::{Availability, Origin};
use tenon_lsp::install::{self, Installed, Lock, Managed, Progress, Tools};
use tenon_lsp::registry::{Install, ServerEntry};

use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::report::Failure;
use crate::servers;

/// List, install and remove language servers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which servers this workspace can use, and why not the others
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install servers in pinned versions, through npm and pip
    ///
    /// They go to a folder of Tenon's own. Nothing that is fetched runs while it is installed, and everything is checked
    /// against the hashes that Tenon ships.
    Install {
        /// The servers, by their ids in `tenon servers list`
        #[arg(value_name = "ID", required_unless_present = "workspace")]
        ids: Vec<String>,
        /// What the languages of this workspace need and the machine does not have
        #[arg(long = "for", value_name = "DIR", conflicts_with = "ids")]
        workspace: Option<Utf8PathBuf>,
    },
    /// Remove servers that Tenon installed, in all their versions
    Remove {
        /// The servers, by their ids in `tenon servers list`
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.action {
        Action::List { json } => list(json, invocation),
        Action::Install { ids, workspace } => install(&ids, workspace, invocation),
        Action::Remove { ids } => remove(&ids, invocation),
    }
}

fn list(json: bool, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = servers::registry(&workspace)?;
    let installed = servers::managed(&workspace).installed();
    let lines: Vec<Line> = servers::finder(&workspace)
        .survey(&registry)
        .into_iter()
        .map(|(entry, availability)| Line::of(entry, availability, &installed))
        .collect();
    if json {
        let servers: Vec<Value> = lines.iter().map(Line::json).collect();
        invocation.print(json!({"root": root, "servers": servers}).to_string())?;
        return Ok(Exit::Success);
    }
    let width = |cell: fn(&Line) -> &str| lines.iter().map(|line| cell(line).len()).max().unwrap_or(0);
    let (ids, states) = (width(|line| &line.id), width(|line| line.state));
    for line in &lines {
        let text = format!("{:ids$}  {:states$}  {}", line.id, line.state, line.detail);
        invocation.print(text.trim_end())?;
    }
    Ok(Exit::Success)
}

/// One server in the list.
struct Line {
    id: String,
    language: String,
    state: &'static str,
    detail: String,
    path: Option<Utf8PathBuf>,
    fix: Option<String>,
    versions: Vec<String>,
}

impl Line {
    fn of(entry: &ServerEntry, availability: Availability, installed: &[Installed]) -> Self {
        let versions: Vec<String> = match &entry.install {
            Install::Managed { locks } => {
                let ours = installed.iter().filter(|one| locks.iter().any(|lock| lock == one.lock.name));
                ours.map(|one| one.version.clone()).collect()
            }
            Install::Command { .. } | Install::Manual { .. } => Vec::new(),
        };
        let (state, detail, path, fix) = match availability {
            Availability::Found(program) => {
                let version = versions.first().map(|version| format!(" {version}")).unwrap_or_default();
                let from = match program.origin {
                    Origin::UserConfig => "your configuration".to_owned(),
                    Origin::Workspace => "the workspace".to_owned(),
                    Origin::Managed => format!("installed{version}"),
                    Origin::Path => "PATH".to_owned(),
                };
                ("found", format!("{} ({from})", program.path), Some(program.path), None)
            }
            Availability::Unavailable(unavailable) => {
                let detail = format!("{}: {}", unavailable.reason, unavailable.fix);
                ("unavailable", detail, None, Some(unavailable.fix.to_string()))
            }
            Availability::Disabled(why) => ("disabled", why.to_string(), None, None),
        };
        let (id, language) = (entry.id.to_string(), entry.language.clone());
        Self { id, language, state, detail, path, fix, versions }
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
    let registry = servers::registry(&workspace)?;
    let managed = servers::managed(&workspace);
    let search = servers::search_path(&workspace);
    let tools = Tools::find(&search, Some(&root));
    let locks = match for_workspace {
        None => install::locks_for(&registry, ids, &tools)?,
        Some(_) => {
            let census = Census::take(&servers::walk(&workspace)?, &registry);
            install::locks_for_workspace(&registry, &census, &managed, &search, &tools)
        }
    };
    if locks.is_empty() {
        invocation.say("nothing to install: the machine has what the workspace's files need");
    }
    for lock in locks {
        invocation.print(install_one(lock, &managed, &tools)?)?;
    }
    Ok(Exit::Success)
}

/// Installs one lock with progress on a terminal; how it went, in words.
pub(crate) fn install_one(lock: &'static Lock, managed: &Managed, tools: &Tools) -> Result<String, Failure> {
    let style =
        ProgressStyle::with_template("{spinner} {prefix}: {msg} {elapsed}").expect("the template is fixed");
    let bar =
        ProgressBar::new_spinner().with_style(style).with_prefix(format!("{} {}", lock.name, lock.version));
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let mut kept = false;
    let folder = managed.install(lock, tools, &mut |progress| match progress {
        Progress::Waiting => bar.set_message("waiting for another installation"),
        Progress::Step { what, .. } => bar.set_message(what),
        Progress::Kept { .. } => kept = true,
        Progress::Installed { .. } => {}
    });
    bar.finish_and_clear();
    let folder = folder?;
    let word = if kept { "there already" } else { "installed" };
    Ok(format!("{word}: {} {} in {folder}", lock.name, lock.version))
}

fn remove(ids: &[String], invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let workspace = invocation.workspace(&root, vec![])?;
    let registry = servers::registry(&workspace)?;
    let managed = servers::managed(&workspace);
    let locks = install::all_locks_of(&registry, ids)?;
    let mut removed = 0;
    for lock in locks {
        for version in managed.remove(lock, &mut |_| {})? {
            invocation.print(format!("removed: {} {version}", lock.name))?;
            removed += 1;
        }
    }
    if removed == 0 {
        invocation.say("nothing to remove: Tenon has not installed any of them");
        return Ok(Exit::No);
    }
    Ok(Exit::Success)
}
