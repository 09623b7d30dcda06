//! `tenon tasks`: plans and tasks for people and scripts.

mod board;
mod changes;
mod transfer;
mod watch;

use std::cmp::Ordering;

use serde_json::{Value, json};
use tenon_work::{WorkTool, WorkspaceName};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::{PageOptions, WorkOptions, call_tool, given, line, list, paged, store_handle};
use crate::work_text;

/// Show and change plans and tasks, yours and those of agents
///
/// Uses the same store as the surfaces `work` and `tasks`, whether a daemon runs or not. Without a command: `list`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Radar(Radar),
    Next(Next),
    Add(changes::Add),
    Start(changes::Start),
    Note(changes::Note),
    Done(changes::Done),
    Board(board::Board),
    Watch(watch::Watch),
    Import(transfer::Import),
    Export(transfer::Export),
    Link(Link),
}

/// List plans and tasks, plans first
#[derive(Debug, clap::Args)]
struct List {
    /// Filter by kind
    #[arg(long, value_parser = ["plan", "task"])]
    kind: Option<String>,
    /// Filter by status
    #[arg(long, value_parser = ["todo", "active", "done"])]
    status: Option<String>,
    /// Filter by plan
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Filter by tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Filter by words
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    #[command(flatten)]
    paging: PageOptions,
    #[command(flatten)]
    options: WorkOptions,
}

/// Show a plan or task: state, steps and newest notes
#[derive(Debug, clap::Args)]
struct Show {
    /// Id, like `TASK-001`; by default the focus
    id: Option<String>,
    #[command(flatten)]
    paging: PageOptions,
    #[command(flatten)]
    options: WorkOptions,
}

/// Show the current step, the reason, what to verify, and blockers
///
/// Exits with 1 if no task is given and there is no focus.
#[derive(Debug, clap::Args)]
struct Radar {
    /// Id of a plan or task, like `TASK-001`; by default the focus
    id: Option<String>,
    #[command(flatten)]
    options: WorkOptions,
}

/// List tasks that are ready, highest priority first
///
/// Exits with 1 if no task is ready.
#[derive(Debug, clap::Args)]
struct Next {
    /// Claim the first one, so that no other agent gets it until the claim expires
    #[arg(long, requires = "agent")]
    claim: bool,
    /// Name of the agent; tasks claimed by other agents are left out
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Duration of the claim in seconds; by default 15 minutes
    #[arg(long, value_name = "SECONDS", requires = "claim")]
    ttl: Option<u32>,
    #[command(flatten)]
    paging: PageOptions,
    #[command(flatten)]
    options: WorkOptions,
}

/// Let this folder use a workspace of plans and memory
///
/// A workspace belongs to the folder that used it first, and to the worktrees of that folder's repository. Another clone needs a link, so
/// that a repository which names the remote of another one cannot read its plans and memory.
#[derive(Debug, clap::Args)]
struct Link {
    /// Workspace name; by default that of the current folder
    name: Option<String>,
    /// Remove the link
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => show_list(args, invocation),
        Command::Show(args) => show(args, invocation),
        Command::Radar(args) => show_radar(args, invocation),
        Command::Next(args) => show_next(args, invocation),
        Command::Add(args) => changes::add(args, invocation),
        Command::Start(args) => changes::start(args, invocation),
        Command::Note(args) => changes::note(args, invocation),
        Command::Done(args) => changes::done(args, invocation),
        Command::Board(args) => board::run(args, invocation),
        Command::Watch(args) => watch::run(args, invocation),
        Command::Import(args) => transfer::import(args, invocation),
        Command::Export(args) => transfer::export(&args, invocation),
        Command::Link(args) => link(args, invocation),
    }
}

fn link(args: Link, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let handle = store_handle(invocation)?;
    let name = match &args.name {
        Some(name) => WorkspaceName::parse(name)
            .map_err(|_| Failure::new(Exit::Usage, format!("invalid workspace name `{name}`")))?,
        None => handle.workspace().cloned().expect("every folder has a workspace"),
    };
    if !args.remove {
        handle.link(&name)?;
        invocation.eprint(format!("linked: {name}"));
        return Ok(Exit::Success);
    }
    let was_linked = handle.unlink(&name)?;
    invocation.eprint(if was_linked { format!("removed: {name}") } else { format!("not linked: {name}") });
    Ok(if was_linked { Exit::Success } else { Exit::No })
}

fn show_list(args: List, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let tags = if args.tags.is_empty() { Value::Null } else { json!(args.tags) };
    let arguments = given([
        ("kind", json!(args.kind)),
        ("status", json!(args.status)),
        ("parent", json!(args.parent)),
        ("tags", tags),
        ("text", json!(args.text)),
    ]);
    let answer =
        call_tool(WorkTool::TasksContext, paged(arguments, &args.paging), &args.options, invocation)?;
    if !answer.silent {
        for target in list(&answer.result["plans"]).iter().chain(list(&answer.result["tasks"])) {
            work_text::print(one_line(target), invocation)?;
        }
    }
    Ok(Exit::Success)
}

