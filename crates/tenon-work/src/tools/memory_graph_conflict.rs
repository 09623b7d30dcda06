//! `memory_graph_conflicts`, `memory_graph_conflict_show` and `memory_graph_conflict_resolve`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::memory_graph_diff::content;
use crate::catalog::WorkTool;
use crate::cursor::SortKey;
use crate::error::{Priority, Proposal, WorkError, WorkErrorCode};
use crate::graph::conflict::{self, Conflict, ConflictView};
use crate::graph::version::{self, Version, VersionTarget};
use crate::memory::branch;
use crate::name::DocName;
use crate::page::{Cut, Item, Page, Slot, Stream, object};
use crate::plan::target::signed;
use crate::work_call::{WorkCall, WorkReply};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ListArgs {
    into: String,
    doc: String,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Open,
    Resolved,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
        }
    }
}

#[derive(Debug, Serialize)]
struct ListHead<'a> {
    into: &'a str,
    doc: &'a str,
}

pub(super) async fn list(call: &mut WorkCall<'_>, args: ListArgs) -> Result<WorkReply, WorkError> {
    let doc = DocName::parse(&args.doc)?;
    let into = call.view(Some(&args.into)).await?;
    let request = call.paging("")?;
    let first = request.first_above()?.unwrap_or(0);
    let (ws, most) = (call.ws.id, signed(request.limit as u64 + 1));
    let status = args.status.as_str();
    let mut found = conflict::list(call.tx, ws, into.branch(), doc.as_str(), status, first, most).await?;
    let more = found.len() > request.limit;
    found.truncate(request.limit);
    let mut items = Vec::new();
    for conflict in &found {
        let from = name(call, conflict.source).await?;
        let value = conflict.view(&from, into.name());
        items.push(Item::new(
            "/conflicts",
            SortKey::ints(&[conflict.seq]),
            value,
            Cut::Json(&["conflict_id"]),
        ));
    }
    let head = ListHead { into: into.name(), doc: doc.as_str() };
    Ok(WorkReply::page(Page::list(head, "/conflicts", items, more), request))
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ShowArgs {
    conflict_id: String,
}

const SIDES: [&str; 3] = ["/conflict/base", "/conflict/theirs", "/conflict/ours"];

#[derive(Debug, Serialize)]
struct ShowHead {
    conflict: ConflictView,
}

pub(super) async fn show(call: &mut WorkCall<'_>, args: ShowArgs) -> Result<WorkReply, WorkError> {
    let conflict = find(call, &args.conflict_id).await?;
    // A long key is cut; the id is not.
    let mut view = described(call, &conflict).await?;
    let key = view.key.take();
    let request = call.paging(&conflict.revision().to_string())?;
    let first = request.first_above()?.unwrap_or(0);
    let mut values = vec![("/conflict/key", json!(key))];
    for (side, seq) in SIDES.into_iter().zip([conflict.base, conflict.theirs, conflict.ours]) {
        values.push((side, version_value(call, seq).await?));
    }
    let items =
        values.into_iter().zip(0_i64..).filter(|(_, at)| *at >= first).map(|((pointer, value), at)| Item {
            slot: Slot::Value(pointer),
            stream: 0,
            sort_key: SortKey::ints(&[at]),
            value,
            cut: Cut::Json(&["id", "revision"]),
        });
    let mut slots = vec![Slot::Value("/conflict/key")];
    slots.extend(SIDES.map(Slot::Value));
    let page = Page {
        head: object(ShowHead { conflict: view }),
        slots,
        items: items.collect(),
        streams: vec![Stream { pagination: "/pagination", more: false }],
        reversed: false,
    };
    if conflict.is_open() {
        let params = json!({"conflict_id": conflict.id, "resolution": "use_into"});
        call.propose(
            WorkTool::MemoryGraphConflictResolve,
            params,
            "Keep the version of the base",
            Priority::Low,
        );
    }
    Ok(WorkReply::page(page, request))
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ResolveArgs {
    conflict_id: String,
    resolution: Resolution,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Resolution {
    UseFrom,
    UseInto,
}

impl Resolution {
    fn as_str(self) -> &'static str {
        match self {
            Self::UseFrom => "use_from",
            Self::UseInto => "use_into",
        }
    }
}

pub(super) async fn resolve(call: &mut WorkCall<'_>, args: ResolveArgs) -> Result<Resolved, WorkError> {
    let conflict = find(call, &args.conflict_id).await?;
    call.check_target(None)?;
    let (ws, wanted) = (call.ws.id, args.resolution.as_str());
    if let Some(expected) = call.request.guard.revision
        && expected != conflict.revision()
    {
        let current = described(call, &conflict).await?;
        return Err(call
            .revision_mismatch(&conflict.id, expected, conflict.revision())
            .current(current)
            .propose(look(&conflict)));
    }
    if let Some(known) = &conflict.resolution {
        if known == wanted {
            call.warn("the conflict was already resolved this way");
            return Ok(resolved(&conflict, false));
        }
        let current = described(call, &conflict).await?;
        return Err(WorkError::new(
            WorkErrorCode::Conflict,
            format!("{} was resolved with {known}", conflict.id),
        )
        .recovery("change the graph with memory_graph_apply")
        .current(current)
        .propose(look(&conflict)));
    }
    let applied = args.resolution == Resolution::UseFrom;
    if applied {
        use_from(call, &conflict).await?;
    }
    conflict::resolve(call.tx, ws, &conflict.id, wanted, call.now).await?;
    Ok(resolved(&conflict, applied))
}

/// Writes the version of the branch over that of the base, unless the base changed since.
async fn use_from(call: &mut WorkCall<'_>, conflict: &Conflict) -> Result<(), WorkError> {
    let ws = call.ws.id;
    let into = branch::by_number(call.tx, ws, conflict.branch).await?;
    let into = into.ok_or_else(|| {
        WorkError::unknown("branch", &conflict.branch.to_string())
            .recovery("memory_branch_list lists branches")
    })?;
    let view = branch::view(call.tx, ws, &into).await?;
    let ours = version::latest(call.tx, ws, &view, &conflict.doc, &conflict.key).await?;
    if ours.as_ref().map(|version| version.seq) != conflict.ours {
        return Err(WorkError::new(
            WorkErrorCode::Conflict,
            format!("`{}` changed the key since", into.name),
        )
        .recovery("resolve with use_into, then change the graph with memory_graph_apply")
        .propose(look(conflict)));
    }
    let theirs = match conflict.theirs {
        Some(seq) => version::by_seq(call.tx, ws, seq).await?,
        None => None,
    };
    let onto = VersionTarget {
        branch: conflict.branch,
        doc: &conflict.doc,
        previous: ours.as_ref(),
        origin: conflict.theirs,
    };
    version::write(call.tx, &mut call.ws, call.now, &onto, &conflict.key, content(theirs.as_ref())).await?;
    Ok(())
}

/// The answer of `memory_graph_conflict_resolve`.
#[derive(Debug, Serialize)]
pub(crate) struct Resolved {
    conflict_id: String,
    status: &'static str,
    applied: bool,
}

fn resolved(conflict: &Conflict, applied: bool) -> Resolved {
    Resolved { conflict_id: conflict.id.clone(), status: "resolved", applied }
}

fn look(conflict: &Conflict) -> Proposal {
    let params = json!({"conflict_id": conflict.id});
    Proposal::new(WorkTool::MemoryGraphConflictShow, params, "See all three versions", Priority::High)
}

async fn find(call: &mut WorkCall<'_>, id: &str) -> Result<Conflict, WorkError> {
    let id = conflict::parse_id(id)?;
    conflict::by_id(call.tx, call.ws.id, id)
        .await?
        .ok_or_else(|| WorkError::unknown("conflict", id).recovery("memory_graph_conflicts lists conflicts"))
}

async fn described(call: &mut WorkCall<'_>, conflict: &Conflict) -> Result<ConflictView, WorkError> {
    let (from, into) = (name(call, conflict.source).await?, name(call, conflict.branch).await?);
    Ok(conflict.view(&from, &into))
}

async fn name(call: &mut WorkCall<'_>, number: i64) -> Result<String, WorkError> {
    let found = branch::by_number(call.tx, call.ws.id, number).await?;
    Ok(found.map(|branch| branch.name).unwrap_or_default())
}

async fn version_value(call: &mut WorkCall<'_>, seq: Option<i64>) -> Result<Value, WorkError> {
    let Some(seq) = seq else { return Ok(Value::Null) };
    let found = version::by_seq(call.tx, call.ws.id, seq).await?;
    Ok(json!(found.as_ref().map(Version::view)))
}
