//! `memory_graph_query`: nodes by latest change, each with the edges that begin or end at it.
//!
//! A page is a node, its edges from the newest, the next node, and so on. Where the edge limit or the budget ends it, the
//! next page continues at the next edge of the same node.

use serde::{Deserialize, Serialize};

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::id::{GraphKey, GraphKind, GraphNodeId, GraphType};
use crate::graph::version::{self, Content, Version, VersionFilter};
use crate::graph::{bulk_read, query};
use crate::limits;
use crate::memory::scope::{DocKind, Scope, ScopeArgs};
use crate::memory::search::{self, SearchKind};
use crate::memory::search_query::SearchQuery;
use crate::name::Tag;
use crate::page::{Cut, Item, Page, Slot, Stream, object};
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

const DEFAULT_EDGES: i64 = 200;
const MAX_EDGES: i64 = 1000;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: Option<String>,
    branch: Option<String>,
    doc: Option<String>,
    ids: Option<Vec<String>>,
    types: Option<Vec<String>>,
    status: Option<String>,
    #[serde(default)]
    tags_any: Vec<String>,
    #[serde(default)]
    tags_all: Vec<String>,
    text: Option<String>,
    include_edges: Option<bool>,
    edges_limit: Option<i64>,
    #[serde(default)]
    include_deleted: bool,
}

/// Which nodes to return.
struct Filter {
    ids: Option<Vec<GraphNodeId>>,
    types: Option<Vec<GraphType>>,
    status: Option<String>,
    tags_any: Vec<Tag>,
    tags_all: Vec<Tag>,
    text: Option<SearchQuery>,
    deleted: bool,
}

impl Filter {
    fn passes(&self, version: &Version) -> bool {
        match &version.content {
            // A tombstone has no fields to filter by.
            Content::Deleted => {
                self.deleted
                    && self.types.is_none()
                    && self.status.is_none()
                    && self.tags_any.is_empty()
                    && self.tags_all.is_empty()
            }
            Content::Edge { .. } => false,
            Content::Node { kind, status, tags, .. } => {
                self.types.as_ref().is_none_or(|types| types.contains(kind))
                    && (self.status.is_none() || self.status == *status)
                    && (self.tags_any.is_empty() || self.tags_any.iter().any(|tag| tags.contains(tag)))
                    && self.tags_all.iter().all(|tag| tags.contains(tag))
            }
        }
    }
}

const NODES: &str = "/nodes";
const EDGES: &str = "/edges";

/// Second part of the sort key of a node: before all edges.
const BEFORE_EDGES: i64 = i64::MAX;

#[derive(Debug, Serialize)]
struct Head<'a> {
    branch: &'a str,
    doc: &'a str,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let filter = filter(&args)?;
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.doc.as_deref(),
    };
    let scope = call.scope(given, DocKind::Graph).await?;
    let request = call.paging("")?;
    let edges_limit = if args.include_edges == Some(false) {
        0
    } else {
        call.clamped("edges_limit", args.edges_limit.unwrap_or(DEFAULT_EDGES), 0..=MAX_EDGES)
    };

    // Where the page starts: at which node, and below which edge.
    let (at_node, at_edge, begun) = match request.from() {
        None => (i64::MAX, BEFORE_EDGES, false),
        Some((sort_key, inside)) => (sort_key.int(0)?, sort_key.int(1)?, inside),
    };
    let fresh = request.from().is_none() || (begun && at_edge == BEFORE_EDGES);
    // One more than fits, and the one where the last page ended.
    let nodes = nodes(call, &scope, &filter, at_node, request.limit + 2).await?;
    let continues = !fresh && nodes.first().is_some_and(|node| node.seq == at_node);
    let fitting = request.limit + usize::from(continues);
    let mut more = nodes.len() > fitting;
    let nodes = &nodes[..nodes.len().min(fitting)];

    let ids: Vec<&GraphNodeId> = nodes.iter().filter_map(node_id).collect();
    let below = match continues {
        false => BEFORE_EDGES,
        true if begun || at_edge == BEFORE_EDGES => at_edge,
        true => at_edge - 1,
    };
    let mut edges = if edges_limit == 0 {
        Vec::new()
    } else {
        bulk_read::edges(call.tx, call.ws.id, &scope.view, &scope.doc, &ids, below, edges_limit + 1).await?
    }
    .into_iter();

    let mut items = Vec::new();
    let mut seen = Vec::new();
    let mut left = edges_limit;
    'walk: for (at, node) in nodes.iter().enumerate() {
        if at > 0 || !continues {
            let sort_key = SortKey::ints(&[node.seq, BEFORE_EDGES]);
            items.push(Item::new(NODES, sort_key, node.view(), Cut::Json(&["id", "revision"])));
        }
        for edge in edges.next().unwrap_or_default() {
            if left == 0 {
                more = true;
                break 'walk;
            }
            left -= 1;
            // An edge between two nodes of this page is shown once.
            if !seen.contains(&edge.seq) {
                seen.push(edge.seq);
                let sort_key = SortKey::ints(&[node.seq, edge.seq]);
                items.push(Item::new(EDGES, sort_key, edge.view(), Cut::Json(&["key"])));
            }
        }
    }
    let page = Page {
        head: object(Head { branch: scope.view.name(), doc: &scope.doc }),
        slots: vec![Slot::List(NODES), Slot::List(EDGES)],
        items,
        streams: vec![Stream { pagination: "/pagination", more }],
        reversed: false,
    };
    Ok(WorkReply::page(page, request))
}

