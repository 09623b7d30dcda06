//! `tasks_handoff`: what is done, what remains, what can go wrong, and the radar.

use serde_json::{Value, json};

use super::tasks_radar::{Args, digest, nothing, propose_next};
use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::page::Slot;
use crate::plan::digest::{self, Digest, Piece};
use crate::plan::step::{self, StepRow};

const DONE: Slot = Slot::List("/done");
const REMAINING: Slot = Slot::List("/remaining");
const RISKS: Slot = Slot::List("/risks");

pub(super) async fn run(call: &mut Call<'_>) -> Result<Reply, Failure> {
    let args: Args = call.args()?;
    let Some(digest) = digest(call, args.task.as_deref()).await? else {
        let radar = json!({"now": null, "why": null, "verify": [], "next": [], "blockers": []});
        return nothing(call, json!({"done": [], "remaining": [], "risks": [], "radar": radar}));
    };
    let request = call.paging(&digest.target.fields.revision.to_string())?;
    let steps = step::all(call.tx, call.ws.id, digest.target.id).await?;
    let mut pieces = digest.radar();
    let piece = |slot, value, keep| Piece { slot, value, keep };
    let (done, open): (Vec<&StepRow>, Vec<&StepRow>) = steps.iter().partition(|step| step.fields.completed);
    pieces.extend(open.into_iter().map(|step| piece(REMAINING, line(step), &["step_id", "path"])));
    pieces.extend(digest.risks(&steps).into_iter().map(|risk| piece(RISKS, risk, &["kind", "id"])));
    pieces.extend(done.into_iter().map(|step| piece(DONE, line(step), &["step_id", "path"])));
    let mut slots = Digest::SLOTS.to_vec();
    slots.extend([DONE, REMAINING, RISKS]);
    propose_next(call, &digest);
    let page = digest::page(digest.head(), slots, pieces, &request)?;
    Ok(Reply::page(page, request))
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
