//! `memory_think_template`, `memory_think_card` and `memory_think_context`: cards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::memory_graph_apply;
use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::id::{GraphKey, GraphNodeId, GraphRel};
use crate::graph::version::{self, Content, VersionTarget};
use crate::graph::{query, summary};
use crate::limits;
use crate::memory::TRACE;
use crate::memory::branch::View;
use crate::memory::card::{self, Card, CardInput};
use crate::memory::entry::{self, NewNote};
use crate::memory::scope::{DocKind, ScopeArgs};
use crate::name::DocName;
use crate::page::{Cut, Item, Page};
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TemplateArgs {
    r#type: String,
}

#[derive(Debug, Serialize)]
struct TemplateHead<'a> {
    r#type: &'a str,
    supported_types: [&'static str; 8],
    template: Value,
}

pub(super) async fn template(call: &mut WorkCall<'_>, args: TemplateArgs) -> Result<WorkReply, WorkError> {
    card::check_type(&args.r#type)?;
    let request = call.paging("")?;
    let template = card::template(&args.r#type);
    let head = TemplateHead { r#type: &args.r#type, supported_types: card::TYPES, template };
    Ok(WorkReply::page(Page::head(head), request))
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CardArgs {
    target: Option<String>,
    branch: Option<String>,
    trace_doc: Option<String>,
    graph_doc: Option<String>,
    card: CardInput,
    #[serde(default)]
    supports: Vec<String>,
    #[serde(default)]
    blocks: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CardAnswer {
    branch: String,
    trace_doc: String,
    graph_doc: String,
    card_id: GraphNodeId,
    inserted: bool,
    graph_applied: bool,
    last_seq: Option<i64>,
}

pub(super) async fn write(call: &mut WorkCall<'_>, args: CardArgs) -> Result<CardAnswer, WorkError> {
    limits::count("supports and blocks", args.supports.len() + args.blocks.len(), limits::PER_CALL)?;
    let card = Card::read(args.card)?;
    let id = GraphNodeId::parse(&card.id())?;
    let content = memory_graph_apply::node(
        &card.r#type,
        card.title.clone(),
        card.text.clone(),
        card.status.clone(),
        &card.tags,
        card.meta.clone(),
    )?;
    let text = card.to_text();
    limits::text("card", &text)?;
    let mut edges = Vec::new();
    for (rel, others) in [("supports", &args.supports), ("blocks", &args.blocks)] {
        for other in others {
            let to = GraphNodeId::parse(other)?;
            edges.push(GraphKey::Edge { from: id.clone(), rel: GraphRel::parse(rel)?, to });
        }
    }
    let names_no_place = args.branch.is_none() && args.graph_doc.is_none() && args.trace_doc.is_none();
    let focus = call.ws.focus.filter(|_| args.target.is_none() && names_no_place).map(|id| id.to_string());
    if let Some(focus) = &focus {
        call.warn(format!("the card belongs to the focus {focus}"));
    }
    let given = ScopeArgs {
        target: args.target.as_deref().or(focus.as_deref()),
        branch: args.branch.as_deref(),
        doc: args.graph_doc.as_deref(),
    };
    if args.target.is_some() && args.trace_doc.is_some() {
        return Err(WorkError::invalid("target and trace_doc exclude each other")
            .recovery("give `target`, or `branch`, `trace_doc` and `graph_doc`"));
    }
    let scope = call.scope_for_write(given, DocKind::Graph).await?;
    let trace_doc = match (&scope.target, &args.trace_doc) {
        (Some(target), _) => target.id.trace_doc(),
        (None, given) => DocName::parse(given.as_deref().unwrap_or(TRACE))?.as_str().to_owned(),
    };

    let (view, graph_doc) = (&scope.view, scope.doc.as_str());
    let node = GraphKey::Node(id.clone());
    let inserted = upsert(call, view, graph_doc, &node, &content).await?;
    let mut linked = false;
    for edge in &edges {
        if let GraphKey::Edge { to, .. } = edge {
            warn_if_missing(call, view, graph_doc, to).await?;
        }
        linked |= upsert(call, view, graph_doc, edge, &Content::Edge { meta: None }).await?;
    }
    if inserted {
        let note = NewNote {
            branch: view.branch(),
            doc: &trace_doc,
            title: card.title.as_deref(),
            format: Some(entry::CARD_FORMAT),
            meta: Some(json!({"card_id": id, "type": card.r#type, "tool": call.request.tool.name()})),
            content: &text,
            origin: None,
        };
        entry::append(call.tx, &mut call.ws, call.now, &note).await?;
    } else {
        call.warn("the card already exists");
    }
    let last_seq = (inserted || linked).then(|| call.ws.last_seq());
    Ok(CardAnswer {
        branch: view.name().to_owned(),
        trace_doc,
        graph_doc: graph_doc.to_owned(),
        card_id: id,
        inserted,
        graph_applied: inserted || linked,
        last_seq,
    })
}

/// Writes a node or edge unless the view shows the same content already.
async fn upsert(
    call: &mut WorkCall<'_>,
    view: &View,
    doc: &str,
    key: &GraphKey,
    content: &Content,
) -> Result<bool, WorkError> {
    let previous = version::latest(call.tx, call.ws.id, view, doc, key).await?;
    if previous.as_ref().is_some_and(|version| version.content == *content) {
        return Ok(false);
    }
    let onto = VersionTarget { branch: view.branch(), doc, previous: previous.as_ref(), origin: None };
    version::write(call.tx, &mut call.ws, call.now, &onto, key, content).await?;
    Ok(true)
}

async fn warn_if_missing(
    call: &mut WorkCall<'_>,
    view: &View,
    doc: &str,
    id: &GraphNodeId,
) -> Result<(), WorkError> {
    let found = version::latest(call.tx, call.ws.id, view, doc, &GraphKey::Node(id.clone())).await?;
    if found.is_none_or(|version| version.is_deleted()) {
        call.warn(format!("{} does not exist in the graph yet", crate::name::quoted(id.as_str())));
    }
    Ok(())
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ContextArgs {
    target: Option<String>,
    branch: Option<String>,
    graph_doc: Option<String>,
}

#[derive(Debug, Serialize)]
struct ContextHead<'a> {
    branch: &'a str,
    graph_doc: &'a str,
    stats: CardStats,
}

#[derive(Debug, Serialize)]
struct CardStats {
    cards: i64,
    by_type: BTreeMap<String, i64>,
}

pub(super) async fn context(call: &mut WorkCall<'_>, args: ContextArgs) -> Result<WorkReply, WorkError> {
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.graph_doc.as_deref(),
    };
    let scope = call.scope(given, DocKind::Graph).await?;
    let request = call.paging("")?;
    let (ws, branch) = (call.ws.id, scope.view.branch());
    let counted = summary::count_types(call.tx, ws, branch, &scope.doc).await?;
    let by_type: BTreeMap<String, i64> =
        counted.into_iter().filter(|(kind, _)| card::is_type(kind)).collect();
    let below = request.first_below()?.unwrap_or(i64::MAX);
    let mut cards =
        query::newest_of_types(call.tx, ws, &scope.view, &scope.doc, &card::TYPES, below, request.limit + 1)
            .await?;
    let more = cards.len() > request.limit;
    cards.truncate(request.limit);
    let items = cards.iter().map(|card| {
        Item::new("/cards", SortKey::ints(&[card.seq]), card.view(), Cut::Json(&["id", "type", "revision"]))
    });
    let head = ContextHead {
        branch: scope.view.name(),
        graph_doc: &scope.doc,
        stats: CardStats { cards: by_type.values().sum(), by_type },
    };
    let items = items.collect();
    Ok(WorkReply::page(Page::list(head, "/cards", items, more), request))
}
