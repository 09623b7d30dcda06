//! `tasks_block`: adds or removes blockers of a task or step.
//!
//! A task is blocked while it has blockers: there is no separate flag.

use serde::Deserialize;

use super::answer::{self, StepAnswer};
use crate::error::WorkError;
use crate::limits;
use crate::plan::mutation::{Mutation, Undoable};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    blocked: bool,
    reason: Option<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<StepAnswer, WorkError> {
    let target = call.target(args.task.as_deref()).await?;
    let step = call.find_step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let step_id = step.as_ref().map(|step| step.id);
    let path = step.as_ref().map(|step| step.fields.path.clone());
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let blockers = match step {
        Some(step) => &mut mutation.step(step).blockers,
        None => &mut mutation.target().blockers,
    };
    match (args.blocked, args.reason) {
        (true, reason) => {
            let reason = reason.unwrap_or_else(|| "blocked".into());
            if !blockers.contains(&reason) {
                blockers.push(reason);
            }
        }
        (false, Some(reason)) => blockers.retain(|blocker| *blocker != reason),
        (false, None) => blockers.clear(),
    }
    limits::texts("blockers", blockers)?;
    if !mutation.is_changed() {
        call.warn("nothing changed");
        return Ok(answer::of_step(&mutation, call, step_id));
    }
    mutation.settle_status(call.tx, call.ws.id, step_id.is_some()).await?;
    let event = if args.blocked { "blocked" } else { "unblocked" };
    mutation.log(call.tx, &mut call.ws, event, path.as_ref()).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(answer::of_step(&mutation, call, step_id))
}
