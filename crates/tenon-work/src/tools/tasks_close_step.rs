//! `tasks_close_step`: verify and done as one operation.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::checkpoints::Checkpoints;
use crate::error::WorkError;
use crate::plan::gate;
use crate::plan::mutation::{Mutation, Undoable};
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    #[serde(default)]
    checkpoints: Checkpoints,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
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
    let events: Vec<Value> = mutation.events.iter().map(|event| event.to_value(workspace)).collect();
    let mut result = answer::of_step(&mutation, call, Some(id));
    result.insert("events".into(), json!(events));
    Ok(WorkReply::Done(result))
}
