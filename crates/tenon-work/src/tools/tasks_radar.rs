//! `tasks_radar`: now, why, verify, next, blockers.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalog::WorkTool;
use crate::error::{Priority, WorkError};
use crate::page::{Page, object};
use crate::plan::radar::{self, Radar};
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    pub task: Option<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(radar) = read_radar(call, args.task.as_deref()).await? else {
        return nothing(
            call,
            json!({"radar": {"now": null, "why": null, "verify": [], "next": [], "blockers": []}}),
        );
    };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let mut head = radar.head();
    head.insert("requested".into(), json!(args.task));
    head.insert("focus".into(), json!(call.ws.focus));
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

/// The answer without a task.
pub(super) fn nothing(call: &mut WorkCall<'_>, rest: Value) -> Result<WorkReply, WorkError> {
    call.warn("no task given, and no focus is set");
    call.propose(WorkTool::TasksContext, json!({}), "List plans and tasks", Priority::High);
    let request = call.paging("")?;
    let mut head: Map<String, Value> = object(rest);
    for name in ["target", "reasoning_ref", "requested", "focus"] {
        head.insert(name.into(), Value::Null);
    }
    Ok(WorkReply::page(Page { head, ..Page::default() }, request))
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
