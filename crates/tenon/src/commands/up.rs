//! `tenon up`: from nothing to a connected agent.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tenon_server::trust::TrustState;
use tenon_server::workspace::Workspace;

use crate::agents::{self, Agent};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::link::{self, Probe};
use crate::report::Failure;

/// Start serving a workspace, check it, and show how to connect agents
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The workspace; otherwise the one you are in
    dir: Option<Utf8PathBuf>,
    /// Show only this agent's configuration
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(agents::NAMES))]
    agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(args.dir.as_deref())?;
    let workspace = invocation.workspace(&root, vec![])?;
    tell_workspace(&workspace, invocation);
    let probe = link::probe(invocation, &root)?;
    let Probe { welcome, tools } = &probe;
    invocation.say(format!("daemon: process {}, answers with {} tools", welcome.pid, tools.len()));
    let mut agents = agents::all(&program(invocation), &root);
    agents.retain(|agent| args.agent.as_ref().is_none_or(|name| name == agent.name));
    match args.json {
        true => invocation.print(describe(&workspace, &probe, &agents).to_string())?,
        false => show(&agents, invocation)?,
    }
    Ok(Exit::Success)
}

fn tell_workspace(workspace: &Workspace, invocation: &mut Invocation) {
    let root = workspace.root();
    invocation.say(format!("root: {root}"));
    let state = workspace.trust();
    let means = match state {
        TrustState::Trusted => "its settings and programs count",
        TrustState::Untrusted => "nothing in it runs; `tenon trust` changes that",
        TrustState::Stale { .. } => {
            "something that was pinned has changed; `tenon trust --show` says what, `tenon trust` renews it"
        }
        TrustState::Excluded => "nothing in it runs, as you decided",
    };
    invocation.say(format!("trust: {}: {means}", state.name()));
    let ignored = workspace.settings().ignored().len();
    if ignored > 0 {
        invocation.say(format!("settings: {ignored} without effect; `tenon config show` says why"));
    }
}

/// How the agents start us: by name where that leads here, else by path.
fn program(invocation: &Invocation) -> String {
    let running = std::env::current_exe().ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    let Some(running) = running else { return "tenon".to_owned() };
    let real = |path: &Utf8Path| path.canonicalize_utf8().ok();
    let folders = invocation.environment.get("PATH").unwrap_or_default().split(':');
    let first = folders.map(|folder| Utf8Path::new(folder).join("tenon")).find(|path| path.is_file());
    match first {
        Some(found) if real(&found) == real(&running) => "tenon".to_owned(),
        _ => running.into_string(),
    }
}

fn show(agents: &[Agent], invocation: &mut Invocation) -> Result<(), Failure> {
    for agent in agents {
        invocation.print(format!("\n# {}: {}\n", agent.title, agent.file))?;
        invocation.print(agent.text.trim_end())?;
    }
    Ok(())
}

fn describe(workspace: &Workspace, probe: &Probe, agents: &[Agent]) -> Value {
    let agents = agents.iter().map(
        |agent| json!({"name": agent.name, "title": agent.title, "file": agent.file, "text": agent.text}),
    );
    json!({
        "root": workspace.root(),
        "trust": workspace.trust().name(),
        "daemon": probe.welcome,
        "tools": probe.tools,
        "agents": agents.collect::<Vec<_>>(),
    })
}
