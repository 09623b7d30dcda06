//! `tasks_decompose`: steps below a plan, a task or a step.

use serde::{Deserialize, Serialize};

use crate::error::WorkError;
use crate::id::TargetId;
use crate::limits;
use crate::plan::event::EventView;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step_tree::{self, NewStep, StepInput};
use crate::plan::{gate, step};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    parent: Option<String>,
    steps: Vec<StepInput>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    task: TargetId,
    revision: u64,
    steps: Vec<NewStep>,
    event: Option<EventView>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    let adding = step_tree::check(&args.steps)?;
    if adding == 0 {
        return Err(WorkError::invalid("steps is empty").recovery("give at least one step"));
    }
    let target = call.target(args.task.as_deref()).await?;
    let parent = call.find_step(target.id, None, args.parent.as_deref()).await?;
    let parent = parent.map(|step| step.fields.path);
    let counts = step::counts(call.tx, call.ws.id, target.id).await?;
    let total = usize::try_from(counts.total).unwrap_or(usize::MAX).saturating_add(adding);
    limits::steps(&target.id.to_string(), total)?;

    let first = step::next_ordinal(call.tx, call.ws.id, target.id, parent.as_ref()).await?;
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let made = step_tree::add(&mut mutation, &mut call.ws, parent.as_ref(), first, args.steps)?;
    gate::reopen_above(call, &mut mutation, parent.as_ref()).await?;
    mutation.settle_status(call.tx, call.ws.id, false).await?;
    mutation.log(call.tx, &mut call.ws, "steps_added", parent.as_ref()).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(Answer {
        task: mutation.row().id,
        revision: mutation.row().fields.revision,
        steps: made,
        event: mutation.event_view(call.ws.name.as_str()),
    })
}
