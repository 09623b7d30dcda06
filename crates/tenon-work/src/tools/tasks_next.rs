//! `tasks_next`: the ready queue, and claims on its tasks.
//!
//! A task is ready if it is not done, not blocked, not claimed by another agent, and its dependencies are done. A claim is
//! a lease: it is made under the lock of the workspace, so two agents never get the same task, and it expires. It changes
//! the revision and logs an event, but cannot be undone.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_contract::clock::LAST_TIME;

use crate::catalog::WorkTool;
use crate::cursor::SortKey;
use crate::error::{WorkError, WorkErrorCode};
use crate::id::TargetId;
use crate::page::{Cut, Item, Page, Slot, Stream, object};
use crate::plan::mutation::{Mutation, Undoable};
use crate::plan::target::{Claim, ClaimView, Status, Target, TargetRow, TaskPriority, signed};
use crate::store::{StoreError, args};
use crate::work_call::{WorkCall, WorkReply, parse_target};

const DEFAULT_TTL_S: i64 = 900;
const MAX_TTL_S: i64 = 86_400;
const MAX_AGENT: usize = 128;

/// First part of the sort key of the task itself: before every rank in the queue.
const AT_TASK: i64 = -1;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Args {
    #[serde(default)]
    claim: bool,
    agent: Option<String>,
    ttl_s: Option<i64>,
    release: Option<String>,
}

impl Args {
    /// Whether the call claims or releases a task.
    pub(super) fn writes(&self) -> bool {
        self.claim || self.release.is_some()
    }
}

const READY: &str = crate::plan::target::select!(
    "AS t WHERE ws = $1 AND deleted = 0 AND status <> 'done' AND target >= 1099511627776 AND blockers = '[]'
    AND (claim_agent IS NULL OR claim_agent = $2 OR claim_expires_ms <= $3)
    AND (priority > $4 OR (priority = $4 AND target >= $5))
    AND NOT EXISTS (
        SELECT 1 FROM dependencies d JOIN targets n ON n.ws = d.ws AND n.target = d.needs
        WHERE d.ws = t.ws AND d.task = t.target AND n.status <> 'done' AND n.deleted = 0)
    AND (NOT EXISTS (
            SELECT 1 FROM steps s WHERE s.ws = t.ws AND s.target = t.target AND s.deleted = 0 AND s.completed = 0)
        OR EXISTS (
            SELECT 1 FROM steps s WHERE s.ws = t.ws AND s.target = t.target AND s.deleted = 0 AND s.completed = 0
            AND s.blockers = '[]'))
    ORDER BY priority, target LIMIT $6"
);

pub(super) async fn run(call: &mut WorkCall<'_>, args: Args) -> Result<WorkReply, WorkError> {
    let agent = agent(&args)?;
    let request = call.paging("")?;
    // Claims and releases happen on the first page only.
    let first_page = request.from().is_none();
    if let Some(text) = args.release.as_ref().filter(|_| first_page) {
        release(call, text, agent).await?;
    }
    let mut claimed = None;
    if args.claim && first_page {
        let ttl = call.clamped("ttl_s", args.ttl_s.unwrap_or(DEFAULT_TTL_S), 1..=MAX_TTL_S);
        claimed = claim(call, agent, ttl).await?;
    }

    let (rank, key) = match request.from() {
        None => (0, 0),
        Some((sort_key, at)) => (sort_key.int(0)?, sort_key.int(1)?.saturating_add(i64::from(!at))),
    };
    let mut rows = ready(call, agent, rank, key, request.limit + 1).await?;
    let more = rows.len() > request.limit;
    rows.truncate(request.limit);
    let task = match request.from() {
        None if args.claim => claimed,
        None => rows.first().cloned(),
        // The budget cut the task itself.
        Some((sort_key, true)) if sort_key.int(0)? == AT_TASK => {
            Some(call.load(TargetId::from_key(sort_key.int(1)?)).await?)
        }
        Some(_) => None,
    };
    let claim =
        task.as_ref().and_then(|row| row.fields.claim.as_ref()).filter(|claim| claim.is_live(call.now));
    let head = object(Head { claim: claim.map(Claim::view) });
    let mut items = Vec::new();
    if let Some(row) = &task {
        items.push(Item {
            slot: Slot::Value("/task"),
            stream: 0,
            sort_key: SortKey::ints(&[AT_TASK, row.id.key()]),
            value: json!(row.view()),
            cut: Cut::Json(&["id", "revision"]),
        });
    }
    items.extend(rows.iter().map(|row| {
        let sort_key = SortKey::ints(&[row.fields.priority.rank(), row.id.key()]);
        Item::new("/ready", sort_key, ready_task(row), Cut::Json(&["id", "revision"]))
    }));
    let page = Page {
        head,
        slots: vec![Slot::Value("/task"), Slot::List("/ready")],
        items,
        streams: vec![Stream { pagination: "/pagination", more }],
        reversed: false,
    };
    Ok(WorkReply::page(page, request))
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    claim: Option<ClaimView<'a>>,
}

