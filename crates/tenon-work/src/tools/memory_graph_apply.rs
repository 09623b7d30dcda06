//! `memory_graph_apply`: nodes and edges upserted and deleted, all or none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::arguments::NonEmpty;

use crate::catalog::WorkTool;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::graph::bulk_read;
use crate::graph::id::{GraphKey, GraphNodeId, GraphRel, GraphType};
use crate::graph::version::{self, Content, Version, VersionTarget};
use crate::limits;
use crate::memory::scope::{DocKind, Scope, ScopeArgs};
use crate::name::{Tag, quoted};
use crate::work_call::WorkCall;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    target: Option<String>,
    branch: Option<String>,
    doc: Option<String>,
    ops: NonEmpty<OpInput>,
}

/// An op as given; `op` decides which fields it needs.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OpInput {
    op: OpKind,
    id: Option<String>,
    r#type: Option<String>,
    title: Option<String>,
    text: Option<String>,
    status: Option<String>,
    tags: Option<Vec<String>>,
    meta: Option<Map<String, Value>>,
    from: Option<String>,
    rel: Option<String>,
    to: Option<String>,
    expected_revision: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpKind {
    NodeUpsert,
    NodeDelete,
    EdgeUpsert,
    EdgeDelete,
}

/// A valid op.
struct Op {
    key: GraphKey,
    content: Content,
    expected_revision: Option<i64>,
}

