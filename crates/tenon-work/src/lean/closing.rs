//! Closing steps and tasks: which steps a call means, their checks, and the commit at which a task was closed.

use serde_json::json;

use super::markdown_list::ListItem;
use super::reference::position;
use super::task_text::one_line;
use super::{LeanCaller, LeanError, LeanTool, check};
use crate::catalog::WorkTool;
use crate::error::WorkErrorCode;
use crate::id::TargetId;
use crate::memory::entry::{self, NewNote};
use crate::memory::{NOTES, branch};
use crate::path::StepPath;
use crate::plan::step::{self, StepRow};
use crate::plan::target::{Status, TargetRow};
use crate::tools::checkpoints::confirming;
use crate::work_call::WorkCall;

/// The steps that an update closes, children before parents.
pub(super) async fn closing(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    names: &[String],
) -> Result<Vec<StepRow>, LeanError> {
    let all = step::all(call.tx, call.ws.id, row.id).await?;
    let open: Vec<&StepRow> = all.iter().filter(|step| !step.fields.completed).collect();
    if names.iter().any(|name| is_all(name)) || (names.is_empty() && open.len() == 1) {
        return Ok(open.into_iter().cloned().collect_post_order());
    }
    if names.is_empty() && open.len() > 1 {
        let list = open
            .iter()
            .take(6)
            .map(|step| format!("{} {}", position(&step.fields.path), one_line(&step.fields.title, 50)));
        let list = list.collect::<Vec<_>>().join(", ");
        return Err(LeanError::new(format!(
            "{} has {} open steps: {list}; name the step that is done, or close all",
            row.id,
            open.len()
        ))
        .code_of(WorkErrorCode::CheckpointsNotConfirmed)
        .call(LeanTool::TaskUpdate, json!({"id": row.id, "step": "all", "done": true})));
    }
    let mut steps = Vec::new();
    for name in names {
        steps.push(call.named_step(row, name).await?);
    }
    Ok(steps.into_iter().collect_post_order())
}

trait PostOrder {
    fn collect_post_order(self) -> Vec<StepRow>;
}

impl<I: Iterator<Item = StepRow>> PostOrder for I {
    /// Children before their parents, otherwise in the order of the tree; each once.
    fn collect_post_order(self) -> Vec<StepRow> {
        let mut steps: Vec<StepRow> = self.collect();
        steps.sort_by(|one, other| {
            let (one, other) = (&one.fields.path, &other.fields.path);
            match (one.is_below(other), other.is_below(one)) {
                (true, _) => std::cmp::Ordering::Less,
                (_, true) => std::cmp::Ordering::Greater,
                _ => one.cmp(other),
            }
        });
        steps.dedup_by(|one, other| one.id == other.id);
        steps
    }
}

pub(super) fn is_all(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "all" | "all steps" | "everything" | "*")
}

/// Closes steps, or the task if it has none.
pub(super) async fn close(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    names: &[String],
    caller: &LeanCaller,
    said: &mut Vec<String>,
    refused: &mut Vec<String>,
) -> Result<(), LeanError> {
    let steps = closing(call, row, names).await?;
    if steps.is_empty() {
        if row.fields.status == Status::Done {
            said.push("already done".to_owned());
        } else {
            call.tool(WorkTool::TasksEdit, json!({"task": row.id, "status": "done"})).await?;
            said.push("done".to_owned());
        }
        return Ok(());
    }
    let mut kept_open: Vec<StepPath> = Vec::new();
    for step in steps {
        // The steps above one that stays open cannot close.
        if kept_open.iter().any(|path| path.is_below(&step.fields.path)) {
            continue;
        }
        let at = position(&step.fields.path);
        if step.fields.completed {
            said.push(format!("step {at} was already done"));
            continue;
        }
        let verdict = check::apply(call, &step, &caller.checks).await?;
        if !verdict.refused.is_empty() {
            refused.extend(verdict.refused);
            kept_open.push(step.fields.path.clone());
            continue;
        }
        close_step(call, &step).await?;
        let mut facts: Vec<String> = verdict.passed.iter().map(|check| format!("`{check}` passed")).collect();
        facts.extend(verdict.unchecked);
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        said.push(format!("step {at} done{facts}"));
    }
    Ok(())
}

/// Confirms what is missing and closes a step.
async fn close_step(call: &mut WorkCall<'_>, step: &StepRow) -> Result<(), LeanError> {
    let checkpoints = confirming(&step.fields.missing());
    let arguments = json!({"task": step.target, "step_id": step.id, "checkpoints": checkpoints});
    let closed = call.tool(WorkTool::TasksCloseStep, arguments).await;
    match closed {
        Ok(_) => Ok(()),
        Err(error) if error.code() == WorkErrorCode::CheckpointsNotConfirmed => {
            let at = position(&step.fields.path);
            let mut open = step::open_below(call.tx, call.ws.id, step.target, &step.fields.path, 24).await?;
            let child = step::take_first_leaf(&mut open).map(|child| position(&child.fields.path));
            let failure = LeanError::new(format!("step {at} of {} has open steps below it", step.target));
            let child = child.unwrap_or(at);
            Err(failure
                .code_of(WorkErrorCode::CheckpointsNotConfirmed)
                .call(LeanTool::TaskUpdate, json!({"id": step.target, "step": child, "done": true})))
        }
        Err(error) => Err(error.into()),
    }
}

/// Closes the steps of a new task that its list marks as done.
pub(super) async fn close_marked(
    call: &mut WorkCall<'_>,
    id: TargetId,
    items: &[ListItem],
) -> Result<(), LeanError> {
    fn marks<'a>(items: &'a [ListItem], into: &mut Vec<&'a ListItem>) {
        for item in items {
            into.push(item);
            marks(&item.items, into);
        }
    }
    // In the order of the tree, as the steps were added.
    let mut marked = Vec::new();
    marks(items, &mut marked);
    if !marked.iter().any(|item| item.done) {
        return Ok(());
    }
    let steps = step::all(call.tx, call.ws.id, id).await?;
    let done = steps.into_iter().zip(marked).filter(|(_, item)| item.done).map(|(step, _)| step);
    for step in done.collect_post_order() {
        let mut open = step::open_below(call.tx, call.ws.id, id, &step.fields.path, 24).await?;
        // A closed item with open ones below it stays open, as the rules want.
        if step::take_first_leaf(&mut open).is_none() {
            close_step(call, &step).await?;
        }
    }
    Ok(())
}

/// Notes at which commit a task was closed.
pub(super) async fn record_commit(
    call: &mut WorkCall<'_>,
    row: &TargetRow,
    caller: &LeanCaller,
) -> Result<(), LeanError> {
    let Some(head) = &caller.head else { return Ok(()) };
    let commit = head.commit.as_deref();
    let short = commit.map_or("no commit", |commit| &commit[..commit.len().min(12)]);
    let branch_name = head.branch.as_deref();
    let content = match branch_name {
        Some(branch) => format!("{short} on {branch}"),
        None => format!("{short}, detached"),
    };
    let note = NewNote {
        branch: branch::number_of(row.id),
        doc: NOTES,
        format: Some(entry::COMMIT),
        meta: Some(json!({"task": row.id, "commit": commit, "branch": branch_name})),
        content: &content,
        ..NewNote::default()
    };
    entry::append(call.tx, &mut call.ws, call.now, &note).await?;
    Ok(())
}
