//! `task_list`: tasks by plan, open ones by default.

use std::collections::BTreeMap;

use serde_json::json;

use super::natural::{self, Fields, Status as Word};
use super::task_text::{claimed, live_claim, one_line};
use super::{LeanAnswer, LeanCaller, LeanError, LeanTool, max_bytes, within};
use crate::id::{TargetId, TargetKind};
use crate::name::quoted;
use crate::plan::target::{self, Status, TargetRow};
use crate::store::{StoreError, args};
use crate::tools::tasks_next;
use crate::work_call::WorkCall;

/// Tasks in one answer.
const MOST: i64 = 500;

#[derive(Debug, Clone)]
pub(super) struct Args {
    filter: Word,
    /// A plan.
    under: Option<String>,
    max_bytes: usize,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let ready = fields.flag(&["ready", "available"]).is_some_and(|flag| flag.is_on());
        let all = fields.flag(&["all", "includedone", "includecompleted"]).is_some_and(|flag| flag.is_on());
        let word = fields.text(&["status", "state", "filter"]);
        let filter = match &word {
            Some(word) => natural::status(word).ok_or_else(|| {
                LeanError::new(format!(
                    "{} is not a status (todo, active, done, blocked, open, all)",
                    quoted(word)
                ))
                .call(LeanTool::TaskList, json!({"status": "all"}))
            })?,
            None if all => Word::All,
            None => Word::Open,
        };
        let filter = if ready { Word::Ready } else { filter };
        let under = fields.text(&["under", "plan", "parent", "planid"]);
        Ok(Self { filter, under, max_bytes: max_bytes(fields) })
    }
}

const TASKS: &str =
    target::select!("WHERE ws = $1 AND deleted = 0 AND target >= 1099511627776 ORDER BY target LIMIT $2");
const COUNTS: &str = "SELECT status, count(*) FROM targets
    WHERE ws = $1 AND deleted = 0 AND target >= 1099511627776 GROUP BY status ORDER BY status";
const OPEN: &str = target::select!(
    "WHERE ws = $1 AND deleted = 0 AND status <> 'done' AND target >= 1099511627776 ORDER BY target LIMIT $2"
);

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<LeanAnswer, LeanError> {
    let under = match &args.under {
        Some(name) => Some(call.named_target(name, Some(TargetKind::Plan)).await?.id),
        None => None,
    };
    let mut rows = match args.filter {
        Word::Ready => tasks_next::ready(call, &caller.agent, 0, 0, 50).await?,
        Word::All | Word::Done => read(call, TASKS).await?,
        _ => read(call, OPEN).await?,
    };
    rows.retain(|row| matches(args.filter, row) && under.is_none_or(|plan| row.fields.parent == Some(plan)));
    let counts = counts(call).await?;
    let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    let mut lines = Vec::new();
    if args.filter == Word::Ready {
        for row in &rows {
            lines.push(line(call, row).await?);
        }
    } else {
        let mut by_plan: BTreeMap<Option<TargetId>, Vec<TargetRow>> = BTreeMap::new();
        for row in rows {
            by_plan.entry(row.fields.parent).or_default().push(row);
        }
        for (plan, tasks) in by_plan {
            if let Some(plan) = plan
                && let Some(row) = target::load(call.tx, call.ws.id, plan).await?
            {
                lines.push(format!("{plan} {}", one_line(&row.fields.title, 120)));
            }
            for row in &tasks {
                lines.push(format!("  {}", line(call, row).await?));
            }
        }
    }
    if lines.is_empty() {
        lines.push(match args.filter {
            Word::Ready => "no task is ready".to_owned(),
            Word::Open if counts.is_empty() => r#"no tasks yet; task_add {"title":"…"} adds one"#.to_owned(),
            _ => "no such tasks".to_owned(),
        });
    }
    let hidden: i64 = counts.iter().filter(|(status, _)| status == "done").map(|(_, count)| count).sum();
    if hidden > 0 && !matches!(args.filter, Word::All | Word::Done) && under.is_none() {
        lines.push(format!("{hidden} done"));
    }
    Ok(LeanAnswer::new(within(lines.join("\n"), args.max_bytes), json!({"tasks": ids})))
}

fn matches(filter: Word, row: &TargetRow) -> bool {
    match filter {
        Word::Todo => row.fields.status == Status::Todo,
        Word::Active => row.fields.status == Status::Active,
        Word::Done => row.fields.status == Status::Done,
        Word::Blocked => !row.fields.blockers.is_empty(),
        Word::Unblocked => row.fields.blockers.is_empty(),
        // Cancelled tasks are deleted, so none is left.
        Word::Cancelled => false,
        Word::Open | Word::Ready | Word::All => true,
    }
}

async fn read(call: &mut WorkCall<'_>, sql: &'static str) -> Result<Vec<TargetRow>, StoreError> {
    let rows = call.tx.rows(sql, args![call.ws.id, MOST]).await?;
    rows.iter().map(TargetRow::from_row).collect()
}

async fn counts(call: &mut WorkCall<'_>) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = call.tx.rows(COUNTS, args![call.ws.id]).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect()
}

/// `TASK-002 active 1/3 Fix the login (blocked; waits for TASK-001)`
pub(super) async fn line(call: &mut WorkCall<'_>, row: &TargetRow) -> Result<String, StoreError> {
    let steps = crate::plan::step::counts(call.tx, call.ws.id, row.id).await?;
    let progress =
        if steps.total > 0 { format!(" {}/{}", steps.completed, steps.total) } else { String::new() };
    let mut facts = Vec::new();
    facts.extend(row.fields.blockers.first().map(|why| format!("blocked: {}", one_line(why, 60))));
    if !row.fields.depends_on.is_empty() && row.fields.status != Status::Done {
        let waits = crate::plan::radar::waits_for(call.tx, call.ws.id, row.id).await?;
        facts.extend(waits.first().map(|(id, _)| format!("waits for {id}")));
    }
    facts.extend(live_claim(row, call.now).map(claimed));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    let title = one_line(&row.fields.title, 120);
    Ok(format!("{} {:<6}{progress} {title}{facts}", row.id, row.fields.status.as_str()))
}