#[derive(Debug, Default, Serialize)]
struct Applied {
    nodes_upserted: u64,
    nodes_deleted: u64,
    edges_upserted: u64,
    edges_deleted: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    branch: String,
    doc: String,
    applied: Applied,
    last_seq: Option<i64>,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<Answer, WorkError> {
    limits::count("ops", args.ops.0.len(), limits::PER_CALL)?;
    let mut ops = Vec::with_capacity(args.ops.0.len());
    for (index, op) in args.ops.0.into_iter().enumerate() {
        ops.push(read(op).map_err(|failure| failure.with("index", index))?);
    }
    let given = ScopeArgs {
        target: args.target.as_deref(),
        branch: args.branch.as_deref(),
        doc: args.doc.as_deref(),
    };
    let scope = call.scope_for_write(given, DocKind::Graph).await?;
    let keys = ops.iter().map(|op| &op.key);
    let mut latest = bulk_read::latest(call.tx, call.ws.id, &scope.view, &scope.doc, keys).await?;
    let mut applied = Applied::default();
    let mut last_seq = None;
    let mut unchanged = 0;
    for (index, op) in ops.iter().enumerate() {
        let previous = latest.get(&op.key);
        let written =
            apply(call, &scope, op, previous).await.map_err(|failure| failure.with("index", index))?;
        match written {
            None => unchanged += 1,
            Some(version) => {
                last_seq = Some(version.seq);
                latest.insert(op.key.clone(), version);
                *match (&op.key, &op.content) {
                    (GraphKey::Node(_), Content::Deleted) => &mut applied.nodes_deleted,
                    (GraphKey::Node(_), _) => &mut applied.nodes_upserted,
                    (GraphKey::Edge { .. }, Content::Deleted) => &mut applied.edges_deleted,
                    (GraphKey::Edge { .. }, _) => &mut applied.edges_upserted,
                } += 1;
            }
        }
    }
    if unchanged > 0 {
        call.warn(format!("{unchanged} op(s) changed nothing"));
    }
    Ok(Answer { branch: scope.view.name().to_owned(), doc: scope.doc, applied, last_seq })
}

fn read(op: OpInput) -> Result<Op, WorkError> {
    let needed = |name: &str, value: Option<String>| {
        value.ok_or_else(|| WorkError::invalid(format!("the op needs `{name}`")).recovery("give it"))
    };
    let is_node = matches!(op.op, OpKind::NodeUpsert | OpKind::NodeDelete);
    let foreign = if is_node {
        op.from.is_some() || op.rel.is_some() || op.to.is_some()
    } else {
        op.id.is_some()
            || op.r#type.is_some()
            || op.title.is_some()
            || op.text.is_some()
            || op.status.is_some()
            || op.tags.is_some()
    };
    if foreign {
        return Err(WorkError::invalid("the op has fields of the other kind of op")
            .recovery("nodes have id, type, title, text, status, tags, meta; edges from, rel, to, meta"));
    }
    let key = if is_node {
        GraphKey::Node(GraphNodeId::parse(&needed("id", op.id)?)?)
    } else {
        GraphKey::Edge {
            from: GraphNodeId::parse(&needed("from", op.from)?)?,
            rel: GraphRel::parse(&needed("rel", op.rel)?)?,
            to: GraphNodeId::parse(&needed("to", op.to)?)?,
        }
    };
    let meta = op.meta.map(Value::Object);
    meta.iter().try_for_each(|meta| limits::data("meta", meta))?;
    let content = match op.op {
        OpKind::NodeDelete | OpKind::EdgeDelete => Content::Deleted,
        OpKind::EdgeUpsert => Content::Edge { meta },
        OpKind::NodeUpsert => node(
            &needed("type", op.r#type)?,
            op.title,
            op.text,
            op.status,
            &op.tags.unwrap_or_default(),
            meta,
        )?,
    };
    Ok(Op { key, content, expected_revision: op.expected_revision })
}

/// The content of a node, within its limits.
pub(super) fn node(
    kind: &str,
    title: Option<String>,
    text: Option<String>,
    status: Option<String>,
    tags: &[String],
    meta: Option<Value>,
) -> Result<Content, WorkError> {
    title.iter().try_for_each(|title| limits::title(title))?;
    text.iter().try_for_each(|text| limits::text("text", text))?;
    status.iter().try_for_each(|status| limits::short("status", status))?;
    limits::count("tags", tags.len(), limits::PER_CALL)?;
    meta.iter().try_for_each(|meta| limits::data("meta", meta))?;
    Ok(Content::Node { kind: GraphType::parse(kind)?, title, text, status, tags: Tag::list(tags)?, meta })
}

fn mismatch(call: &WorkCall<'_>, op: &Op, expected: i64, previous: Option<&Version>) -> WorkError {
    let (kind, key) = (op.key.kind(), op.key.to_string());
    match previous {
        Some(version) => call.revision_mismatch(&key, expected, version.revision).current(json!({
            "kind": kind,
            "key": key,
            "revision": version.revision,
            "deleted": version.is_deleted(),
        })),
        None => {
            let message = format!(
                "{} {} does not exist, so it has no revision {expected}",
                kind.as_str(),
                quoted(&key)
            );
            WorkError::new(WorkErrorCode::RevisionMismatch, message)
                .recovery("read the graph again; to create it, omit expected_revision")
                .with("expected", expected)
                .with("actual", Value::Null)
        }
    }
}

/// Proposes to read the nodes of a key, with the edges between them.
fn look(scope: &Scope, key: &GraphKey) -> Proposal {
    let ids = match key {
        GraphKey::Node(id) => vec![id],
        GraphKey::Edge { from, to, .. } => vec![from, to],
    };
    let params = match &scope.target {
        Some(target) => json!({"target": target.id, "ids": ids, "include_deleted": true}),
        None => {
            json!({"branch": scope.view.name(), "doc": scope.doc, "ids": ids, "include_deleted": true})
        }
    };
    let reason = "See what changed before writing again";
    Proposal::new(WorkTool::MemoryGraphQuery, params, reason, Priority::High)
}

/// Applies one op; writes nothing if the content is unchanged.
async fn apply(
    call: &mut WorkCall<'_>,
    scope: &Scope,
    op: &Op,
    previous: Option<&Version>,
) -> Result<Option<Version>, WorkError> {
    let there = previous.filter(|version| !version.is_deleted());
    if op.content == Content::Deleted && there.is_none() {
        return Err(WorkError::unknown(op.key.kind().as_str(), &op.key.to_string())
            .recovery("memory_graph_query lists nodes and edges"));
    }
    if let Some(expected) = op.expected_revision {
        // -1 means that the key must not exist yet.
        if expected != previous.map_or(-1, |version| version.revision) {
            return Err(mismatch(call, op, expected, previous).propose(look(scope, &op.key)));
        }
    }
    if there.is_some_and(|version| version.content == op.content) {
        return Ok(None);
    }
    let onto = VersionTarget { branch: scope.view.branch(), doc: &scope.doc, previous, origin: None };
    Ok(Some(version::write(call.tx, &mut call.ws, call.now, &onto, &op.key, &op.content).await?))
}