/// A task in the ready queue.
#[derive(Debug, Serialize)]
struct ReadyTask<'a> {
    id: TargetId,
    title: &'a str,
    priority: TaskPriority,
    status: Status,
    revision: u64,
}

fn ready_task(row: &TargetRow) -> ReadyTask<'_> {
    let Target { title, priority, status, revision, .. } = &row.fields;
    ReadyTask { id: row.id, title, priority: *priority, status: *status, revision: *revision }
}

/// The agent. Claims and releases need a name, or two agents would share one.
fn agent(args: &Args) -> Result<&str, WorkError> {
    match args.agent.as_deref().map(str::trim) {
        None | Some("") if args.claim || args.release.is_some() => {
            Err(WorkError::invalid("claim and release need an agent").recovery("give `agent`"))
        }
        agent => checked_agent(agent.unwrap_or_default()),
    }
}

fn checked_agent(agent: &str) -> Result<&str, WorkError> {
    if agent.chars().count() > MAX_AGENT || agent.chars().any(char::is_control) {
        return Err(WorkError::invalid("agent is too long or contains control characters")
            .recovery(format!("1 to {MAX_AGENT} characters")));
    }
    Ok(agent)
}

/// The ready queue of an agent from a rank and key on.
pub(crate) async fn ready(
    call: &mut WorkCall<'_>,
    agent: &str,
    rank: i64,
    key: i64,
    most: usize,
) -> Result<Vec<TargetRow>, StoreError> {
    let args = args![call.ws.id, agent, call.now, rank, key, signed(most as u64)];
    let rows = call.tx.rows(READY, args).await?;
    rows.iter().map(TargetRow::from_row).collect()
}

async fn claim(call: &mut WorkCall<'_>, agent: &str, ttl_s: i64) -> Result<Option<TargetRow>, WorkError> {
    let Some(row) = ready(call, agent, 0, 0, 1).await?.pop() else {
        call.check_target(None)?;
        call.warn("no task is ready");
        return Ok(None);
    };
    call.check_guard(&row)?;
    claim_task(call, row, agent, ttl_s).await.map(Some)
}

/// Claims a task for an agent. The caller has checked that it is free.
pub(crate) async fn claim_task(
    call: &mut WorkCall<'_>,
    row: TargetRow,
    agent: &str,
    ttl_s: i64,
) -> Result<TargetRow, WorkError> {
    let agent = checked_agent(agent)?;
    let mut mutation = Mutation::of(row, WorkTool::TasksNext, call.now, Undoable::No);
    let target = mutation.target();
    target.claim = Some(Claim { agent: agent.to_owned(), expires_ms: expiry(call.now, ttl_s) });
    if target.status == Status::Todo {
        target.status = Status::Active;
    }
    mutation.log(call.tx, &mut call.ws, "claimed", None).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(mutation.row().clone())
}

/// When a claim of this duration ends: at the latest at the last time that can be stored.
fn expiry(now_ms: i64, ttl_s: i64) -> i64 {
    now_ms.saturating_add(ttl_s.saturating_mul(1000)).min(LAST_TIME.as_millisecond())
}

async fn release(call: &mut WorkCall<'_>, text: &str, agent: &str) -> Result<(), WorkError> {
    let row = call.load(parse_target(text)?).await?;
    call.check_guard(&row)?;
    let now = call.now;
    match row.fields.claim.clone() {
        None => {
            call.warn(format!("{} was not claimed", row.id));
            return Ok(());
        }
        Some(claim) if claim.agent != agent && claim.is_live(now) => {
            return Err(WorkError::new(
                WorkErrorCode::Conflict,
                format!("{} is claimed by another agent", row.id),
            )
            .recovery("wait until the claim expires, or let its agent release it")
            .with("actual", json!(claim.view()))
            .current(row.brief()));
        }
        Some(_) => {}
    }
    let mut mutation = Mutation::of(row, call.request.tool, now, Undoable::No);
    mutation.target().claim = None;
    mutation.log(call.tx, &mut call.ws, "released", None).await?;
    mutation.save(call.tx, &mut call.ws).await?;
    Ok(())
}
