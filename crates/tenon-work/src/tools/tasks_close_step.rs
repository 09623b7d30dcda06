//! `tasks_close_step`: verify and done as one operation.

use serde::{Deserialize, Serialize};

use super::answer::{self, StepAnswer};
use super::checkpoints::Checkpoints;
use crate::error::WorkError;
use crate::id::TargetId;
use crate::plan::event::EventView;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step::StepRef;
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    #[serde(default)]
    checkpoints: Checkpoints,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    task: TargetId,
    revision: u64,
    step: Option<StepRef>,
    event: Option<EventView>,
    events: Vec<EventView>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    let target = call.target(args.task.as_deref()).await?;
    let row = call.step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let (id, path, was_done) = (row.id, row.fields.path.clone(), row.fields.completed);
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let verified = args.checkpoints.apply(mutation.step(row));
    let row = mutation.step_row(id).clone();
    gate::check_step(call, &row).await?;
    if verified {
        mutation.log(call.tx, &mut call.ws, "step_verified", Some(&path)).await?;
    }
    if was_done {
        call.warn(format!("{path} was already done"));
    } else {
        mutation.step(row).completed = true;
        mutation.settle_status(call.tx, call.ws.id, true).await?;
        mutation.log(call.tx, &mut call.ws, "step_done", Some(&path)).await?;
    }
    if !mutation.events.is_empty() {
        mutation.save(call.tx, &mut call.ws).await?;
    }
    let workspace = call.ws.name.as_str();
    let events = mutation.events.iter().map(|event| event.view(workspace)).collect();
    let StepAnswer { task, revision, step, event } = answer::of_step(&mutation, call, Some(id));
    Ok(Answer { task, revision, step, event, events })
}
