//! `tenon tasks add`, `start`, `note` and `done`: the changes that people make.

use serde_json::json;
use tenon_work::{LeanTool, WorkTool};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::{StepChecking, WorkOptions, call_lean, call_lean_checked, call_tool_quietly, given};

/// Add a task
#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// Title
    #[arg(required = true, value_name = "WORD")]
    title: Vec<String>,
    /// A step; may be repeated
    #[arg(long = "step", value_name = "TITLE")]
    steps: Vec<String>,
    /// Plan, by id or title; a new title makes a new plan
    #[arg(long, value_name = "PLAN")]
    under: Option<String>,
    /// Task that must be done before; may be repeated
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Priority
    #[arg(long, value_parser = ["high", "medium", "low"])]
    priority: Option<String>,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn add(args: Add, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments = given([
        ("title", json!(args.title.join(" "))),
        ("steps", json!(args.steps)),
        ("under", json!(args.under)),
        ("after", json!(args.after)),
        ("priority", json!(args.priority)),
    ]);
    call_lean(LeanTool::TaskAdd, arguments, &args.options, invocation)?;
    Ok(Exit::Success)
}

/// Start to work on a task: it becomes active and the focus
#[derive(Debug, clap::Args)]
pub(super) struct Start {
    /// Id or title; by default the newest open task
    id: Option<String>,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn start(args: Start, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments = given([("id", json!(args.id)), ("status", json!("active"))]);
    let answer = call_lean(LeanTool::TaskUpdate, arguments, &args.options, invocation)?;
    call_tool_quietly(
        WorkTool::TasksFocusSet,
        json!({"task": answer.data["id"]}),
        &args.options,
        invocation,
    )?;
    Ok(Exit::Success)
}

/// Add a note to a task
#[derive(Debug, clap::Args)]
pub(super) struct Note {
    /// Text
    #[arg(required = true, value_name = "WORD")]
    text: Vec<String>,
    /// Id or title of the task; by default the current one
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Number or title of a step
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn note(args: Note, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments =
        given([("id", json!(args.task)), ("step", json!(args.step)), ("note", json!(args.text.join(" ")))]);
    call_lean(LeanTool::TaskUpdate, arguments, &args.options, invocation)?;
    Ok(Exit::Success)
}

/// Close a step, or a task whose steps are done
///
/// Closing a task records the commit and the branch that are checked out. A check that a step names runs first, through the
/// daemon, which is started if needed; if it fails, the step stays open. Exits with 1 if a step stays open.
#[derive(Debug, clap::Args)]
pub(super) struct Done {
    /// Id or title of the task; by default the current one
    id: Option<String>,
    /// Number or title of the step, or `all`; by default the only open one
    step: Option<String>,
    /// Close it without its checks: your word counts
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn done(args: Done, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments = given([("id", json!(args.id)), ("step", json!(args.step)), ("done", json!(true))]);
    let checking = if args.unchecked { StepChecking::ByHand } else { StepChecking::Run };
    let answer = call_lean_checked(LeanTool::TaskUpdate, arguments, checking, &args.options, invocation)?;
    Ok(if answer.data["refused"] == true { Exit::No } else { Exit::Success })
}
