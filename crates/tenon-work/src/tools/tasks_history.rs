//! `tasks_history`: operations of a task, newest first, and whether they are undone.

use serde::{Deserialize, Serialize};

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::id::{OperationId, TargetId};
use crate::page::{Cut, Item, Page};
use crate::plan::event;
use crate::plan::target::{self, signed, time};
use crate::work_call::{WorkCall, WorkReply, unknown_target};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: Option<String>,
}

#[derive(Debug, Serialize)]
struct Head {
    /// None without a focus.
    task: Option<TargetId>,
}

/// An operation as clients see it.
#[derive(Debug, Serialize)]
struct OperationView<'a> {
    op_id: OperationId,
    tool: &'a str,
    ts: String,
    undone: bool,
    revision: u64,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(id) = call.target_id(args.task.as_deref())? else {
        call.warn_of_missing_focus();
        let request = call.paging("")?;
        let page = Page::list(Head { task: None }, "/operations", Vec::new(), false);
        return Ok(WorkReply::page(page, request));
    };
    // A deleted task has a history too: its last operation can be undone.
    if target::load(call.tx, call.ws.id, id).await?.is_none() {
        return Err(unknown_target(&id.to_string()));
    }
    let request = call.paging("")?;
    let below = request.first_below()?.unwrap_or(i64::MAX);
    let most = signed(request.limit as u64 + 1);
    let mut operations = event::operations(call.tx, call.ws.id, id, below, most).await?;
    let more = operations.len() > request.limit;
    operations.truncate(request.limit);
    let items = operations.iter().map(|operation| {
        let value = OperationView {
            op_id: OperationId(operation.number.unsigned_abs()),
            tool: &operation.tool,
            ts: time(operation.ts_ms),
            undone: operation.undo_state != event::UndoState::Done,
            revision: operation.revision,
        };
        Item::new("/operations", SortKey::ints(&[operation.number]), value, Cut::Json(&["op_id"]))
    });
    let items = items.collect();
    Ok(WorkReply::page(Page::list(Head { task: Some(id) }, "/operations", items, more), request))
}
