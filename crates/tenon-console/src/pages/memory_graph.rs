//! The graph of the Memory page: a bounded part of it, or the neighbourhood of one node.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenon_server::web::PREFIX;

use super::PageContext;
use crate::form::encoded;
use crate::svg::{Graph, GraphEdge, GraphNode, MAX_NODES};
use crate::tool_answer::{self, ToolFailure};

/// Nodes that are read, newest first. The picture shows those that are connected best.
const READ: usize = 200;

/// Edges that are read.
const EDGES: usize = 1_000;

/// The most characters of an answer.
const MAX_CHARS: usize = 1_000_000;

/// The picture of a graph, and what it leaves out.
pub(super) async fn load(
    context: &PageContext,
    branch: &str,
    doc: &str,
) -> Result<(Value, Value), ToolFailure> {
    let query = &context.query;
    let centre = query.text("node");
    let mut arguments = json!({
        "branch": branch, "doc": doc, "limit": READ, "include_edges": true, "edges_limit": EDGES,
        "max_chars": MAX_CHARS,
    });
    let read = async |arguments: &Value| {
        tool_answer::read_work(&context.access, "memory_graph_query", arguments.clone()).await
    };
    let mut is_cut = false;
    if let Some(centre) = centre {
        arguments["ids"] = json!([centre]);
        let around = read(&arguments).await?;
        let ends = edges(&around).into_iter().flat_map(|edge| [edge.from, edge.to]);
        let others: BTreeSet<String> = ends.filter(|id| id != centre).collect();
        is_cut = around["pagination"]["has_more"] == true || others.len() >= MAX_NODES;
        let ids = std::iter::once(centre.to_owned()).chain(others).take(MAX_NODES);
        arguments["ids"] = json!(ids.collect::<Vec<_>>());
    } else {
        if let Some(kind) = query.text("type") {
            arguments["types"] = json!([kind]);
        }
        if let Some(text) = query.text("words") {
            arguments["text"] = json!(text);
        }
    }
    let found = read(&arguments).await?;
    let href = |id: &str| {
        format!("{PREFIX}/memory?branch={}&graph={}&node={}", encoded(branch), encoded(doc), encoded(id))
    };
    let nodes: Vec<GraphNode> = list(&found, "nodes")
        .map(|node| {
            let id = text(&node["id"]);
            GraphNode { href: href(&id), id, title: text(&node["title"]), kind: text(&node["type"]) }
        })
        .collect();
    let kinds: BTreeSet<&str> = nodes.iter().map(|node| node.kind.as_str()).collect();
    // The neighbours of a node may have many more edges; those do not belong to the picture.
    let is_cut = is_cut || (centre.is_none() && found["pagination"]["has_more"] == true);
    let counts = json!({
        "read": nodes.len(), "shown": nodes.len().min(MAX_NODES), "more": is_cut, "kinds": kinds,
        "listed": nodes.iter().take(MAX_NODES).collect::<Vec<_>>(),
    });
    let graph = Graph { edges: edges(&found), nodes, centre: centre.map(str::to_owned) };
    Ok((if graph.nodes.is_empty() { Value::Null } else { json!(graph) }, counts))
}

fn edges(found: &Value) -> Vec<GraphEdge> {
    list(found, "edges")
        .map(|edge| GraphEdge { from: text(&edge["from"]), to: text(&edge["to"]), rel: text(&edge["rel"]) })
        .collect()
}

fn list<'a>(found: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    found[name].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
