//! `tasks_note`: adds a note on a task or step to the notes of the target's branch.

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::answer::{self, StepAnswer};
use crate::error::WorkError;
use crate::id::TargetId;
use crate::limits;
use crate::memory::entry::{self, NewNote};
use crate::memory::{NOTES, branch};
use crate::plan::event::EventView;
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::step::StepRef;
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
    step_id: Option<String>,
    path: Option<String>,
    note: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    task: TargetId,
    revision: u64,
    step: Option<StepRef>,
    event: Option<EventView>,
    note_seq: i64,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    limits::text("note", &args.note)?;
    if args.note.trim().is_empty() {
        return Err(WorkError::invalid("the note is empty").recovery("give a text"));
    }
    let target = call.target(args.task.as_deref()).await?;
    let step = call.find_step(target.id, args.step_id.as_deref(), args.path.as_deref()).await?;

    let path = step.as_ref().map(|step| step.fields.path.clone());
    let meta = json!({
        "task": target.id,
        "step_id": step.as_ref().map(|step| step.id),
        "path": path,
        "tool": call.request.tool.name(),
    });
    let note = NewNote {
        branch: branch::number_of(target.id),
        doc: NOTES,
        meta: Some(meta),
        content: &args.note,
        ..NewNote::default()
    };
    let seq = entry::append(call.tx, &mut call.ws, call.now, &note).await?;

    let mut mutation = Mutation::of(target, call.request.tool, call.now, Undoable::Yes);
    let step_id = step.as_ref().map(|step| step.id);
    match step {
        Some(step) => {
            mutation.step(step).notes += 1;
            mutation.settle_status(call.tx, call.ws.id, true).await?;
        }
        None => mutation.target().notes += 1,
    }
    let extra = Map::from_iter([("note_seq".to_owned(), json!(seq))]);
    mutation.log_with(call.tx, &mut call.ws, "note_added", path.as_ref(), extra).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    let StepAnswer { task, revision, step, event } = answer::of_step(&mutation, call, step_id);
    Ok(Answer { task, revision, step, event, note_seq: seq })
}
