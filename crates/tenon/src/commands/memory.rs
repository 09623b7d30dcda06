//! `tenon memory`: notes, yours and those of agents, for people and scripts.

use serde_json::{Value, json};
use tenon_work::{LeanTool, WorkTool};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::{PageOptions, WorkOptions, call_lean, call_tool, given, line, list, paged};
use crate::work_text;

/// Search, read and write notes, yours and those of agents
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Search(Search),
    Recall(Recall),
    Add(Add),
    Show(Show),
    Forget(Forget),
}

/// Find notes, decisions and tasks by any of the words, best first
#[derive(Debug, clap::Args)]
struct Recall {
    /// Words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    options: WorkOptions,
}

/// Remember a text; `Decision: …` makes it a decision
#[derive(Debug, clap::Args)]
struct Add {
    /// Text
    #[arg(required = true, value_name = "WORD")]
    text: Vec<String>,
    /// Task, like `TASK-001`, or a topic; by default the active task
    #[arg(long)]
    about: Option<String>,
    #[command(flatten)]
    options: WorkOptions,
}

/// Show a note, or the newest notes of the workspace
#[derive(Debug, clap::Args)]
struct Show {
    /// Number of a note, like `12` or `#12`
    id: Option<String>,
    /// Notes of this plan or task
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    task: Option<String>,
    #[command(flatten)]
    paging: PageOptions,
    #[command(flatten)]
    options: WorkOptions,
}

/// Forget a note: no search and no summary shows it any more
///
/// The text stays in its document, where `tenon memory show` finds it by its number.
#[derive(Debug, clap::Args)]
struct Forget {
    /// Number of a note, like `12` or `#12`
    id: String,
    #[command(flatten)]
    options: WorkOptions,
}

/// Find notes, cards, plans, tasks and steps by words, newest first
///
/// Exits with 1 if nothing is found.
#[derive(Debug, clap::Args)]
struct Search {
    /// Words; a match contains all of them
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Where to search; by default in notes, cards and tasks
    #[arg(long = "in", value_delimiter = ',', value_name = "KIND", value_parser = ["notes", "cards", "tasks", "nodes"])]
    among: Vec<String>,
    #[command(flatten)]
    paging: PageOptions,
    #[command(flatten)]
    options: WorkOptions,
}

pub(crate) fn run(args: Args, invocation: &mut Invocation) -> Result<Exit, Failure> {
    match args.command {
        Command::Search(args) => search(args, invocation),
        Command::Recall(args) => {
            let query = json!({"query": args.words.join(" ")});
            let answer = call_lean(LeanTool::Recall, query, &args.options, invocation)?;
            Ok(if list(&answer.data["hits"]).is_empty() { Exit::No } else { Exit::Success })
        }
        Command::Add(args) => {
            let arguments = given([("text", json!(args.text.join(" "))), ("about", json!(args.about))]);
            call_lean(LeanTool::Remember, arguments, &args.options, invocation)?;
            Ok(Exit::Success)
        }
        Command::Show(args) => show(args, invocation),
        Command::Forget(args) => {
            call_lean(LeanTool::Forget, json!({"id": args.id}), &args.options, invocation)?;
            Ok(Exit::Success)
        }
    }
}

fn show(args: Show, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let seq = match args.id.as_deref().map(|id| id.trim_start_matches('#').parse::<i64>()) {
        Some(Err(_)) => return Err(Failure::new(Exit::Usage, "a note has a number, like `#12`")),
        Some(Ok(seq)) => Some(seq),
        None => None,
    };
    let of_workspace = seq.is_none() && args.task.is_none();
    let arguments = given([
        ("target", json!(args.task)),
        ("seq", json!(seq)),
        ("branch", json!(of_workspace.then_some("main"))),
        ("doc", json!(of_workspace.then_some("notes"))),
    ]);
    let arguments = if seq.is_none() { paged(arguments, &args.paging) } else { arguments };
    let answer = call_tool(WorkTool::MemoryShow, arguments, &args.options, invocation)?;
    let entries = list(&answer.result["entries"]);
    if !answer.silent {
        for entry in entries {
            let day = line(&entry["ts"]);
            let head =
                format!("#{} {} {}", entry["seq"], day.get(..10).unwrap_or(&day), line(&entry["title"]));
            match seq {
                Some(_) => {
                    work_text::print(head.trim_end(), invocation)?;
                    invocation.print_lines(entry["content"].as_str().unwrap_or_default())?;
                }
                None => {
                    work_text::print(format!("{} {}", head.trim_end(), line(&entry["content"])), invocation)?
                }
            }
        }
        if entries.is_empty() {
            invocation.eprint("nothing found");
        }
    }
    Ok(if entries.is_empty() { Exit::No } else { Exit::Success })
}

fn search(args: Search, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let among = if args.among.is_empty() { Value::Null } else { json!(args.among) };
    let arguments = given([("query", json!(args.words.join(" "))), ("in", among)]);
    let answer =
        call_tool(WorkTool::MemorySearch, paged(arguments, &args.paging), &args.options, invocation)?;
    let hits = list(&answer.result["hits"]);
    if !answer.silent {
        for hit in hits {
            work_text::print(one_line(hit), invocation)?;
        }
        if hits.is_empty() {
            invocation.eprint("nothing found");
        }
    }
    Ok(if hits.is_empty() { Exit::No } else { Exit::Success })
}

/// One hit: `note 12  task/TASK-001 notes  …`.
fn one_line(hit: &Value) -> String {
    let name = if hit["id"].is_null() { &hit["seq"] } else { &hit["id"] };
    let place: Vec<String> =
        [&hit["branch"], &hit["doc"]].iter().filter(|part| !part.is_null()).map(|part| line(part)).collect();
    format!("{} {}  {}  {}", line(&hit["kind"]), line(name), place.join(" "), line(&hit["snippet"]))
}
