//! `memory_diff`: the entries that one branch shows and another does not.

use serde::{Deserialize, Serialize};

use crate::error::WorkError;
use crate::memory::{NOTES, entry};
use crate::name::DocName;
use crate::page::Page;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    from: String,
    to: String,
    doc: Option<String>,
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    from: &'a str,
    to: &'a str,
    doc: &'a str,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let doc = DocName::parse(args.doc.as_deref().unwrap_or(NOTES))?;
    let from = call.view(Some(&args.from)).await?;
    let to = call.view(Some(&args.to)).await?;
    let request = call.paging("")?;
    let (items, more) =
        entry::page(call.tx, call.ws.id, &to, Some(&from), doc.as_str(), "/entries", &request).await?;
    let head = Head { from: from.name(), to: to.name(), doc: doc.as_str() };
    Ok(WorkReply::page(Page { reversed: true, ..Page::list(head, "/entries", items, more) }, request))
}
