//! `tenon up`: sets up a workspace and names the next command.

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use tenon_lsp::orchestrator::ServerState;
use tenon_server::daemon::protocol::{LanguageProbe, ServerSummary};
use tenon_server::trust::TrustState;
use tenon_server::workspace::Workspace;
use tenon_servers::install::{InstallPlan, PlannedLock, Tools};
use tenon_servers::language_count::LanguageCount;
use tenon_servers::registry::ServerId;

use crate::commands::connect::{self, AgentState};
use crate::commands::console;
use crate::commands::servers::install::{confirm, install_all, is_terminal, print_plan};
use crate::daemon_client::{self, Probe};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::language_servers;

/// Set up a workspace
///
/// Installs missing language servers that the workspace's files need (on a terminal, asks first), starts the daemon, waits
/// until the language servers have loaded the workspace, runs a test request for each language, and prints how to connect the
/// agents on this machine and a link to the web console.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspace [default: the workspace of the current folder]
    dir: Option<Utf8PathBuf>,
    /// Install missing language servers without asking
    #[arg(long)]
    yes: bool,
    /// Do not install language servers
    #[arg(long, conflicts_with = "yes")]
    no_install: bool,
    /// Do not wait for language servers to load
    #[arg(long)]
    no_wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.dir.as_deref())?;
    let workspace = invocation.workspace(&root, vec![])?;
    print_workspace(&workspace, invocation);
    let languages =
        LanguageCount::count(&language_servers::walk(&workspace)?, &language_servers::registry(&workspace)?);
    let install = if args.no_install { Some(false) } else { args.yes.then_some(true) };
    if languages.servers().is_empty() {
        language_servers::say_no_source(&root, invocation);
    }
    let missing = install_missing(&workspace, &languages, install, invocation)?;
    let probe = daemon_client::probe(invocation, &root)?;
    let Probe { daemon, tools } = &probe;
    invocation.eprint(format!("daemon: process {}, {} tools", daemon.pid, tools.len()));
    if daemon.outdated {
        invocation.eprint("warning: settings or trust changed after the daemon started");
        invocation.eprint("  hint: run `tenon stop`; the next client starts a daemon with the new settings");
    }
    let mut needed = Vec::new();
    if !args.no_wait && !languages.servers().is_empty() {
        invocation.eprint("language servers: loading the workspace; press Ctrl-C to stop waiting");
        needed = daemon_client::warm_up(invocation, &root)?;
        let has_files = |id: &str| languages.servers().iter().any(|one| one.server.as_str() == id);
        needed.retain(|server| server.status != ServerState::Disabled && has_files(&server.id));
        print_servers(&needed, invocation);
        print_proofs(&daemon_client::prove(invocation, &root)?, invocation);
    }
    let agents = connect::found_agents(None, &root, invocation)?;
    match args.json {
        true => {
            invocation.print_data(describe(&workspace, &probe, &needed, &missing, &agents).to_string())?
        }
        false => {
            print_agents(&agents, invocation)?;
            console::print_link(&root, invocation)?;
        }
    }
    Ok(Exit::Success)
}

fn print_workspace(workspace: &Workspace, invocation: &mut Invocation) {
    let root = workspace.root();
    invocation.eprint(format!("root: {root}"));
    let state = workspace.trust();
    let meaning = match state {
        TrustState::Trusted => "its settings apply and its programs may run",
        TrustState::Untrusted => "nothing in it runs; run `tenon trust` to allow it",
        TrustState::Stale { .. } => {
            "a pinned file changed; run `tenon trust --show` to see which, `tenon trust` to trust it again"
        }
        TrustState::Excluded => "nothing in it runs, as you chose with `tenon trust --exclude`",
    };
    invocation.eprint(format!("trust: {} ({meaning})", state.name()));
    let ignored = workspace.settings().ignored().len();
    if ignored > 0 {
        invocation.eprint(format!("settings: {ignored} ignored; run `tenon config show` to see why"));
    }
}

