//! `tenon tasks watch`: changes of plans and tasks as they happen.

use serde_json::{Value, json};
use tenon_work::WorkTool;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::styled_text::{Colour, StyledText};
use crate::work::{WorkOptions, call_tool_quietly, line, list};

/// How long one request waits for changes.
const WAIT_MS: u64 = 10_000;

/// Print changes of plans and tasks as they happen, also those of other machines
///
/// Runs until it is interrupted. With `--json`, one event per line.
#[derive(Debug, clap::Args)]
pub(super) struct Watch {
    /// Plan or task, like `TASK-001`; by default all
    id: Option<String>,
    /// Exit after this many changes
    #[arg(long, value_name = "COUNT")]
    count: Option<usize>,
    /// Also print the changes so far
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn run(args: Watch, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let mut since = if args.all { None } else { last_event(&args, invocation)? };
    let mut left = args.count.unwrap_or(usize::MAX);
    if !args.options.json {
        invocation.eprint("watching; interrupt with Ctrl-C");
    }
    while left > 0 {
        let mut arguments = json!({"limit": 200, "wait_ms": WAIT_MS});
        for (name, value) in [("since", &since), ("task", &args.id)] {
            if let Some(value) = value {
                arguments[name] = json!(value);
            }
        }
        let answer = call_tool_quietly(WorkTool::TasksDelta, arguments, &args.options, invocation)?;
        for event in list(&answer["events"]).iter().take(left) {
            since = event["event_id"].as_str().map(str::to_owned);
            left -= 1;
            match args.options.json {
                true => invocation.print_data(event.to_string())?,
                false => invocation.print_styled(&shown(event))?,
            }
        }
    }
    Ok(Exit::Success)
}

/// The newest event: changes after it are news.
fn last_event(args: &Watch, invocation: &mut Invocation) -> Result<Option<String>, Failure> {
    let status = call_tool_quietly(WorkTool::MemoryStatus, json!({}), &args.options, invocation)?;
    Ok(status["last_event"]["event_id"].as_str().or(status["last_event"].as_str()).map(str::to_owned))
}

/// `03:04:05 TASK-001 step done  2 Find the cause`
fn shown(event: &Value) -> StyledText {
    let time = line(&event["ts"]);
    let time = time.get(11..19).unwrap_or(&time).to_owned();
    let task = line(&event["task"]);
    let after = &event["payload"]["after"];
    let title = after.as_object().into_iter().flatten().find_map(|(_, fields)| fields["title"].as_str());
    let path = line(&event["path"]);
    let mut text = StyledText::default();
    text.plain(&format!("{time} "));
    text.coloured(Colour::Blue, &task);
    let what = line(&event["type"]).replace('_', " ");
    let colour = if what.contains("done") { Colour::Green } else { Colour::Yellow };
    text.plain(" ");
    text.coloured(colour, &what);
    if !path.is_empty() {
        text.plain(&format!(" {path}"));
    }
    if let Some(title) = title {
        text.plain(&format!(" {}", line(&json!(title))));
    }
    text.end_line();
    text
}
