//! `task_claim`: takes a task for one agent, or gives it back.

use serde_json::json;

use super::natural::{Fields, Flag};
use super::task_show::task_name;
use super::task_text::{TaskView, claimed};
use super::{LeanAnswer, LeanCaller, LeanError, LeanTool};
use crate::catalog::WorkTool;
use crate::error::WorkErrorCode;
use crate::id::TargetKind;
use crate::plan::target::{self, Status, TargetRow};
use crate::store::args;
use crate::tools::tasks_next;
use crate::work_call::WorkCall;

/// A claim ends after this time, so that the task of a lost agent becomes free.
const CLAIM_S: i64 = 3600;

#[derive(Debug, Clone)]
pub(super) struct Args {
    id: Option<String>,
    release: bool,
    /// The name that the caller gives itself.
    agent: Option<String>,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Self {
        let mut id = task_name(fields);
        let release = match fields.flag(&["release", "unclaim", "giveup"]) {
            // `release: "TASK-001"`
            Some(Flag::Text(text)) => {
                id = id.or(Some(text));
                true
            }
            flag => flag.is_some_and(|flag| flag.is_on()),
        };
        Self { id, release, agent: fields.text(&["agent", "agentid", "owner", "assignee", "by"]) }
    }
}

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<LeanAnswer, LeanError> {
    let agent = args.agent.clone().unwrap_or_else(|| caller.agent.clone());
    let row = match &args.id {
        Some(name) => Some(call.named_target(name, Some(TargetKind::Task)).await?),
        None => None,
    };
    if args.release {
        return release(call, row, &agent).await;
    }
    let row = match row {
        Some(row) => claimable(call, row, &agent)?,
        None => match tasks_next::ready(call, &agent, 0, 0, 1).await?.pop() {
            Some(row) => row,
            None => return Ok(LeanAnswer::new("no task is ready", json!({"id": null}))),
        },
    };
    // The tools of the contract record who wrote; this is the claim of `tasks_next`.
    let row = tasks_next::claim_task(call, row, &agent, CLAIM_S).await?;
    let view = TaskView::read(call, row).await?;
    let mut lines = vec![view.head(call.now)];
    lines.extend(view.step_lines());
    lines.extend(view.next_call().map(|call| format!("next: {call}")));
    Ok(LeanAnswer::new(lines.join("\n"), view.data()))
}

/// Rejects a task that is done or that another agent has.
fn claimable(call: &WorkCall<'_>, row: TargetRow, agent: &str) -> Result<TargetRow, LeanError> {
    if row.id.kind == TargetKind::Plan {
        return Err(LeanError::new(format!("{} is a plan; claim a task in it", row.id))
            .call(LeanTool::TaskShow, json!({"id": row.id})));
    }
    if row.fields.status == Status::Done {
        return Err(LeanError::new(format!("{} is done", row.id))
            .lead("to take another task")
            .call(LeanTool::TaskClaim, json!({})));
    }
    match &row.fields.claim {
        Some(claim) if claim.agent != agent && claim.is_live(call.now) => {
            Err(LeanError::new(format!("{} is {}", row.id, claimed(claim)))
                .lead("to take another task")
                .code_of(WorkErrorCode::Conflict)
                .call(LeanTool::TaskClaim, json!({})))
        }
        _ => Ok(row),
    }
}

/// Gives a task back: the given one, else the one that the agent claimed last.
async fn release(
    call: &mut WorkCall<'_>,
    row: Option<TargetRow>,
    agent: &str,
) -> Result<LeanAnswer, LeanError> {
    const OWN: &str = target::select!(
        "WHERE ws = $1 AND deleted = 0 AND claim_agent = $2 AND claim_expires_ms > $3
        ORDER BY claim_expires_ms DESC, target DESC LIMIT 1"
    );
    let row = match row {
        Some(row) => row,
        None => {
            let own = call.tx.row(OWN, args![call.ws.id, agent, call.now]).await?;
            match own.as_ref().map(TargetRow::from_row).transpose()? {
                Some(row) => row,
                None => return Ok(LeanAnswer::new("you have claimed no task", json!({"id": null}))),
            }
        }
    };
    if row.fields.claim.is_none() {
        return Ok(LeanAnswer::new(format!("{} was not claimed", row.id), json!({"id": row.id})));
    }
    let id = row.id;
    if let Err(error) = call.tool(WorkTool::TasksNext, json!({"release": id, "agent": agent})).await {
        return Err(match (error.code(), &row.fields.claim) {
            (WorkErrorCode::Conflict, Some(claim)) => {
                let message = format!("{id} is {}, so only that agent can release it", claimed(claim));
                LeanError::new(message).code_of(WorkErrorCode::Conflict)
            }
            _ => error.into(),
        });
    }
    Ok(LeanAnswer::new(format!("released {id}"), json!({"id": id})))
}
