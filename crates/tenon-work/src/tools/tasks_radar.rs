//! `tasks_radar`: now, why, verify, next, blockers.

use serde::Deserialize;
use serde_json::json;

use crate::catalog::WorkTool;
use crate::error::{Priority, WorkError};
use crate::page::{Page, Slot, object};
use crate::plan::radar::{self, Radar, RadarHead};
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    pub task: Option<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(radar) = read_radar(call, args.task.as_deref()).await? else { return nothing(call, &[]) };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let mut head = radar.head();
    head.steps = Some(radar.progress());
    head.requested = Some(args.task);
    head.focus = Some(call.ws.focus);
    propose_next(call, &radar);
    let page = radar::page(head, Radar::SLOTS.to_vec(), radar.items(), &request)?;
    Ok(WorkReply::page(page, request))
}

/// The radar of the given task, or of the focus; none if there is neither.
pub(super) async fn read_radar(
    call: &mut WorkCall<'_>,
    given: Option<&str>,
) -> Result<Option<Radar>, WorkError> {
    let Some(id) = call.target_id(given)? else { return Ok(None) };
    let target = call.load(id).await?;
    Ok(Some(Radar::read(call.tx, call.ws.id, target).await?))
}

/// The answer without a task: everything is null or empty. `lists` are those beside the radar.
pub(super) fn nothing(call: &mut WorkCall<'_>, lists: &[Slot]) -> Result<WorkReply, WorkError> {
    call.warn_of_missing_focus();
    let request = call.paging("")?;
    let head = object(RadarHead { requested: Some(None), focus: Some(None), ..RadarHead::default() });
    let slots = Radar::SLOTS.iter().chain(lists).copied().collect();
    Ok(WorkReply::page(Page { head, slots, ..Page::default() }, request))
}

/// Proposes the next call for the current step.
pub(super) fn propose_next(call: &mut WorkCall<'_>, radar: &Radar) {
    let Some(step) = &radar.now else { return };
    let (task, step_id) = (radar.target.id, step.id);
    let missing = step.fields.missing();
    if missing.is_empty() {
        let params = json!({"task": task, "step_id": step_id});
        call.propose(WorkTool::TasksDone, params, "All checkpoints are confirmed", Priority::High);
    } else {
        let checkpoints = super::checkpoints::confirming(&missing);
        let params = json!({"task": task, "step_id": step_id, "checkpoints": checkpoints});
        call.propose(WorkTool::TasksVerify, params, "Confirm them after checking", Priority::Medium);
    }
}