/// Installs missing language servers that the workspace's files need, if the user agrees. Returns those that are still missing,
/// with the reason; none of them stops the rest.
fn install_missing(
    workspace: &Workspace,
    languages: &LanguageCount,
    install: Option<bool>,
    invocation: &mut Invocation,
) -> Result<Vec<Value>, Failure> {
    let managed = language_servers::managed(workspace);
    let tools = Tools::find(&language_servers::search_path(workspace), Some(workspace.root()));
    let registry = language_servers::registry(workspace)?;
    let mut plan = InstallPlan::for_workspace(&registry, languages, &workspace.finder(), &tools);
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    // A build takes minutes: only if someone agrees to it.
    let slow = |planned: &PlannedLock| planned.lock.is_built_from_source();
    let postponed: Vec<PlannedLock> = match install.is_none() && !is_terminal() {
        true => plan.locks.extract_if(.., |planned| slow(planned)).collect(),
        false => Vec::new(),
    };
    print_plan(&plan, &managed, invocation);
    let mut missing: Vec<Value> =
        plan.skipped.iter().map(|one| absent(&one.served.id, &one.why, one.fix())).collect();
    for planned in postponed {
        for served in &planned.servers {
            let why = "it is built from source, which takes minutes";
            let fix = format!("run `tenon servers install {}`", served.id);
            invocation.eprint(format!("  {} for {served}: {why}", served.id));
            invocation.eprint(format!("    hint: {fix}"));
            missing.push(absent(&served.id, why, fix));
        }
    }
    if plan.locks.is_empty() {
        return Ok(missing);
    }
    if !confirm(install, invocation)? {
        invocation.eprint("  hint: run `tenon up --yes` to install them");
        let locks = plan.locks.iter().flat_map(|planned| &planned.servers);
        missing.extend(
            locks.map(|one| absent(&one.id, "not found", format!("run `tenon servers install {}`", one.id))),
        );
        return Ok(missing);
    }
    let print = |invocation: &mut Invocation, line: String| {
        invocation.eprint(line);
        Ok(())
    };
    for failed in install_all(&plan.locks, &managed, &tools, invocation, print)? {
        let planned = plan.locks.iter().find(|planned| planned.lock == failed.lock);
        let fix = failed.failure.first_hint().unwrap_or_default();
        let servers = planned.into_iter().flat_map(|planned| &planned.servers);
        missing.extend(servers.map(|one| absent(&one.id, &failed.failure, fix.clone())));
    }
    Ok(missing)
}

/// A server that is still missing, for programs.
fn absent(server: &ServerId, reason: impl std::fmt::Display, fix: String) -> Value {
    json!({"server": server.as_str(), "reason": reason.to_string(), "fix": fix})
}

fn print_servers(servers: &[ServerSummary], invocation: &mut Invocation) {
    for server in servers {
        let state = if server.ready { "ready" } else { server.status.as_str() };
        let detail = server.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let project = server.project.as_ref().filter(|project| !project.is_empty() && *project != ".");
        let project = project.map(|project| format!(" in {project}")).unwrap_or_default();
        invocation.eprint(format!("  {} ({}){project}: {state}{detail}", server.id, server.language));
    }
}

fn print_proofs(proofs: &[LanguageProbe], invocation: &mut Invocation) {
    for proof in proofs.iter().filter(|proof| proof.symbol.is_some() || proof.diagnostic.is_some()) {
        let symbol = proof.symbol.as_deref().unwrap_or("no symbols by name for this language");
        let diagnostic = proof.diagnostic.as_deref().unwrap_or("no diagnostics in the tested files");
        invocation.eprint(format!("test requests ({}):", proof.language));
        invocation.eprint(format!("  {symbol}"));
        invocation.eprint(format!("  {diagnostic}"));
    }
}

/// Prints the command that connects each agent that is not connected yet.
fn print_agents(agents: &[AgentState], invocation: &mut Invocation) -> Result<(), Failure> {
    let (connected, others): (Vec<_>, Vec<_>) = agents.iter().partition(|agent| agent.state == "connected");
    for one in &connected {
        invocation.eprint(format!("connected: {}", one.agent.title()));
    }
    for one in &others {
        invocation.print(format!("Next: tenon connect {}", one.agent.id()))?;
    }
    if agents.is_empty() {
        invocation.print("Next: tenon connect AGENT")?;
        invocation.eprint(
            "  hint: no agent was found on this machine; `tenon connect --help` lists those that Tenon knows",
        );
    }
    Ok(())
}

fn describe(
    workspace: &Workspace,
    probe: &Probe,
    servers: &[ServerSummary],
    missing: &[Value],
    agents: &[AgentState],
) -> Value {
    json!({
        "root": workspace.root(),
        "trust": workspace.trust().name(),
        "daemon": probe.daemon,
        "tools": probe.tools,
        "servers": servers,
        "missingServers": missing,
        "agents": agents.iter().map(connect::describe).collect::<Vec<_>>(),
    })
}
