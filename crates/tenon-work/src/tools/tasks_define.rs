//! `tasks_define`: redefines a step.

use serde::Deserialize;

use super::answer::{self, StepAnswer};
use crate::arguments::NonEmpty;
use crate::error::WorkError;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step::{Checkpoint, OptionalCheckpoint};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    title: Option<String>,
    success_criteria: Option<NonEmpty<String>>,
    tests: Option<Vec<String>>,
    blockers: Option<Vec<String>>,
    checkpoints: Option<Vec<OptionalCheckpoint>>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<StepAnswer, WorkError> {
    let target = call.target(args.task.as_deref()).await?;
    let row = call.step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let (id, before) = (row.id, row.fields.clone());
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    // Given criteria or tests must be confirmed again, even if they are the same.
    let (criteria_given, tests_given) = (args.success_criteria.is_some(), args.tests.is_some());
    let after = mutation.step(row);
    after.title = args.title.unwrap_or(after.title.clone());
    after.success_criteria =
        args.success_criteria.map_or(after.success_criteria.clone(), |criteria| criteria.0);
    after.tests = args.tests.unwrap_or(after.tests.clone());
    after.blockers = args.blockers.unwrap_or(after.blockers.clone());
    if let Some(checkpoints) = args.checkpoints {
        after.checkpoints = checkpoints.into_iter().map(Checkpoint::from).collect();
    }
    after.settle()?;
    after.confirmed.retain(|checkpoint| match checkpoint {
        Checkpoint::Criteria => !criteria_given,
        Checkpoint::Tests => !tests_given,
        _ => true,
    });
    if *after == before {
        call.warn("nothing changed");
        return Ok(answer::of_step(&mutation, call, Some(id)));
    }
    gate::reopen(call, &mut mutation, id).await?;
    mutation.settle_status(call.tx, call.ws.id, true).await?;
    mutation.log(call.tx, &mut call.ws, "step_defined", Some(&before.path)).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(answer::of_step(&mutation, call, Some(id)))
}
