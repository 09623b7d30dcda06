//! Memory: branches, notes, search, the graph as a picture, and conflicts of merges.

use std::sync::Arc;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_compose::EntryFields;
use tenon_compose::kind::ContributionKind;
use tenon_server::web::PREFIX;

use super::activity::seconds_since;
use super::{Page, PageContext, PageData, Slot};
use crate::action::ActionOutcome;
use crate::built_in::NOTE_CLAIM;
use crate::form::encoded;
use crate::html::visible_value;
use crate::svg::{Graph, GraphEdge, GraphNode, MAX_NODES};
use crate::tool_answer;

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-memory",
    id: "memory",
    path: "/memory",
    title: "Memory",
    template: "memory.html",
    topics: "work modules",
    load: |context| load(context).boxed(),
    act: Some(|context| act(context).boxed()),
};

/// Notes per page.
const PER_PAGE: usize = 20;

/// The type of message that appenders name to stand beside notes.
const NOTE_TYPE: &str = "note";

async fn load(context: PageContext) -> PageData {
    let access = &context.access;
    let query = &context.query;
    let branches = tool_answer::work(access, "memory_branch_list", json!({"limit": 100})).await;
    let (branches, failure) = match branches {
        Ok(mut result) => (result["branches"].take(), None),
        Err(failure) => (json!([]), Some(failure.message)),
    };
    let branch = query.text("branch").unwrap_or("main");
    let doc = query.text("doc").unwrap_or("notes");
    let graph_doc = query.text("graph").map_or_else(|| graph_of(branch), str::to_owned);
    let mut slots = Vec::new();
    let (mut hits, mut notes, mut next) = (Value::Null, json!([]), None);
    match query.text("q") {
        Some(words) => {
            let found =
                tool_answer::work(access, "memory_search", json!({"query": words, "limit": 50})).await;
            hits = match found {
                Ok(mut result) => result["hits"].take(),
                Err(failure) => json!([{"kind": "error", "snippet": failure.message}]),
            };
        }
        None => {
            let mut arguments =
                json!({"branch": branch, "doc": doc, "limit": PER_PAGE, "max_chars": 100_000});
            if let Some(cursor) = query.text("cursor") {
                arguments["cursor"] = json!(cursor);
            }
            if let Ok(result) = tool_answer::work(access, "memory_show", arguments).await {
                let now = access.workspace().clock().unix_millis();
                let entries = result["entries"].as_array().cloned().unwrap_or_default();
                notes = entries.into_iter().map(|note| note_row(&context, note, now, &mut slots)).collect();
                next = result["pagination"]["next_cursor"].as_str().map(|cursor| {
                    format!("?branch={}&doc={}&cursor={}", encoded(branch), encoded(doc), encoded(cursor))
                });
            }
        }
    }
    let (graph, counts) = graph(&context, branch, &graph_doc).await;
    let conflicts = tool_answer::work(
        access,
        "memory_graph_conflicts",
        json!({"into": branch, "doc": graph_doc, "status": "open"}),
    )
    .await;
    let props = json!({
        "branches": branches, "failure": failure, "branch": branch, "doc": doc, "graph_doc": graph_doc,
        "q": query.text("q"), "hits": hits, "notes": notes, "next": next, "graph": graph, "counts": counts,
        "node": query.text("node"), "type": query.text("type"),
        "conflicts": conflicts.map(|mut result| result["conflicts"].take()).unwrap_or_else(|_| json!([])),
    });
    PageData { props, slots, title: None }
}

/// Tasks and plans have a graph of their own.
fn graph_of(branch: &str) -> String {
    match branch.split_once('/') {
        Some(("task" | "plan", id)) => format!("{id}-graph"),
        _ => "graph".to_owned(),
    }
}

