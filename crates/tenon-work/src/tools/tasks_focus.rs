//! `tasks_focus_get`, `tasks_focus_set` and `tasks_focus_clear`: the task of calls without `task`.
//!
//! The focus belongs to the workspace: changing it changes no revision and logs no event.

use serde::{Deserialize, Serialize};

use crate::error::WorkError;
use crate::id::TargetId;
use crate::page::Page;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: String,
}

#[derive(Debug, Serialize)]
struct Focus {
    focus: Option<TargetId>,
}

pub(super) async fn get(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let request = call.paging("")?;
    Ok(WorkReply::page(Page::head(Focus { focus: call.ws.focus }), request))
}

#[derive(Debug, Serialize)]
pub(crate) struct FocusSet {
    focus: TargetId,
    previous: Option<TargetId>,
}

pub(super) async fn set(call: &mut WorkCall<'_>, args: Args) -> Result<FocusSet, WorkError> {
    let target = call.target(Some(&args.task)).await?;
    let previous = call.ws.focus;
    call.ws.set_focus(Some(target.id));
    Ok(FocusSet { focus: target.id, previous })
}

#[derive(Debug, Serialize)]
pub(crate) struct FocusCleared {
    /// Always none.
    focus: Option<TargetId>,
    previous: Option<TargetId>,
    cleared: bool,
}

pub(super) async fn clear(call: &mut WorkCall<'_>) -> Result<FocusCleared, WorkError> {
    let previous = call.ws.focus;
    call.check_target(previous)?;
    call.ws.set_focus(None);
    Ok(FocusCleared { focus: None, previous, cleared: previous.is_some() })
}
