//! `tasks_resume`: everything needed to resume after a lost context, in one bounded call.

use super::tasks_radar::{Args, nothing, propose_next, read_radar};
use crate::error::WorkError;
use crate::graph::query;
use crate::memory::branch::View;
use crate::memory::{NOTES, card, entry};
use crate::page::Slot;
use crate::plan::event;
use crate::plan::radar::{self, Radar, RadarItem};
use crate::plan::step::{self, StepRow};
use crate::work_call::{WorkCall, WorkReply};

/// How many of the newest notes, cards and events are returned; the documents have the rest.
const NEWEST: usize = 20;

const STEPS: Slot = Slot::List("/steps");
const NOTED: Slot = Slot::List("/notes");
const CARDS: Slot = Slot::List("/cards");
const EVENTS: Slot = Slot::List("/events");

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let mut task = args.task;
    if task.is_none() && call.ws.focus.is_none() {
        // Without a focus: what is being worked on.
        task = call.current_task("").await?.map(|row| row.id.to_string());
        if let Some(id) = &task {
            call.warn(format!("no focus is set; this is {id}"));
        }
    }
    let Some(radar) = read_radar(call, task.as_deref()).await? else {
        return nothing(call, &[STEPS, NOTED, CARDS, EVENTS]);
    };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let (ws, id) = (call.ws.id, radar.target.id);
    let view = View::of_target(id);

    let mut items = radar.items();
    let step_item = |step: &StepRow| RadarItem::new(STEPS, step.view(), &["step_id", "path"]);
    let steps = step::all(call.tx, ws, id).await?;
    let (done, open): (Vec<&StepRow>, Vec<&StepRow>) = steps.iter().partition(|step| step.fields.completed);
    items.extend(open.into_iter().map(step_item));
    for (note, part) in entry::in_view(call.tx, ws, &view, None, NOTES, None, NEWEST).await? {
        if note.format.as_deref() == Some(entry::FORGOTTEN) {
            continue;
        }
        items.push(RadarItem::new(NOTED, note.view(&part.name), &["seq", "branch", "doc"]));
    }
    for card in
        query::newest_of_types(call.tx, ws, &view, &id.graph_doc(), &card::TYPES, i64::MAX, NEWEST).await?
    {
        items.push(RadarItem::new(CARDS, card.view(), &["id"]));
    }
    let workspace = call.ws.name.as_str().to_owned();
    for event in event::newest(call.tx, ws, id, NEWEST as i64).await? {
        items.push(RadarItem::new(EVENTS, event.view(&workspace), &["event_id", "type"]));
    }
    items.extend(done.into_iter().map(step_item));

    let mut head = radar.head();
    head.counts = Some(radar.progress());
    let mut slots = Radar::SLOTS.to_vec();
    slots.extend([STEPS, NOTED, CARDS, EVENTS]);
    propose_next(call, &radar);
    let page = radar::page(head, slots, items, &request)?;
    Ok(WorkReply::page(page, request))
}
