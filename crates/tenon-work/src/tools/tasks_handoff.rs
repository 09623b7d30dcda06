//! `tasks_handoff`: what is done, what remains, what can go wrong, and the radar.

use serde::Serialize;

use super::tasks_radar::{Args, nothing, propose_next, read_radar};
use crate::error::WorkError;
use crate::id::StepId;
use crate::page::Slot;
use crate::path::StepPath;
use crate::plan::radar::{self, Radar, RadarItem};
use crate::plan::step::{self, Checkpoint, StepRow};
use crate::work_call::{WorkCall, WorkReply};

const DONE: Slot = Slot::List("/done");
const REMAINING: Slot = Slot::List("/remaining");
const RISKS: Slot = Slot::List("/risks");

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(radar) = read_radar(call, args.task.as_deref()).await? else {
        return nothing(call, &[DONE, REMAINING, RISKS]);
    };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let steps = step::all(call.tx, call.ws.id, radar.target.id).await?;
    let mut items = radar.items();
    let ids = &["step_id", "path"];
    let (done, open): (Vec<&StepRow>, Vec<&StepRow>) = steps.iter().partition(|step| step.fields.completed);
    items.extend(open.into_iter().map(|step| RadarItem::new(REMAINING, line(step), ids)));
    items.extend(radar.risks(&steps).into_iter().map(|risk| RadarItem::new(RISKS, risk, &["kind", "id"])));
    items.extend(done.into_iter().map(|step| RadarItem::new(DONE, line(step), ids)));
    let mut slots = Radar::SLOTS.to_vec();
    slots.extend([DONE, REMAINING, RISKS]);
    propose_next(call, &radar);
    let mut head = radar.head();
    head.steps = Some(radar.progress());
    let page = radar::page(head, slots, items, &request)?;
    Ok(WorkReply::page(page, request))
}

/// A step in one line.
#[derive(Debug, Serialize)]
struct StepLine<'a> {
    step_id: StepId,
    path: &'a StepPath,
    title: &'a str,
    /// How many items; only if the step is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<usize>,
    /// Only if the step is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<Checkpoint>>,
}

fn line(step: &StepRow) -> StepLine<'_> {
    let fields = &step.fields;
    StepLine {
        step_id: step.id,
        path: &fields.path,
        title: &fields.title,
        evidence: fields.completed.then_some(fields.evidence.len()),
        missing: (!fields.completed).then(|| fields.missing()),
    }
}
