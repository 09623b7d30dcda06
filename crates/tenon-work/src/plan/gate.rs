//! Gates: conditions for closing a step, task or plan, and reopening when they no longer hold.

use serde_json::json;

use super::mutation::Mutation;
use super::radar::AHEAD;
use super::step::{self, StepRow};
use super::target;
use crate::catalog::WorkTool;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::id::{StepId, TargetId};
use crate::tools::checkpoints::confirming;
use crate::work_call::WorkCall;

/// Fails if children of a step are open or checkpoints are not confirmed.
pub(crate) async fn check_step(call: &mut WorkCall<'_>, step: &StepRow) -> Result<(), WorkError> {
    let mut open = step::open_below(call.tx, call.ws.id, step.target, &step.fields.path, AHEAD).await?;
    if let Some(child) = step::take_first_leaf(&mut open) {
        return Err(not_confirmed(&format!("{} has open steps below it", step.fields.path), &["children"])
            .recovery("close the steps below it first")
            .current(step.to_ref())
            .propose(next_action(&child)));
    }
    let missing = step.fields.missing();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|checkpoint| checkpoint.as_str()).collect();
        let what = format!("{} is not confirmed at {}", step.fields.path, names.join(", "));
        return Err(not_confirmed(&what, &names)
            .recovery("check what is missing, confirm it with tasks_verify, then call again")
            .current(step.to_ref())
            .propose(next_action(step)));
    }
    Ok(())
}

/// Fails if a step or task below a plan or task is open.
pub(crate) async fn check_target(call: &mut WorkCall<'_>, id: TargetId) -> Result<(), WorkError> {
    let mut open = step::open(call.tx, call.ws.id, id, AHEAD).await?;
    if let Some(leaf) = step::take_first_leaf(&mut open) {
        return Err(not_confirmed(&format!("{id} has open steps"), &["steps"])
            .recovery("close its steps first")
            .propose(next_action(&leaf)));
    }
    if target::has_open_tasks(call.tx, call.ws.id, id).await? {
        return Err(not_confirmed(&format!("{id} has open tasks"), &["tasks"])
            .recovery("close its tasks first")
            .propose(Proposal::new(
                WorkTool::TasksContext,
                json!({"parent": id}),
                "See which tasks are open",
                Priority::High,
            )));
    }
    Ok(())
}

fn not_confirmed(message: &str, missing: &[&str]) -> WorkError {
    WorkError::new(WorkErrorCode::CheckpointsNotConfirmed, message).with("missing", json!(missing))
}

/// The next call for an open step.
fn next_action(step: &StepRow) -> Proposal {
    let (task, step_id) = (step.target, step.id);
    let missing = step.fields.missing();
    if missing.is_empty() {
        let params = json!({"task": task, "step_id": step_id});
        return Proposal::new(WorkTool::TasksDone, params, "All checkpoints are confirmed", Priority::High);
    }
    let params = json!({"task": task, "step_id": step_id, "checkpoints": confirming(&missing)});
    Proposal::new(WorkTool::TasksVerify, params, "Confirm what is missing, after checking it", Priority::High)
}

/// Reopens a closed step whose checkpoints are no longer confirmed, and everything above it.
pub(crate) async fn reopen(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    id: StepId,
) -> Result<(), WorkError> {
    let row = mutation.step_row(id).clone();
    if row.fields.completed && !row.fields.missing().is_empty() {
        mutation.step(row.clone()).completed = false;
        call.warn(format!("{} was reopened: it is no longer confirmed", row.fields.path));
    }
    let row = mutation.step_row(id).clone();
    if !row.fields.completed {
        reopen_above(call, mutation, row.fields.path.parent().as_ref()).await?;
    }
    Ok(())
}

/// Reopens a step and everything above it.
pub(crate) async fn reopen_above(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    from: Option<&crate::path::StepPath>,
) -> Result<(), WorkError> {
    let mut path = from.cloned();
    while let Some(current) = path {
        let row = step::by_path(call.tx, call.ws.id, mutation.row().id, &current).await?;
        if let Some(row) = row
            && row.fields.completed
            && !row.fields.deleted
        {
            mutation.step(row).completed = false;
            call.warn(format!("{current} was reopened: something below it is open"));
        }
        path = current.parent();
    }
    Ok(())
}

/// Fails if a task outside of `deleted` depends on this one.
pub(crate) async fn check_no_dependents(
    call: &mut WorkCall<'_>,
    id: TargetId,
    deleted: &[TargetId],
) -> Result<(), WorkError> {
    let dependents = target::dependents(call.tx, call.ws.id, id).await?;
    let Some(first) = dependents.into_iter().find(|task| !deleted.contains(task)) else { return Ok(()) };
    Err(WorkError::new(WorkErrorCode::Conflict, format!("{first} depends on {id}"))
        .recovery("remove the dependency first")
        .propose(Proposal::new(
            WorkTool::TasksPatch,
            json!({"task": first, "ops": [{"op": "remove", "field": "depends_on", "value": id}]}),
            "Remove the dependency",
            Priority::Medium,
        )))
}
