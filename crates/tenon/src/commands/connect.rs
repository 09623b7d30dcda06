//! `tenon connect`: adds Tenon to an agent's configuration, removes it again, and lists the agents.

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde_json::json;
use tenon_server::surfaces::require_known;

use crate::agent_config::connection::{Connection, PartState, Parts};
use crate::agent_config::{Agent, Folders, Scope, TOKEN_VARIABLE, Transport};
use crate::config_edit::diff;
use crate::config_edit::edited_file::{self, FileChange};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Connect an agent to this workspace
///
/// Adds the MCP server `tenon` to the agent's configuration and, if the agent has hooks, those that report what its edits broke.
/// Shows the change, then writes it; the rest of the file stays the same, byte for byte, and the file is backed up first.
/// Without an agent, lists the agents on this machine and changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Agent to connect
    #[arg(value_enum)]
    agent: Option<Agent>,
    /// Surfaces that the agent gets, for example `explore,tasks` [default: the setting `mcp.surfaces`]
    #[arg(long, value_delimiter = ',', value_name = "NAME", requires = "agent", conflicts_with = "undo")]
    surface: Vec<String>,
    /// Configuration to change [default: project, if the agent has one]
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Change only this part
    #[arg(long, value_enum, requires = "agent")]
    only: Option<Part>,
    /// Connect over HTTP, to `tenon serve --http`
    #[arg(long, requires = "agent", conflicts_with = "undo")]
    http: bool,
    /// Show the change without writing it
    #[arg(long, requires = "agent")]
    dry_run: bool,
    /// Remove what `tenon connect` added
    #[arg(long, requires = "agent")]
    undo: bool,
    /// Print the list of agents as JSON
    #[arg(long, conflicts_with = "agent")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The MCP server
    Mcp,
    /// The hooks
    Hooks,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let Some(agent) = args.agent else {
        return list(args.scope, args.json, invocation);
    };
    let root = invocation.root(None)?;
    let scope = scope(agent, args.scope)?;
    let dirs = invocation.dirs()?;
    let folders = Folders::new(&invocation.environment, &dirs.home, &root);
    let has_hooks = agent.hooks_file(scope, &folders).is_some();
    if args.only == Some(Part::Hooks) && !has_hooks {
        return Err(Failure::new(Exit::Usage, format!("{} has no hooks", agent.title())));
    }
    let parts =
        Parts { entry: args.only != Some(Part::Hooks), hooks: has_hooks && args.only != Some(Part::Mcp) };
    let program = program(invocation);
    let connection = Connection { agent, scope, folders: &folders, state: &dirs.state, program: &program };
    let changes = match args.undo {
        true => connection.removal(parts)?,
        false => connection.changes(parts, &transport(&args, agent, &root, &program, invocation)?)?,
    };
    let title = agent.title();
    if changes.is_empty() {
        let state = if args.undo { "not connected" } else { "already connected" };
        invocation.eprint(format!("{state}: {title}"));
        return Ok(Exit::Success);
    }
    for change in &changes {
        let path = change.file.path.as_str();
        invocation.print_lines(diff::render(path, change.file.text.as_deref(), change.after.as_deref()))?;
    }
    if args.dry_run {
        invocation.eprint("dry run: nothing was written");
        return Ok(Exit::Success);
    }
    edited_file::write_all(&changes)?;
    match args.undo {
        true => invocation.eprint(format!("removed: {title} no longer uses Tenon")),
        false => print_connected(&args, agent, scope, parts, &changes, invocation),
    }
    Ok(Exit::Success)
}

fn print_connected(
    args: &Args,
    agent: Agent,
    scope: Scope,
    parts: Parts,
    changes: &[FileChange],
    invocation: &mut Invocation,
) {
    for change in changes.iter().filter(|change| change.has_backup()) {
        invocation.eprint(format!("backup: {}", change.file.backup()));
    }
    let mut undo = format!("tenon connect {} --undo", agent.id());
    if scope == Scope::User && agent.scopes().len() > 1 {
        undo.push_str(" --scope user");
    }
    invocation.eprint(format!("connected: {}; `{undo}` restores the files", agent.title()));
    if args.http {
        invocation.eprint(format!(
            "note: start {} with `{TOKEN_VARIABLE}` set to the token that `tenon token show` prints",
            agent.title()
        ));
        invocation.eprint("note: `tenon serve --http` must be running");
    }
    for note in agent.notes(scope, parts.hooks) {
        invocation.eprint(format!("note: {note}"));
    }
}

fn scope(agent: Agent, given: Option<Scope>) -> Result<Scope, Failure> {
    match given {
        None => Ok(agent.scopes()[0]),
        Some(scope) if agent.scopes().contains(&scope) => Ok(scope),
        Some(_) => {
            Err(Failure::new(Exit::Usage, format!("{} has no configuration in a workspace", agent.title()))
                .hint("pass `--scope user`"))
        }
    }
}

