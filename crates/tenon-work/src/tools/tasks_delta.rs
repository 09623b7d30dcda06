//! `tasks_delta`: the event stream, after an event.
//!
//! Waiting for events happens outside of the transaction; see `work.rs`.

use serde::Deserialize;

use crate::error::WorkError;
use crate::id::EventId;
use crate::page::{NoHead, Page};
use crate::plan::event;
use crate::plan::target::{self, signed};
use crate::work_call::{WorkCall, WorkReply, parse_target, unknown_target};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    since: Option<String>,
    task: Option<String>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let since = match &args.since {
        None => EventId(0),
        Some(text) => {
            let pattern = "`evt_` and sixteen digits";
            text.parse().map_err(|fault| WorkError::bad_id("event id", pattern, text, fault))?
        }
    };
    let target = match &args.task {
        None => None,
        Some(text) => {
            // A deleted target has events too: the last ones report the deletion.
            let id = parse_target(text)?;
            let row = target::load(call.tx, call.ws.id, id).await?;
            Some(row.ok_or_else(|| unknown_target(text))?.id)
        }
    };
    let request = call.paging("")?;
    let first = request.first_above()?.unwrap_or(signed(since.0) + 1);
    let most = signed(request.limit as u64 + 1);
    let mut events = event::since(call.tx, call.ws.id, target, first, most).await?;
    let more = events.len() > request.limit;
    events.truncate(request.limit);
    let workspace = call.ws.name.as_str();
    let items = events.iter().map(|event| event.to_item("/events", workspace)).collect();
    Ok(WorkReply::page(Page::list(NoHead {}, "/events", items, more), request))
}