fn node_id(version: &Version) -> Option<&GraphNodeId> {
    match &version.key {
        GraphKey::Node(id) => Some(id),
        GraphKey::Edge { .. } => None,
    }
}

fn filter(args: &Args) -> Result<Filter, WorkError> {
    let ids = args.ids.as_ref().map(|ids| {
        limits::count("ids", ids.len(), limits::PER_CALL)?;
        ids.iter().map(|id| GraphNodeId::parse(id)).collect::<Result<Vec<_>, _>>()
    });
    let types = args
        .types
        .as_ref()
        .map(|types| types.iter().map(|kind| GraphType::parse(kind)).collect::<Result<Vec<_>, _>>());
    let text = args.text.as_ref().map(|text| {
        SearchQuery::parse(text)
            .ok_or_else(|| WorkError::invalid("text contains no word").recovery("give letters or digits"))
    });
    Ok(Filter {
        ids: ids.transpose()?,
        types: types.transpose()?,
        status: args.status.clone(),
        tags_any: Tag::list(&args.tags_any)?,
        tags_all: Tag::list(&args.tags_all)?,
        text: text.transpose()?,
        deleted: args.include_deleted,
    })
}

/// The matching nodes at or below a `seq`, newest first.
async fn nodes(
    call: &mut WorkCall<'_>,
    scope: &Scope,
    filter: &Filter,
    below: i64,
    most: usize,
) -> Result<Vec<Version>, WorkError> {
    let (ws, view, doc) = (call.ws.id, &scope.view, scope.doc.as_str());
    if let Some(ids) = &filter.ids {
        let keys: Vec<GraphKey> = ids.iter().cloned().map(GraphKey::Node).collect();
        let found = bulk_read::latest(call.tx, ws, view, doc, keys.iter()).await?;
        let passes = |version: &Version| version.seq <= below && filter.passes(version);
        let mut found: Vec<Version> = found.into_values().filter(passes).collect();
        if let Some(query) = &filter.text {
            found.retain(|version| version.searchable().is_some_and(|(_, text)| query.is_in(&text)));
        }
        found.sort_by_key(|version| std::cmp::Reverse(version.seq));
        found.truncate(most);
        return Ok(found);
    }
    if let Some(query) = &filter.text {
        return with_words(call, scope, filter, query, below, most).await;
    }
    // A single type has its own index.
    let of_type = filter.types.as_deref().filter(|types| types.len() == 1).map(|types| types[0].as_str());
    let wanted = VersionFilter { kind: GraphKind::Node, deleted: filter.deleted, of_type };
    Ok(query::newest(call.tx, ws, view, doc, wanted, below, most, |version| filter.passes(version)).await?)
}

/// The visible nodes with all words.
async fn with_words(
    call: &mut WorkCall<'_>,
    scope: &Scope,
    filter: &Filter,
    query: &SearchQuery,
    below: i64,
    most: usize,
) -> Result<Vec<Version>, WorkError> {
    let ws = call.ws.id;
    let mut found = Vec::new();
    let mut below = Some(below);
    loop {
        let hits = search::find(call.tx, ws, query, below, signed(most as u64)).await?;
        for hit in &hits {
            below = Some(hit.seq - 1);
            if !matches!(hit.kind, SearchKind::Card | SearchKind::Node) {
                continue;
            }
            let Some(version) = version::by_seq(call.tx, ws, hit.reference).await? else { continue };
            if version.doc != scope.doc || !filter.passes(&version) {
                continue;
            }
            let shown = version::latest(call.tx, ws, &scope.view, &scope.doc, &version.key).await?;
            if shown.is_some_and(|shown| shown.seq == version.seq) {
                found.push(version);
                if found.len() == most {
                    return Ok(found);
                }
            }
        }
        if hits.len() < most {
            return Ok(found);
        }
    }
}
