//! `tasks_undo` and `tasks_redo`: the newest operation of a task undone, or redone.

use serde::{Deserialize, Serialize};

use crate::error::WorkError;
use crate::id::OperationId;
use crate::plan::event::EventView;
use crate::plan::undo::{self, Direction};
use crate::work_call::{WorkCall, parse_target};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    op_id: OperationId,
    revision: u64,
    event: Option<EventView>,
}

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: Args,
    direction: Direction,
) -> Result<Answer, WorkError> {
    let id = parse_target(&args.task)?;
    let (op_id, mutation) = undo::apply(call, id, direction).await?;
    Ok(Answer {
        op_id,
        revision: mutation.row().fields.revision,
        event: mutation.event_view(call.ws.name.as_str()),
    })
}
