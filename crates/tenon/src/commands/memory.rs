//! `tenon memory`: the notes of agents, for people and scripts.

use serde_json::{Value, json};
use tenon_work::WorkTool;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::{PageOptions, WorkOptions, call_tool, given, line, list, paged};

/// Search the notes of agents
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Search(Search),
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
    let Command::Search(args) = args.command;
    let among = if args.among.is_empty() { Value::Null } else { json!(args.among) };
    let arguments = given([("query", json!(args.words.join(" "))), ("in", among)]);
    let answer =
        call_tool(WorkTool::MemorySearch, paged(arguments, &args.paging), &args.options, invocation)?;
    let hits = list(&answer.result["hits"]);
    if !answer.silent {
        for hit in hits {
            invocation.print(one_line(hit))?;
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
