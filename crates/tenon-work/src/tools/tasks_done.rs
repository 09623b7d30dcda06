//! `tasks_done`: a step closes once its children are done and its checkpoints confirmed.

use serde::Deserialize;

use super::answer::{self, StepAnswer};
use crate::error::WorkError;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<StepAnswer, WorkError> {
    let target = call.target(args.task.as_deref()).await?;
    let row = call.step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let (id, path) = (row.id, row.fields.path.clone());
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    if row.fields.completed {
        mutation.step(row);
        call.warn(format!("{path} was already done"));
        return Ok(answer::of_step(&mutation, call, Some(id)));
    }
    gate::check_step(call, &row).await?;
    mutation.step(row).completed = true;
    mutation.settle_status(call.tx, call.ws.id, true).await?;
    mutation.log(call.tx, &mut call.ws, "step_done", Some(&path)).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(answer::of_step(&mutation, call, Some(id)))
}
