//! `tasks_delete`: a step with those below it, a task, or a plan with its tasks.
//!
//! Nothing is erased: deleted records are hidden, keep their number and path, and can be restored by undo.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::catalog::WorkTool;
use crate::error::{Priority, WorkError};
use crate::id::TargetId;
use crate::plan::event::EventView;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, TargetRow};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: String,
    step_id: Option<String>,
    path: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    deleted: Vec<String>,
    revision: u64,
    event: Option<EventView>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    let target = call.target(Some(&args.task)).await?;
    let step = call.find_step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;
    let id = target.id;
    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let (deleted, path) = match step {
        Some(step) => {
            let path = step.fields.path.clone();
            (delete_steps(call, &mut mutation, step).await?, Some(path))
        }
        None => (delete_targets(call, &mut mutation).await?, None),
    };
    mutation.log(call.tx, &mut call.ws, "deleted", path.as_ref()).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    call.propose(WorkTool::TasksUndo, json!({"task": id}), "Undo the deletion", Priority::Low);
    Ok(Answer {
        deleted,
        revision: mutation.row().fields.revision,
        event: mutation.event_view(call.ws.name.as_str()),
    })
}

async fn delete_steps(
    call: &mut WorkCall<'_>,
    mutation: &mut Mutation,
    step: StepRow,
) -> Result<Vec<String>, WorkError> {
    let mut rows = step::below(call.tx, call.ws.id, step.target, &step.fields.path).await?;
    rows.insert(0, step);
    let deleted = rows.iter().map(|row| row.id.to_string()).collect();
    for row in rows {
        mutation.step(row).deleted = true;
    }
    mutation.settle_status(call.tx, call.ws.id, true).await?;
    Ok(deleted)
}

async fn delete_targets(call: &mut WorkCall<'_>, mutation: &mut Mutation) -> Result<Vec<String>, WorkError> {
    let id = mutation.row().id;
    let tasks = target::children(call.tx, call.ws.id, id).await?;
    let mut ids = vec![id];
    ids.extend(tasks.iter().map(|task| task.id));
    for &id in &ids {
        gate::check_no_dependents(call, id, &ids).await?;
    }
    mutation.target().deleted = true;
    for task in tasks {
        let task: TargetRow = task;
        mutation.other(task).deleted = true;
    }
    call.clear_focus_on(ids.iter().copied());
    Ok(ids.iter().map(TargetId::to_string).collect())
}