/// A note with the slots of the renderer and of the appenders around it.
fn note_row(context: &PageContext, mut note: Value, now: u64, slots: &mut Vec<Slot>) -> Value {
    note["ago"] = json!(note["ts"].as_str().and_then(|time| seconds_since(time, now)));
    let composed = &context.composed;
    let mut props = json!({"note": note});
    visible_value(&mut props);
    let mut own = Vec::new();
    let mut slot = |kind: &'static str, key: &Arc<str>, slots: &mut Vec<Slot>| {
        own.push(slots.len());
        slots.push(Slot { kind, key: Arc::clone(key), props: props.clone() });
    };
    let appenders = |wanted: &'static str| {
        composed.composition.entries(ContributionKind::MessageAppenders).iter().filter(move |entry| {
            matches!(&entry.fields, EntryFields::MessageAppender { target_message_type, position }
                if target_message_type == NOTE_TYPE && position.as_str() == wanted)
        })
    };
    appenders("before").for_each(|entry| slot("message-appender", &entry.key, slots));
    if let Some(entry) = composed.renderer(ContributionKind::MessageRenderers, NOTE_CLAIM) {
        slot("message-renderer", &entry.key, slots);
    }
    appenders("after").for_each(|entry| slot("message-appender", &entry.key, slots));
    json!({"slots": own})
}

/// The nodes to draw, and how many there are of how many.
async fn graph(context: &PageContext, branch: &str, doc: &str) -> (Value, Value) {
    let query = &context.query;
    let mut arguments = json!({
        "branch": branch, "doc": doc, "limit": 200, "include_edges": true, "edges_limit": 400, "max_chars": 400_000,
    });
    if let Some(kind) = query.text("type") {
        arguments["types"] = json!([kind]);
    }
    if let Some(text) = query.text("node_text") {
        arguments["text"] = json!(text);
    }
    let Ok(result) = tool_answer::work(&context.access, "memory_graph_query", arguments).await else {
        return (Value::Null, Value::Null);
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |name: &str| result[name].as_array().cloned().unwrap_or_default();
    let href = |id: &str| {
        format!("{PREFIX}/memory?branch={}&graph={}&node={}", encoded(branch), encoded(doc), encoded(id))
    };
    let mut nodes: Vec<GraphNode> = list("nodes")
        .iter()
        .map(|node| GraphNode {
            id: text(&node["id"]),
            title: text(&node["title"]),
            kind: text(&node["type"]),
            href: href(&text(&node["id"])),
        })
        .collect();
    let edges: Vec<GraphEdge> = list("edges")
        .iter()
        .map(|edge| GraphEdge { from: text(&edge["from"]), to: text(&edge["to"]), rel: text(&edge["rel"]) })
        .collect();
    let read = nodes.len();
    if let Some(centre) = query.text("node") {
        let near = |id: &str| {
            id == centre
                || edges.iter().any(|edge| {
                    (edge.from == id && edge.to == centre) || (edge.to == id && edge.from == centre)
                })
        };
        nodes.retain(|node| near(&node.id));
    }
    let mut kinds: Vec<String> = nodes.iter().map(|node| node.kind.clone()).collect();
    kinds.sort();
    kinds.dedup();
    let counts = json!({
        "read": read, "shown": nodes.len().min(MAX_NODES), "more": result["pagination"]["has_more"], "kinds": kinds,
        "listed": nodes.iter().take(MAX_NODES).collect::<Vec<_>>(),
    });
    let graph = Graph { nodes, edges, centre: query.text("node").map(str::to_owned) };
    (if graph.nodes.is_empty() { Value::Null } else { json!(graph) }, counts)
}

async fn act(context: PageContext) -> ActionOutcome {
    let form = &context.query;
    let branch = form.text("branch").unwrap_or("main");
    let page = format!("/memory?branch={}", encoded(branch));
    let call = async |tool: &str, arguments: Value, done: &str| {
        ActionOutcome::of_call(tool_answer::work(&context.access, tool, arguments).await, done, &page)
    };
    match form.text("action") {
        Some("note") => {
            let mut arguments =
                json!({"branch": branch, "content": form.text("content").unwrap_or_default()});
            if let Some(title) = form.text("title") {
                arguments["title"] = json!(title);
            }
            call("memory_notes_commit", arguments, "The note was added.").await
        }
        Some("resolve") => {
            let arguments = json!({
                "conflict_id": form.text("conflict_id").unwrap_or_default(),
                "resolution": form.text("resolution").unwrap_or_default(),
            });
            call("memory_graph_conflict_resolve", arguments, "The conflict is resolved.").await
        }
        _ => ActionOutcome::failed("There is no such action.", &page),
    }
}
