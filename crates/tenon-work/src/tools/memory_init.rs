//! `memory_init` and `memory_status`: the workspace itself.

use serde::Serialize;

use crate::error::WorkError;
use crate::id::EventId;
use crate::memory::{branch, entry};
use crate::page::Page;
use crate::plan::target::time;
use crate::store::SCHEMA_VERSION;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Serialize)]
pub(crate) struct Initialised {
    schema_version: i64,
    created: bool,
}

pub(super) async fn init(call: &mut WorkCall<'_>) -> Result<Initialised, WorkError> {
    call.check_no_target()?;
    // The workspace was created before the tool ran; see `work.rs`.
    Ok(Initialised { schema_version: SCHEMA_VERSION, created: call.ws.created })
}

#[derive(Debug, Serialize)]
struct Status {
    schema_version: i64,
    workspace_exists: bool,
    checkout: Option<String>,
    last_event: Option<EventId>,
    last_doc_entry: Option<LastEntry>,
}

#[derive(Debug, Serialize)]
struct LastEntry {
    seq: i64,
    ts: String,
    branch: Option<String>,
    doc: String,
    kind: String,
}

pub(super) async fn status(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let request = call.paging("")?;
    let ws = call.ws.id;
    let mut status = Status {
        schema_version: SCHEMA_VERSION,
        workspace_exists: call.ws.exists(),
        checkout: None,
        last_event: None,
        last_doc_entry: None,
    };
    if call.ws.exists() {
        status.checkout = Some(branch::checked_out(call.tx, ws, call.ws.checkout).await?.name);
        status.last_event = (call.ws.last_event() > 0).then(|| EventId(call.ws.last_event()));
        if let Some(entry) = entry::newest(call.tx, ws).await? {
            let branch = branch::by_number(call.tx, ws, entry.branch).await?.map(|branch| branch.name);
            let (seq, ts, doc, kind) = (entry.seq, time(entry.ts_ms), entry.doc, entry.kind);
            status.last_doc_entry = Some(LastEntry { seq, ts, branch, doc, kind });
        }
    }
    Ok(WorkReply::page(Page::head(status), request))
}