fn transport(
    args: &Args,
    agent: Agent,
    root: &Utf8Path,
    program: &str,
    invocation: &Invocation,
) -> Result<Transport, Failure> {
    let workspace = invocation.workspace(root, vec![])?;
    require_known(&args.surface).map_err(|error| Failure::of(Exit::Usage, &error))?;
    if !args.http {
        return Ok(Transport::Stdio { program: program.to_owned(), surfaces: args.surface.clone() });
    }
    if !agent.supports_http() {
        let message = format!("{} cannot take the token from the environment", agent.title());
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("run `tenon connect {}` without `--http`", agent.id())));
    }
    let path = match args.surface.as_slice() {
        [] => "/mcp".to_owned(),
        [surface] => format!("/mcp/{surface}"),
        _ => {
            return Err(Failure::new(Exit::Usage, "an HTTP address serves one surface, or the default ones")
                .hint("pass one surface, or set `mcp.surfaces`"));
        }
    };
    let Some(port) = workspace.http_port() else {
        return Err(Failure::new(Exit::No, "the HTTP port of this workspace is not known yet")
            .hint("run `tenon serve --http` once, which chooses a port and keeps it, or set `http.port`"));
    };
    Ok(Transport::Http { url: format!("http://127.0.0.1:{port}{path}") })
}

/// The state of an agent on this machine.
pub(crate) struct AgentState {
    pub(crate) agent: Agent,
    pub(crate) state: &'static str,
    /// What is connected, or why it is unknown.
    detail: String,
}

/// The agents that are on this machine or connected, in the order of their names.
pub(crate) fn found_agents(
    only: Option<Scope>,
    root: &Utf8Path,
    invocation: &Invocation,
) -> Result<Vec<AgentState>, Failure> {
    let dirs = invocation.dirs()?;
    let folders = Folders::new(&invocation.environment, &dirs.home, root);
    let program = program(invocation);
    let mut found = Vec::new();
    for agent in Agent::value_variants() {
        let scopes = agent.scopes().iter().filter(|scope| only.is_none_or(|only| only == **scope));
        let states: Vec<_> = scopes
            .map(|scope| {
                let connection = Connection {
                    agent: *agent,
                    scope: *scope,
                    folders: &folders,
                    state: &dirs.state,
                    program: &program,
                };
                let name = if *scope == Scope::Project { "project" } else { "user" };
                (name, connection.entry_state().and_then(|entry| Ok((entry, connection.hooks_state()?))))
            })
            .collect();
        let is_found = agent.is_found(&folders, &invocation.environment);
        found.extend(summary(*agent, &states, is_found));
    }
    Ok(found)
}

type ScopeState = (&'static str, Result<(PartState, Option<PartState>), Failure>);

fn summary(agent: Agent, scopes: &[ScopeState], is_found: bool) -> Option<AgentState> {
    let mut parts = Vec::new();
    let mut state = "not connected";
    for (scope, found) in scopes {
        let (entry, hooks) = match found {
            Ok(states) => states,
            Err(failure) => {
                return Some(AgentState { agent, state: "unreadable", detail: failure.to_string() });
            }
        };
        for (name, part) in [("MCP server", Some(*entry)), ("hooks", *hooks)] {
            match part {
                Some(PartState::Present) => parts.push(format!("{scope}: {name}")),
                Some(PartState::Stale) => parts.push(format!("{scope}: {name} stale")),
                Some(PartState::Missing) | None => {}
            }
        }
        state = match (state, entry, hooks) {
            (_, PartState::Stale, _) | (_, _, Some(PartState::Stale)) | ("stale", ..) => "stale",
            (_, PartState::Present, _) => "connected",
            (state, PartState::Missing, _) => state,
        };
    }
    (is_found || !parts.is_empty()).then(|| AgentState { agent, state, detail: parts.join(", ") })
}

fn list(scope: Option<Scope>, as_json: bool, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let root = invocation.root(None)?;
    let found = found_agents(scope, &root, invocation)?;
    if as_json {
        let agents = Agent::value_variants().iter().map(|agent| {
            let not_found = AgentState { agent: *agent, state: "not found", detail: String::new() };
            describe(found.iter().find(|one| one.agent == *agent).unwrap_or(&not_found))
        });
        invocation.print_data(json!(agents.collect::<Vec<_>>()).to_string())?;
        return Ok(Exit::Success);
    }
    for one in &found {
        let detail = if one.detail.is_empty() { String::new() } else { format!("  ({})", one.detail) };
        let line = format!("{:<10}{:<13}{}{detail}", one.agent.id(), one.agent.title(), one.state);
        invocation.print(line)?;
    }
    let others: Vec<&str> = Agent::value_variants()
        .iter()
        .filter(|agent| found.iter().all(|one| one.agent != **agent))
        .map(|agent| agent.id())
        .collect();
    if !others.is_empty() {
        invocation.eprint(format!("not found on this machine: {}", others.join(", ")));
    }
    invocation.eprint("hint: run `tenon connect AGENT` to connect or update one; nothing was changed");
    Ok(Exit::Success)
}

/// An agent's state, for programs.
pub(crate) fn describe(one: &AgentState) -> serde_json::Value {
    json!({"name": one.agent.id(), "title": one.agent.title(), "state": one.state, "detail": one.detail})
}

/// The command that agents run: `tenon` if it resolves to this program on `PATH`, else its absolute path.
fn program(invocation: &Invocation) -> String {
    let running = std::env::current_exe().ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    let Some(running) = running else { return "tenon".to_owned() };
    let real = |path: &Utf8Path| path.canonicalize_utf8().ok();
    let folders = std::env::split_paths(invocation.environment.get("PATH").unwrap_or_default());
    let paths = folders.filter_map(|folder| Utf8PathBuf::from_path_buf(folder.join("tenon")).ok());
    match paths.into_iter().find(|path| path.is_file()) {
        Some(found) if real(&found) == real(&running) => "tenon".to_owned(),
        _ => running.into_string(),
    }
}
