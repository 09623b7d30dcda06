//! `memory_export`: notes and trace of a plan or task, each with its own cursor.

use serde::{Deserialize, Serialize};

use crate::error::WorkError;
use crate::id::{TargetId, TargetKind};
use crate::memory::entry;
use crate::memory::scope::{DocKind, ScopeArgs};
use crate::page::{Item, Page, Slot, Stream, object};
use crate::plan::target::{ReasoningRef, reasoning_ref};
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: String,
}

const LISTS: [&str; 2] = ["/notes/entries", "/trace/entries"];

#[derive(Debug, Serialize)]
struct Head {
    target: Option<TargetRef>,
    reasoning_ref: Option<ReasoningRef>,
    /// The lists are filled in with the items.
    notes: Empty,
    trace: Empty,
}

#[derive(Debug, Serialize)]
struct TargetRef {
    id: TargetId,
    kind: TargetKind,
    revision: u64,
}

#[derive(Debug, Serialize)]
struct Empty {}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let given = ScopeArgs { target: Some(&args.target), ..ScopeArgs::default() };
    let notes = call.scope(given, DocKind::Notes).await?;
    let trace = call.scope(given, DocKind::Trace).await?;
    let request = call.paging("")?;
    let continued = request.start.as_ref().map(|start| start.stream);
    let mut streams = Vec::new();
    let mut found: [Vec<Item>; 2] = [Vec::new(), Vec::new()];
    for (stream, (scope, pagination)) in
        [(&notes, "/notes/pagination"), (&trace, "/trace/pagination")].into_iter().enumerate()
    {
        let mut more = false;
        if continued.is_none_or(|wanted| wanted == stream) {
            let list = LISTS[stream];
            let (mut items, rest) =
                entry::page(call.tx, call.ws.id, &scope.view, None, &scope.doc, list, &request).await?;
            items.iter_mut().for_each(|item| item.stream = stream);
            (found[stream], more) = (items, rest);
        }
        streams.push(Stream { pagination, more });
    }
    let id = notes.target.as_ref().map(|target| target.id);
    let page = Page {
        head: object(Head {
            target: notes.target.as_ref().map(|target| TargetRef {
                id: target.id,
                kind: target.id.kind,
                revision: target.fields.revision,
            }),
            reasoning_ref: id.map(reasoning_ref),
            notes: Empty {},
            trace: Empty {},
        }),
        slots: LISTS.map(Slot::List).to_vec(),
        items: alternate(found),
        streams,
        reversed: true,
    };
    Ok(WorkReply::page(page, request))
}

/// Alternates between the two, so that a small budget gets the newest of both.
fn alternate([notes, trace]: [Vec<Item>; 2]) -> Vec<Item> {
    let (mut notes, mut trace) = (notes.into_iter(), trace.into_iter());
    let mut items = Vec::new();
    loop {
        let (note, event) = (notes.next(), trace.next());
        if note.is_none() && event.is_none() {
            return items;
        }
        items.extend(note);
        items.extend(event);
    }
}
