//! Memory: branches, notes, search, the graph as a picture, and conflicts of merges.

use std::sync::Arc;

use futures::FutureExt;
use serde_json::{Value, json};
use tenon_compose::EntryFields;
use tenon_compose::kind::ContributionKind;

use super::activity::seconds_since;
use super::{Page, PageContext, PageData, Slot, memory_graph};
use crate::action::ActionOutcome;
use crate::built_in::NOTE_CLAIM;
use crate::form::encoded;
use crate::html::visible_value;
use crate::tool_answer::{self, ToolFailure};

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

/// Branches and conflicts that are listed.
const BRANCHES: usize = 16;
const CONFLICTS: usize = 10;

/// The type of message that appenders name to stand beside notes.
const NOTE_TYPE: &str = "note";

async fn load(context: PageContext) -> PageData {
    let access = &context.access;
    let query = &context.query;
    let branch = query.text("branch").unwrap_or("main");
    let doc = query.text("doc").unwrap_or("notes");
    let graph_doc = query.text("graph").map_or_else(|| graph_of(branch), str::to_owned);
    let mut listing = json!({"limit": BRANCHES});
    if let Some(cursor) = query.text("branches") {
        listing["cursor"] = json!(cursor);
    }
    let mut showing = json!({"branch": branch, "doc": doc, "limit": PER_PAGE, "max_chars": 100_000});
    if let Some(cursor) = query.text("cursor") {
        showing["cursor"] = json!(cursor);
    }
    let searched = async {
        match query.text("q") {
            Some(words) => {
                let arguments = json!({"query": words, "limit": 50});
                Some(tool_answer::read_work(access, "memory_search", arguments).await)
            }
            None => None,
        }
    };
    let (branches, shown, searched, graph, conflicts) = tokio::join!(
        tool_answer::read_work(access, "memory_branch_list", listing),
        tool_answer::read_work(access, "memory_show", showing),
        searched,
        memory_graph::load(&context, branch, &graph_doc),
        conflicts(&context, branch, &graph_doc),
    );
    // A new workspace has no branch until the first write; that is not a failure.
    let is_new = branches.as_ref().is_ok_and(|found| found["branches"].as_array().is_some_and(Vec::is_empty));
    // A store that cannot be read fails in each part alike: once is enough.
    let mut failures: Vec<String> = Vec::new();
    let mut part = |failure: ToolFailure| {
        let is_expected = is_new && failure.code == "UNKNOWN_ID";
        if !is_expected && !failures.contains(&failure.message) {
            failures.push(failure.message);
        }
    };
    let branches = branches.unwrap_or_else(|failure| {
        part(failure);
        json!({})
    });
    let shown = shown.unwrap_or_else(|failure| {
        part(failure);
        json!({})
    });
    let (graph, counts) = graph.unwrap_or_else(|failure| {
        part(failure);
        (Value::Null, Value::Null)
    });
    let conflicts = conflicts.unwrap_or_else(|failure| {
        part(failure);
        Vec::new()
    });
    let hits = match searched {
        Some(Ok(mut found)) => found["hits"].take(),
        Some(Err(failure)) => {
            part(failure);
            Value::Null
        }
        None => Value::Null,
    };
    let mut slots = Vec::new();
    let now = access.workspace().clock().unix_millis();
    // A page of the store begins with its oldest note.
    let notes = shown["entries"].as_array().into_iter().flatten().rev().cloned();
    let notes: Vec<Value> = notes.map(|note| note_row(&context, note, now, &mut slots)).collect();
    let names = branches["branches"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    let mut names: Vec<&str> = names.collect();
    if !names.contains(&branch) {
        names.insert(0, branch);
    }
    let cursor_of = |answer: &Value| answer["pagination"]["next_cursor"].as_str().map(encoded);
    let props = json!({
        "branches": names, "failures": failures, "branch": branch, "doc": doc, "graph_doc": graph_doc,
        "more_branches": cursor_of(&branches).map(|cursor| format!("?branch={}&branches={cursor}", encoded(branch))),
        "q": query.text("q"), "hits": hits, "notes": notes, "graph": graph, "counts": counts,
        "next": cursor_of(&shown)
            .map(|cursor| format!("?branch={}&doc={}&cursor={cursor}", encoded(branch), encoded(doc))),
        "node": query.text("node"), "type": query.text("type"), "words": query.text("words"), "conflicts": conflicts,
    });
    PageData { props, slots, title: None }
}

/// The open conflicts, each with both sides.
async fn conflicts(context: &PageContext, branch: &str, doc: &str) -> Result<Vec<Value>, ToolFailure> {
    let arguments = json!({"into": branch, "doc": doc, "status": "open", "limit": CONFLICTS});
    let listed = tool_answer::read_work(&context.access, "memory_graph_conflicts", arguments).await?;
    let mut conflicts = Vec::new();
    for conflict in listed["conflicts"].as_array().into_iter().flatten() {
        let arguments = json!({"conflict_id": conflict["conflict_id"]});
        let shown = tool_answer::read_work(&context.access, "memory_graph_conflict_show", arguments).await?;
        let side = |name: &str| match &shown["conflict"][name] {
            Value::Null => "deleted".to_owned(),
            side => ["title", "body", "rel", "status"]
                .iter()
                .filter_map(|field| side[field].as_str())
                .collect::<Vec<_>>()
                .join(" · "),
        };
        let mut one = conflict.clone();
        (one["theirs"], one["ours"]) = (json!(side("theirs")), json!(side("ours")));
        conflicts.push(one);
    }
    Ok(conflicts)
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
