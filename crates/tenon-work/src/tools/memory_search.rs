//! `memory_search`: full text over notes, cards and tasks, newest first.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::NonEmpty;

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::version;
use crate::id::{StepId, TargetId};
use crate::memory::search::{self, Hit, SearchKind};
use crate::memory::search_query::SearchQuery;
use crate::memory::{branch, entry};
use crate::page::{Cut, Item, Page};
use crate::plan::target::signed;
use crate::plan::{step, target};
use crate::work_call::{WorkCall, WorkReply};

/// Longer queries only slow the search down.
const MAX_QUERY_CHARS: usize = 1000;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    query: String,
    r#in: Option<NonEmpty<SearchArea>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SearchArea {
    Notes,
    Cards,
    Tasks,
    Nodes,
}

impl SearchArea {
    fn of(kind: SearchKind) -> Self {
        match kind {
            SearchKind::Note => Self::Notes,
            SearchKind::Card => Self::Cards,
            SearchKind::Node => Self::Nodes,
            SearchKind::Plan | SearchKind::Task | SearchKind::Step => Self::Tasks,
        }
    }
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    if args.query.chars().count() > MAX_QUERY_CHARS {
        return Err(WorkError::invalid(format!("query has more than {MAX_QUERY_CHARS} characters"))
            .recovery("use fewer words"));
    }
    let query = SearchQuery::parse(&args.query)
        .ok_or_else(|| WorkError::invalid("query contains no word").recovery("give letters or digits"))?;
    let among = args
        .r#in
        .map_or_else(|| vec![SearchArea::Notes, SearchArea::Cards, SearchArea::Tasks], |areas| areas.0);
    let request = call.paging("")?;
    let mut below = request.first_below()?;
    let mut items = Vec::new();
    let chunk = request.limit + 1;
    // Hits of other kinds and superseded versions are skipped.
    while items.len() < chunk {
        let hits = search::find(call.tx, call.ws.id, &query, below, signed(chunk as u64)).await?;
        for hit in &hits {
            below = Some(hit.seq - 1);
            if items.len() < chunk
                && among.contains(&SearchArea::of(hit.kind))
                && let Some(value) = show(call, &query, hit).await?
            {
                items.push(Item::new(
                    "/hits",
                    SortKey::ints(&[hit.seq]),
                    value,
                    Cut::Json(&["kind", "id", "seq"]),
                ));
            }
        }
        if hits.len() < chunk {
            break;
        }
    }
    let more = items.len() > request.limit;
    items.truncate(request.limit);
    Ok(WorkReply::page(Page::list(json!({"query": args.query}), "/hits", items, more), request))
}

/// A hit as clients see it; none if it is deleted or superseded.
async fn show(call: &mut WorkCall<'_>, query: &SearchQuery, hit: &Hit) -> Result<Option<Value>, WorkError> {
    let ws = call.ws.id;
    let kind = hit.kind.as_str();
    Ok(match hit.kind {
        SearchKind::Note => {
            let Some(note) = entry::by_seq(call.tx, ws, hit.reference).await? else { return Ok(None) };
            let snippet = query.snippet(&note.searchable().unwrap_or_default());
            let branch = name(call, note.branch).await?;
            Some(
                json!({"kind": kind, "seq": note.seq, "branch": branch, "doc": note.doc, "snippet": snippet}),
            )
        }
        SearchKind::Card | SearchKind::Node => {
            let found = version::by_seq(call.tx, ws, hit.reference).await?;
            let Some(version) = found.filter(|version| version.next.is_none()) else { return Ok(None) };
            let snippet = query.snippet(&version.searchable().map(|(_, text)| text).unwrap_or_default());
            let branch = name(call, version.branch).await?;
            let id = version.key.to_string();
            Some(json!({"kind": kind, "id": id, "branch": branch, "doc": version.doc, "snippet": snippet}))
        }
        SearchKind::Plan | SearchKind::Task => {
            let id = TargetId::from_key(hit.reference);
            let Some(row) = target::load(call.tx, ws, id).await? else { return Ok(None) };
            let snippet = query.snippet(&row.fields.searchable());
            Some(json!({"kind": kind, "id": id, "branch": id.branch(), "doc": null, "snippet": snippet}))
        }
        SearchKind::Step => {
            let id = StepId(hit.reference.unsigned_abs());
            let Some(row) = step::by_id(call.tx, ws, id).await? else { return Ok(None) };
            // Steps of a deleted task are hidden.
            if target::load(call.tx, ws, row.target).await?.is_none_or(|target| target.fields.deleted) {
                return Ok(None);
            }
            let snippet = query.snippet(&row.fields.searchable());
            let (task, path) = (row.target, &row.fields.path);
            Some(json!({"kind": kind, "id": id, "task": task, "path": path, "branch": task.branch(),
                "doc": null, "snippet": snippet}))
        }
    })
}

async fn name(call: &mut WorkCall<'_>, number: i64) -> Result<Option<String>, WorkError> {
    Ok(branch::by_number(call.tx, call.ws.id, number).await?.map(|branch| branch.name))
}
