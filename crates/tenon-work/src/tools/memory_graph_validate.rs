//! `memory_graph_validate`: the size of a graph, and its dangling edges.

use serde::{Deserialize, Serialize};

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::id::GraphKind;
use crate::graph::summary;
use crate::memory::scope::{DocKind, ScopeArgs};
use crate::page::{Cut, Item, Page};
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: Option<String>,
    branch: Option<String>,
    doc: Option<String>,
    max_errors: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    branch: &'a str,
    doc: &'a str,
    ok: bool,
    stats: Stats,
}

#[derive(Debug, Serialize)]
struct Stats {
    nodes: i64,
    edges: i64,
}

#[derive(Debug, Serialize)]
struct GraphError<'a> {
    code: &'static str,
    kind: GraphKind,
    key: &'a str,
    message: String,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.doc.as_deref(),
    };
    let scope = call.scope(given, DocKind::Graph).await?;
    let mut request = call.paging("")?;
    if let Some(most) = args.max_errors {
        request.limit = usize::try_from(call.clamped("max_errors", most, 1..=200)).unwrap_or(1);
    }
    let (ws, branch) = (call.ws.id, scope.view.branch());
    // The sort key is an edge key and the end that is missing: an edge may have two errors.
    let (key, first_end) = match request.from() {
        None => (String::new(), 0),
        Some((sort_key, at)) => (sort_key.text(1)?.to_owned(), sort_key.int(0)? + i64::from(!at)),
    };
    let most = signed(request.limit as u64 + 2);
    let summary = summary::summarise(call.tx, ws, branch, &scope.doc, &key, most).await?;
    let mut items = Vec::new();
    for edge in &summary.dangling {
        for (end, name, missing) in [(0, "from", edge.from_is_missing), (1, "to", edge.to_is_missing)] {
            if !missing || (edge.key == key && end < first_end) {
                continue;
            }
            let value = GraphError {
                code: if end == 0 { "EDGE_FROM_MISSING" } else { "EDGE_TO_MISSING" },
                kind: GraphKind::Edge,
                key: &edge.key,
                message: format!("the node at `{name}` is missing"),
            };
            items.push(Item::new(
                "/errors",
                SortKey::of(end, &edge.key),
                value,
                Cut::Json(&["code", "kind", "key"]),
            ));
        }
    }
    let more = items.len() > request.limit;
    items.truncate(request.limit);
    let head = Head {
        branch: scope.view.name(),
        doc: &scope.doc,
        ok: summary.dangling.is_empty() && key.is_empty(),
        stats: Stats { nodes: summary.nodes, edges: summary.edges },
    };
    Ok(WorkReply::page(Page::list(head, "/errors", items, more), request))
}
