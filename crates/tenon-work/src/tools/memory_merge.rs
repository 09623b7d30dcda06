//! `memory_merge`: notes of a branch copied into another, each at most once, oldest first.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cursor::{Cursor, SortKey};
use crate::error::WorkError;
use crate::memory::NOTES;
use crate::memory::entry::{self, NewNote};
use crate::name::DocName;
use crate::page::Pagination;
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    from: String,
    into: String,
    doc: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    from: String,
    into: String,
    doc: String,
    dry_run: bool,
    merged: u64,
    skipped: u64,
    pagination: Pagination,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    let doc = DocName::parse(args.doc.as_deref().unwrap_or(NOTES))?;
    let from = call.view(Some(&args.from)).await?;
    let into = call.view(Some(&args.into)).await?;
    call.check_no_target()?;
    let request = call.paging("")?;
    let first = request.first_above()?.unwrap_or(1);
    let ws = call.ws.id;
    let mut notes =
        entry::notes_to_merge(call.tx, ws, &from, &into, doc.as_str(), first, request.limit + 1).await?;
    let more = notes.len() > request.limit;
    notes.truncate(request.limit);
    let (mut merged, mut skipped) = (0, 0);
    for note in &notes {
        if entry::is_in_view(call.tx, ws, &into, note).await? {
            skipped += 1;
            continue;
        }
        merged += 1;
        if args.dry_run {
            continue;
        }
        let mut meta = note.meta.clone().unwrap_or_else(|| json!({}));
        meta["merged_from"] = json!({"branch": from.name(), "seq": note.seq});
        let copy = NewNote {
            branch: into.branch(),
            doc: doc.as_str(),
            title: note.title.as_deref(),
            format: note.format.as_deref(),
            meta: Some(meta),
            content: &note.content,
            origin: Some(note.origin.unwrap_or(note.seq)),
        };
        entry::append(call.tx, &mut call.ws, call.now, &copy).await?;
    }
    let next = notes.last().filter(|_| more).map(|last| {
        Cursor { stream: 0, sort_key: Some(SortKey::ints(&[last.seq])), inside: None }.encode(&request.key)
    });
    let pagination = Pagination {
        cursor: request.given,
        next_cursor: next,
        has_more: more,
        limit: request.limit,
        count: notes.len(),
    };
    Ok(Answer {
        from: from.name().to_owned(),
        into: into.name().to_owned(),
        doc: doc.as_str().to_owned(),
        dry_run: args.dry_run,
        merged,
        skipped,
        pagination,
    })
}
