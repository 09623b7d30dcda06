//! `tasks_resume`: everything needed to resume after a lost context, in one bounded call.

use serde_json::{Value, json};

use super::tasks_radar::{Args, nothing, propose_next, read_radar};
use crate::error::WorkError;
use crate::graph::query;
use crate::memory::branch::View;
use crate::memory::{NOTES, card, entry};
use crate::page::Slot;
use crate::plan::radar::{self, Radar, RadarItem};
use crate::plan::{event, step};
use crate::work_call::{WorkCall, WorkReply};

/// How many of the newest notes, cards and events are returned; the documents have the rest.
const NEWEST: usize = 20;

const STEPS: Slot = Slot::List("/steps");
const NOTED: Slot = Slot::List("/notes");
const CARDS: Slot = Slot::List("/cards");
const EVENTS: Slot = Slot::List("/events");

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let Some(radar) = read_radar(call, args.task.as_deref()).await? else {
        let radar = json!({"now": null, "why": null, "verify": [], "next": [], "blockers": []});
        return nothing(call, json!({"steps": [], "notes": [], "cards": [], "events": [], "radar": radar}));
    };
    let request = call.paging(&radar.target.fields.revision.to_string())?;
    let (ws, id) = (call.ws.id, radar.target.id);
    let view = View::of_target(id);

    let mut items = radar.items();
    let item = |slot, value, keep| RadarItem { slot, value, keep };
    let (done, open): (Vec<Value>, Vec<Value>) = {
        let steps = step::all(call.tx, ws, id).await?;
        let (done, open): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.fields.completed);
        (
            done.iter().map(|step| json!(step.view())).collect(),
            open.iter().map(|step| json!(step.view())).collect(),
        )
    };
    items.extend(open.into_iter().map(|step| item(STEPS, step, &["step_id", "path"])));
    for (note, part) in entry::in_view(call.tx, ws, &view, None, NOTES, None, NEWEST).await? {
        items.push(item(NOTED, json!(note.view(&part.name)), &["seq", "branch", "doc"]));
    }
    for card in
        query::newest_of_types(call.tx, ws, &view, &id.graph_doc(), &card::TYPES, i64::MAX, NEWEST).await?
    {
        items.push(item(CARDS, json!(card.view()), &["id"]));
    }
    let workspace = call.ws.name.as_str().to_owned();
    for event in event::newest(call.tx, ws, id, NEWEST as i64).await? {
        items.push(item(EVENTS, json!(event.view(&workspace)), &["event_id", "type"]));
    }
    items.extend(done.into_iter().map(|step| item(STEPS, step, &["step_id", "path"])));

    let mut head = radar.head();
    if let Some(counts) = head.remove("steps") {
        head.insert("counts".into(), counts);
    }
    let mut slots = Radar::SLOTS.to_vec();
    slots.extend([STEPS, NOTED, CARDS, EVENTS]);
    propose_next(call, &radar);
    let page = radar::page(head, slots, items, &request)?;
    Ok(WorkReply::page(page, request))
}
