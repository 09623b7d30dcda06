//! `memory_search`: full text over notes, cards and tasks, newest first.

use serde::{Deserialize, Serialize};

use crate::arguments::NonEmpty;

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::version;
use crate::id::{StepId, TargetId};
use crate::memory::search::{self, Hit, SearchKind};
use crate::memory::search_query::SearchQuery;
use crate::memory::{branch, entry};
use crate::page::{Cut, Item, Page};
use crate::path::StepPath;
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

#[derive(Debug, Serialize)]
struct Head<'a> {
    query: &'a str,
}

/// A hit as clients see it. Notes have a `seq`, all others an `id`; only steps have `task` and `path`.
#[derive(Debug, Serialize)]
struct HitView {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TargetId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<StepPath>,
    branch: Option<String>,
    doc: Option<String>,
    snippet: String,
}

impl HitView {
    fn new(kind: &'static str, branch: Option<String>, snippet: String) -> Self {
        Self { kind, seq: None, id: None, task: None, path: None, branch, doc: None, snippet }
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
    Ok(WorkReply::page(Page::list(Head { query: &args.query }, "/hits", items, more), request))
}

/// A hit as clients see it; none if it is deleted or superseded.
async fn show(call: &mut WorkCall<'_>, query: &SearchQuery, hit: &Hit) -> Result<Option<HitView>, WorkError> {
    let ws = call.ws.id;
    let kind = hit.kind.as_str();
    Ok(match hit.kind {
        SearchKind::Note => {
            let Some(note) = entry::by_seq(call.tx, ws, hit.reference).await? else { return Ok(None) };
            let snippet = query.snippet(&note.searchable().unwrap_or_default());
            let branch = name(call, note.branch).await?;
            Some(HitView { seq: Some(note.seq), doc: Some(note.doc), ..HitView::new(kind, branch, snippet) })
        }
        SearchKind::Card | SearchKind::Node => {
            let found = version::by_seq(call.tx, ws, hit.reference).await?;
            let Some(version) = found.filter(|version| version.next.is_none()) else { return Ok(None) };
            let snippet = query.snippet(&version.searchable().map(|(_, text)| text).unwrap_or_default());
            let branch = name(call, version.branch).await?;
            let id = version.key.to_string();
            Some(HitView { id: Some(id), doc: Some(version.doc), ..HitView::new(kind, branch, snippet) })
        }
        SearchKind::Plan | SearchKind::Task => {
            let id = TargetId::from_key(hit.reference);
            let Some(row) = target::load(call.tx, ws, id).await? else { return Ok(None) };
            let snippet = query.snippet(&row.fields.searchable());
            Some(HitView { id: Some(id.to_string()), ..HitView::new(kind, Some(id.branch()), snippet) })
        }
        SearchKind::Step => {
            let id = StepId(hit.reference.unsigned_abs());
            let Some(row) = step::by_id(call.tx, ws, id).await? else { return Ok(None) };
            // Steps of a deleted task are hidden.
            if target::load(call.tx, ws, row.target).await?.is_none_or(|target| target.fields.deleted) {
                return Ok(None);
            }
            let snippet = query.snippet(&row.fields.searchable());
            let branch = Some(row.target.branch());
            Some(HitView {
                id: Some(id.to_string()),
                task: Some(row.target),
                path: Some(row.fields.path),
                ..HitView::new(kind, branch, snippet)
            })
        }
    })
}

async fn name(call: &mut WorkCall<'_>, number: i64) -> Result<Option<String>, WorkError> {
    Ok(branch::by_number(call.tx, call.ws.id, number).await?.map(|branch| branch.name))
}
