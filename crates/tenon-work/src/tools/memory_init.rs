//! `memory_init` and `memory_status`: the workspace itself.

use serde_json::json;

use crate::error::WorkError;
use crate::id::EventId;
use crate::memory::{branch, entry};
use crate::page::Page;
use crate::plan::target::time;
use crate::store::SCHEMA_VERSION;
use crate::work_call::{WorkCall, WorkReply};

pub(super) async fn init(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    call.check_no_target()?;
    // The workspace was created before the tool ran; see `work.rs`.
    Ok(WorkReply::done(json!({"schema_version": SCHEMA_VERSION, "created": call.ws.created})))
}

pub(super) async fn status(call: &mut WorkCall<'_>) -> Result<WorkReply, WorkError> {
    let request = call.paging("")?;
    let ws = call.ws.id;
    let mut head = json!({
        "schema_version": SCHEMA_VERSION,
        "workspace_exists": call.ws.exists(),
        "checkout": null,
        "last_event": null,
        "last_doc_entry": null,
    });
    if call.ws.exists() {
        head["checkout"] = json!(branch::checked_out(call.tx, ws, call.ws.checkout).await?.name);
        if call.ws.last_event() > 0 {
            head["last_event"] = json!(EventId(call.ws.last_event()));
        }
        if let Some(entry) = entry::newest(call.tx, ws).await? {
            let branch = branch::by_number(call.tx, ws, entry.branch).await?.map(|branch| branch.name);
            head["last_doc_entry"] = json!({"seq": entry.seq, "ts": time(entry.ts_ms), "branch": branch, "doc": entry.doc, "kind": entry.kind});
        }
    }
    Ok(WorkReply::page(Page::head(head), request))
}