/// A plan or task in a list.
fn one_line(target: &Value) -> String {
    let (id, status, priority) = (line(&target["id"]), line(&target["status"]), line(&target["priority"]));
    format!("{id}  {status:<6}  {priority:<6}  {}", line(&target["title"])).trim_end().to_owned()
}

fn show(args: Show, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments = paged(given([("task", json!(args.id))]), &args.paging);
    let answer = call_tool(WorkTool::TasksResume, arguments, &args.options, invocation)?;
    let result = &answer.result;
    if result["target"].is_null() {
        return Ok(Exit::No);
    }
    if answer.silent {
        return Ok(Exit::Success);
    }
    print_head(result, &result["counts"], invocation)?;
    print_radar(&result["radar"], invocation)?;
    let mut steps: Vec<&Value> = list(&result["steps"]).iter().collect();
    steps.sort_by(|one, other| by_path(one, other));
    for step in steps {
        let path = line(&step["path"]);
        let depth = path.matches('.').count();
        let mark = if step["completed"] == json!(true) { "x" } else { " " };
        work_text::print(
            format!("{}[{mark}] {path} {}", "  ".repeat(depth), line(&step["title"])),
            invocation,
        )?;
    }
    for note in list(&result["notes"]) {
        work_text::print(format!("note: {} {}", line(&note["ts"]), line(&note["content"])), invocation)?;
    }
    for card in list(&result["cards"]) {
        let says = if card["title"].is_null() { &card["text"] } else { &card["title"] };
        work_text::print(format!("{}: {}", line(&card["type"]), line(says)), invocation)?;
    }
    Ok(Exit::Success)
}

/// Steps in the order of the tree: `s:2` before `s:10`.
fn by_path(one: &Value, other: &Value) -> Ordering {
    let ordinals = |step: &Value| -> Vec<u64> {
        let path = step["path"].as_str().unwrap_or_default();
        path.split('.').filter_map(|part| part.trim_start_matches("s:").parse().ok()).collect()
    };
    ordinals(one).cmp(&ordinals(other))
}

fn show_radar(args: Radar, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let answer =
        call_tool(WorkTool::TasksRadar, given([("task", json!(args.id))]), &args.options, invocation)?;
    if answer.result["target"].is_null() {
        return Ok(Exit::No);
    }
    if !answer.silent {
        print_head(&answer.result, &answer.result["steps"], invocation)?;
        print_radar(&answer.result["radar"], invocation)?;
    }
    Ok(Exit::Success)
}

fn print_head(result: &Value, counts: &Value, invocation: &mut Invocation) -> Result<(), Failure> {
    let target = &result["target"];
    work_text::print(format!("{} {}", line(&target["id"]), line(&target["title"])), invocation)?;
    work_text::print(format!("status: {}", line(&target["status"])), invocation)?;
    work_text::print(format!("revision: {}", target["revision"]), invocation)?;
    work_text::print(format!("steps: {} of {} done", counts["completed"], counts["total"]), invocation)
}

fn print_radar(radar: &Value, invocation: &mut Invocation) -> Result<(), Failure> {
    for name in ["now", "why"] {
        if !radar[name].is_null() {
            work_text::print(format!("{name}: {}", line(&radar[name])), invocation)?;
        }
    }
    for verify in list(&radar["verify"]) {
        let text = line(&verify["text"]);
        let text = if text.is_empty() { text } else { format!(": {text}") };
        work_text::print(format!("verify: {}{text}", line(&verify["checkpoint"])), invocation)?;
    }
    for step in list(&radar["next"]) {
        work_text::print(format!("next: {} {}", line(&step["path"]), line(&step["title"])), invocation)?;
    }
    for blocker in list(&radar["blockers"]) {
        work_text::print(
            format!("blocker: {} {}", line(&blocker["id"]), line(&blocker["text"])),
            invocation,
        )?;
    }
    Ok(())
}

fn show_next(args: Next, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let claim = args.claim.then_some(true);
    let arguments =
        given([("claim", json!(claim)), ("agent", json!(args.agent)), ("ttl_s", json!(args.ttl))]);
    let answer = call_tool(WorkTool::TasksNext, paged(arguments, &args.paging), &args.options, invocation)?;
    let result = &answer.result;
    if !answer.silent {
        let claimed = std::slice::from_ref(&result["task"]);
        let shown = if args.claim && !result["task"].is_null() { claimed } else { list(&result["ready"]) };
        for task in shown {
            work_text::print(one_line(task), invocation)?;
        }
        if shown.is_empty() && !args.claim {
            invocation.eprint("no task is ready");
        }
        if let Some(until) = result["claim"]["expires_at"].as_str().filter(|_| args.claim) {
            invocation.eprint(format!("claimed until {until}"));
        }
    }
    // Later pages contain the queue alone.
    let none = result["task"].is_null() && list(&result["ready"]).is_empty();
    Ok(if none { Exit::No } else { Exit::Success })
}
