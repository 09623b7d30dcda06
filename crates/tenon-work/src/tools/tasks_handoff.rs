//! `tasks_handoff`: what is done, what remains, what can go wrong, and the radar.

use serde_json::{Value, json};

use super::tasks_radar::{Args, nothing, propose_next, read_radar};
use crate::error::WorkError;
use crate::page::Slot;
use crate::plan::radar::{self, Radar, RadarItem};
use crate::plan::step::{self, StepRow};
use crate::work_call::{WorkCall, WorkReply};

const DONE: Slot = Slot::List("/done");
const REMAINING: Slot = Slot::List("/remaining");
const RISKS: Slot = Slot::List("/risks");

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(radar) = read_radar(call, args.task.as_deref()).await? else {
        let radar = json!({"now": null, "why": null, "verify": [], "next": [], "blockers": []});
        return nothing(call, json!({"done": [], "remaining": [], "risks": [], "radar": radar}));
    };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let steps = step::all(call.tx, call.ws.id, radar.target.id).await?;
    let mut items = radar.items();
    let item = |slot, value, keep| RadarItem { slot, value, keep };
    let (done, open): (Vec<&StepRow>, Vec<&StepRow>) = steps.iter().partition(|step| step.fields.completed);
    items.extend(open.into_iter().map(|step| item(REMAINING, line(step), &["step_id", "path"])));
    items.extend(radar.risks(&steps).into_iter().map(|risk| item(RISKS, risk, &["kind", "id"])));
    items.extend(done.into_iter().map(|step| item(DONE, line(step), &["step_id", "path"])));
    let mut slots = Radar::SLOTS.to_vec();
    slots.extend([DONE, REMAINING, RISKS]);
    propose_next(call, &radar);
    let page = radar::page(radar.head(), slots, items, &request)?;
    Ok(WorkReply::page(page, request))
}

/// A step in one line.
fn line(step: &StepRow) -> Value {
    let fields = &step.fields;
    let mut value = json!({"step_id": step.id, "path": fields.path, "title": fields.title});
    if fields.completed {
        value["evidence"] = json!(fields.evidence.len());
    } else {
        value["missing"] = json!(fields.missing());
    }
    value
}
