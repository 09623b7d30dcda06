//! `tasks_verify`: confirms checkpoints of a step, or withdraws a confirmation.

use serde::Deserialize;

use super::answer::{self, StepAnswer};
use super::checkpoints::Checkpoints;
use crate::error::WorkError;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    checkpoints: Checkpoints,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<StepAnswer, WorkError> {
    if args.checkpoints.is_empty() {
        return Err(WorkError::invalid("checkpoints is empty").recovery("name at least one checkpoint"));
    }
    let target = call.target(args.task.as_deref()).await?;
    let row = call.step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let (id, path) = (row.id, row.fields.path.clone());
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    if !args.checkpoints.apply(mutation.step(row)) {
        call.warn("nothing changed");
        return Ok(answer::of_step(&mutation, call, Some(id)));
    }
    gate::reopen(call, &mut mutation, id).await?;
    mutation.settle_status(call.tx, call.ws.id, true).await?;
    mutation.log(call.tx, &mut call.ws, "step_verified", Some(&path)).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(answer::of_step(&mutation, call, Some(id)))
}
