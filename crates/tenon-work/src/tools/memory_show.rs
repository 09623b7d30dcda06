//! `memory_show`: entries of a document, newest page first; or one entry, from a byte offset.

use serde::{Deserialize, Serialize};

use crate::cursor::{Cursor, ItemOffset, SortKey, digest};
use crate::error::WorkError;
use crate::memory::scope::{DocKind, ScopeArgs};
use crate::memory::{NOTES, TRACE, branch, entry};
use crate::page::Page;
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: Option<String>,
    branch: Option<String>,
    doc: Option<String>,
    doc_kind: Option<Kind>,
    seq: Option<i64>,
    offset: Option<i64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Notes,
    Trace,
}

impl Kind {
    /// Whether a document has this kind, by its name.
    fn names(self, doc: &str) -> bool {
        match self {
            Self::Notes => doc == NOTES,
            Self::Trace => doc == TRACE || doc.ends_with("-trace"),
        }
    }
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    branch: &'a str,
    doc: &'a str,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    if let Some(seq) = args.seq {
        if args.target.is_some() || args.branch.is_some() || args.doc.is_some() || args.doc_kind.is_some() {
            return Err(WorkError::invalid("seq cannot be combined with a scope")
                .recovery("omit `target`, `branch`, `doc` and `doc_kind`"));
        }
        return one(call, seq, args.offset).await;
    }
    if args.offset.is_some() {
        return Err(WorkError::invalid("offset needs seq").recovery("give `seq`"));
    }
    if let (Some(kind), Some(doc)) = (args.doc_kind, &args.doc)
        && !kind.names(doc)
    {
        return Err(WorkError::invalid("doc and doc_kind name two different documents")
            .recovery("give one of them: `doc` on a branch, `doc_kind` of a plan or task"));
    }
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.doc.as_deref(),
    };
    let kind = match args.doc_kind {
        Some(Kind::Trace) => DocKind::Trace,
        Some(Kind::Notes) | None => DocKind::Notes,
    };
    let scope = call.scope(given, kind).await?;
    let request = call.paging("")?;
    let (items, more) =
        entry::page(call.tx, call.ws.id, &scope.view, None, &scope.doc, "/entries", &request).await?;
    let head = Head { branch: scope.view.name(), doc: &scope.doc };
    let page = Page { reversed: true, ..Page::list(head, "/entries", items, more) };
    Ok(WorkReply::page(page, request))
}

async fn one(call: &mut WorkCall<'_>, seq: i64, offset: Option<i64>) -> Result<WorkReply, WorkError> {
    let entry = entry::by_seq(call.tx, call.ws.id, seq).await?;
    let entry = entry.ok_or_else(|| {
        WorkError::unknown("entry", &seq.to_string()).recovery("memory_show without seq lists entries")
    })?;
    let branch = branch::by_number(call.tx, call.ws.id, entry.branch).await?;
    let branch = branch.map(|branch| branch.name).unwrap_or_default();
    let mut request = call.paging("")?;
    let last = signed(entry.content.len() as u64);
    let offset = offset.map_or(0, |offset| call.clamped("offset", offset, 0..=last));
    if offset > 0 && request.start.is_none() {
        // An offset is a cursor inside the entry.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let offset = entry.content.floor_char_boundary(offset);
        let inside = Some(ItemOffset { offset, digest: digest(&entry.content) });
        request.start = Some(Cursor { stream: 0, sort_key: Some(SortKey::ints(&[seq])), inside });
    }
    // A cursor after the entry means that it has been delivered.
    let delivered = request.from().is_some_and(|(_, at)| !at);
    let items = if delivered { Vec::new() } else { vec![entry.to_item("/entries", &branch)] };
    let head = Head { branch: &branch, doc: &entry.doc };
    Ok(WorkReply::page(Page::list(head, "/entries", items, false), request))
}
