//! `memory_graph_diff`: the nodes and edges that two branches show differently.

use serde::{Deserialize, Serialize};

use crate::cursor::SortKey;
use crate::error::WorkError;
use crate::graph::compare;
use crate::graph::id::{GraphKey, GraphKind};
use crate::graph::version::{self, Content, Version, VersionView};
use crate::name::DocName;
use crate::page::{Cut, Item, Page};
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    from: String,
    to: String,
    doc: String,
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    from: &'a str,
    to: &'a str,
    doc: &'a str,
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let doc = DocName::parse(&args.doc)?;
    let from = call.view(Some(&args.from)).await?;
    let to = call.view(Some(&args.to)).await?;
    let request = call.paging("")?;
    let (mut kind, mut id, mut inclusive) = match request.from() {
        None => (GraphKind::Node, String::new(), false),
        Some((sort_key, at)) => (GraphKind::from_number(sort_key.int(0)?), sort_key.text(1)?.to_owned(), at),
    };
    let ws = call.ws.id;
    let chunk = signed(request.limit as u64 + 1);
    let mut items = Vec::new();
    // Keys with the same content in both are skipped.
    loop {
        let keys =
            compare::candidates(call.tx, ws, &from, &to, doc.as_str(), (kind, &id, inclusive), chunk).await?;
        for key in &keys {
            (kind, id, inclusive) = (key.kind(), key.to_string(), false);
            let old = version::latest(call.tx, ws, &from, doc.as_str(), key).await?;
            let new = version::latest(call.tx, ws, &to, doc.as_str(), key).await?;
            if items.len() <= request.limit && content(old.as_ref()) != content(new.as_ref()) {
                items.push(change(key, new.as_ref()));
            }
        }
        if items.len() > request.limit || signed(keys.len() as u64) < chunk {
            break;
        }
    }
    let more = items.len() > request.limit;
    items.truncate(request.limit);
    let head = Head { from: from.name(), to: to.name(), doc: doc.as_str() };
    Ok(WorkReply::page(Page::list(head, "/changes", items, more), request))
}

/// The content of a key; one that never existed counts as deleted.
pub(super) fn content(version: Option<&Version>) -> &Content {
    version.map_or(&Content::Deleted, |version| &version.content)
}

/// A node or edge that differs; `to` is null where it is deleted.
#[derive(Debug, Serialize)]
struct Change<'a> {
    kind: GraphKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    to: Option<VersionView<'a>>,
}

fn change(key: &GraphKey, new: Option<&Version>) -> Item {
    let to = new.filter(|version| !version.is_deleted()).map(Version::view);
    let (id, edge) = match key {
        GraphKey::Node(id) => (Some(id.as_str()), None),
        GraphKey::Edge { .. } => (None, Some(key.to_string())),
    };
    let value = Change { kind: key.kind(), id, key: edge, to };
    let sort_key = SortKey::of(key.kind().number(), &key.to_string());
    Item::new("/changes", sort_key, value, Cut::Json(&["kind", "id", "key"]))
}
