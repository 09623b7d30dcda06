//! `task_show`: a task with its steps, notes, decisions and the next action.

use serde_json::{Value, json};

use super::natural::Fields;
use super::reference::{Named, parse};
use super::task_text::{TaskView, card_line, note_line, one_line};
use super::{LeanAnswer, LeanCaller, LeanError, LeanTool, max_bytes, within};
use crate::id::TargetKind;
use crate::plan::target;
use crate::work_call::WorkCall;

#[derive(Debug, Clone)]
pub(super) struct Args {
    id: Option<String>,
    max_bytes: usize,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Self {
        Self { id: task_name(fields), max_bytes: max_bytes(fields) }
    }
}

/// The task that a call names, if it names one. `current` and the like name none.
pub(super) fn task_name(fields: &mut Fields) -> Option<String> {
    let name = fields.text(&["id", "taskid", "task", "ids", "taskname", "number"])?;
    let is_current =
        ["current", "focus", "active", "this", "next", "latest"].contains(&name.to_lowercase().as_str());
    (!is_current).then_some(name)
}

pub(super) async fn run(
    call: &mut WorkCall<'_>,
    args: &Args,
    caller: &LeanCaller,
) -> Result<LeanAnswer, LeanError> {
    let row = match &args.id {
        Some(name) => call.named_target_or_step(name, &caller.agent).await?.0,
        None => match call.current_task(&caller.agent).await? {
            Some(row) => row,
            None => return Ok(nothing()),
        },
    };
    if row.id.kind == TargetKind::Plan {
        let tasks = target::children(call.tx, call.ws.id, row.id).await?;
        let mut text =
            format!("{} {} ({})", row.id, one_line(&row.fields.title, 200), row.fields.status.as_str());
        for task in &tasks {
            let title = one_line(&task.fields.title, 120);
            text.push_str(&format!("\n  {} {:<6} {title}", task.id, task.fields.status.as_str()));
        }
        let ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
        return Ok(LeanAnswer::new(within(text, args.max_bytes), json!({"id": row.id, "tasks": ids})));
    }
    let step = args.id.as_deref().and_then(|name| match parse(name) {
        (Named::Id(_), step) => step,
        _ => None,
    });
    if let Some(step) = step {
        // A wrong step is worth an error even if the task is shown anyway.
        call.named_step(&row, step).await?;
    }
    let view = TaskView::read(call, row).await?;
    Ok(LeanAnswer::new(within(text(&view, call.now), args.max_bytes), view.data()))
}

fn nothing() -> LeanAnswer {
    let add = LeanTool::TaskAdd.name();
    LeanAnswer::new(format!(r#"no tasks yet; {add} {{"title":"…"}} adds one"#), Value::Null)
}

fn text(view: &TaskView, now: i64) -> String {
    let fields = &view.row.fields;
    let mut lines = vec![view.head(now)];
    if let Some(plan) = &view.plan {
        lines.push(format!("plan: {} {}", plan.id, one_line(&plan.fields.title, 120)));
    }
    for (name, value) in [("why", &fields.contract), ("about", &fields.description)] {
        lines.extend(value.iter().map(|value| format!("{name}: {}", one_line(value, 600))));
    }
    lines.extend(fields.blockers.iter().map(|blocker| format!("blocked: {}", one_line(blocker, 200))));
    let waits = view.waits_for.iter();
    lines.extend(waits.map(|(id, title)| format!("waits for: {id} {}", one_line(title, 100))));
    lines.extend(view.closed_at.iter().map(|commit| format!("closed at: {}", one_line(commit, 200))));
    if !view.steps.is_empty() {
        lines.push("steps:".to_owned());
        lines.extend(view.step_lines());
    }
    if !view.cards.is_empty() {
        lines.push("decisions and thoughts:".to_owned());
        lines.extend(view.cards.iter().map(|card| format!("  {}", card_line(card, 300))));
    }
    if !view.notes.is_empty() {
        lines.push("notes:".to_owned());
        lines.extend(view.notes.iter().map(|note| format!("  {}", note_line(note, 300))));
    }
    lines.extend(view.next_call().map(|call| format!("next: {call}")));
    lines.join("\n")
}
