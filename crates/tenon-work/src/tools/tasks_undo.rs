//! `tasks_undo` and `tasks_redo`: the newest operation of a task undone, or redone.

use serde::Deserialize;
use serde_json::json;

use crate::error::WorkError;
use crate::plan::undo::{self, Direction};
use crate::work_call::{WorkCall, WorkReply, parse_target};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: String,
}

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: Args,
    direction: Direction,
) -> Result<WorkReply, WorkError> {
    let id = parse_target(&args.task)?;
    let (op_id, mutation) = undo::apply(call, id, direction).await?;
    Ok(WorkReply::done(json!({
        "op_id": op_id,
        "revision": mutation.row().fields.revision,
        "event": mutation.event_value(call.ws.name.as_str()),
    })))
}
