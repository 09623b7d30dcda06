//! `tasks_focus_get`, `tasks_focus_set` and `tasks_focus_clear`: the task of calls without `task`.
//!
//! The focus belongs to the workspace: changing it changes no revision and logs no event.

use serde::Deserialize;
use serde_json::json;

use crate::error::WorkError;
use crate::page::Page;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    task: String,
}

pub(super) async fn get(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let request = call.paging("")?;
    Ok(WorkReply::page(Page::head(json!({"focus": call.ws.focus})), request))
}

pub(super) async fn set(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let target = call.target(Some(&args.task)).await?;
    let previous = call.ws.focus;
    call.ws.set_focus(Some(target.id));
    Ok(WorkReply::done(json!({"focus": target.id, "previous": previous})))
}

pub(super) async fn clear(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let previous = call.ws.focus;
    call.check_target(previous)?;
    call.ws.set_focus(None);
    Ok(WorkReply::done(json!({"focus": null, "previous": previous, "cleared": previous.is_some()})))
}
