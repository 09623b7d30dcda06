//! The summary for a session that starts without context: the task, the open step, the last decision, the next action.

use serde_json::json;

use super::reference::position;
use super::task_text::{TaskView, card_line, kind, note_line, one_line};
use super::{LeanAnswer, LeanCaller, LeanError};
use crate::plan::target::Status;
use crate::store::args;
use crate::work_call::WorkCall;

/// The whole summary stays below this. A hook adds a line to it and stays below 1,200.
pub(super) const MAX_BYTES: usize = 1170;

/// Empty if no task is open.
pub(crate) async fn run(call: &mut WorkCall<'_>, caller: &LeanCaller) -> Result<LeanAnswer, LeanError> {
    let current = call.current_task(&caller.agent).await?;
    let Some(row) = current.filter(|row| row.fields.status != Status::Done) else {
        return Ok(LeanAnswer::new("", json!({"id": null})));
    };
    let others = {
        let sql = "SELECT count(*) FROM targets WHERE ws = $1 AND deleted = 0 AND status <> 'done'
            AND target >= 1099511627776 AND target <> $2";
        let counted = call.tx.row(sql, args![call.ws.id, row.id.key()]).await?;
        counted.map(|row| row.int(0)).transpose()?.unwrap_or(0)
    };
    let view = TaskView::read(call, row).await?;
    Ok(LeanAnswer::new(text(&view, others, call.now), view.data()))
}

fn text(view: &TaskView, others: i64, now: i64) -> String {
    let fields = &view.row.fields;
    let word = if fields.status == Status::Active { "Current task" } else { "Next task" };
    // In order of importance: what does not fit is left out from the end.
    let mut lines = vec![format!("{word}: {}", one_line(&view.head(now), 260))];
    if let Some(step) = view.open_step() {
        lines.push(format!(
            "Open step: {} {}",
            position(&step.fields.path),
            one_line(&step.fields.title, 140)
        ));
    }
    lines.extend(
        view.next_call().map(|call| format!("Next action: do it, then {call}; task_show {{}} shows all")),
    );
    let decision = view.cards.iter().find(|card| kind(card) == "decision");
    lines.extend(decision.map(|card| format!("Last decision: {}", card_line(card, 180))));
    lines.extend(fields.blockers.first().map(|blocker| format!("Blocked: {}", one_line(blocker, 100))));
    lines
        .extend(view.waits_for.first().map(|(id, title)| format!("Waits for: {id} {}", one_line(title, 80))));
    let why = fields.contract.as_ref().or(fields.description.as_ref());
    lines.extend(why.map(|why| format!("Why: {}", one_line(why, 140))));
    lines.extend(view.notes.iter().take(3).map(|note| format!("Note: {}", note_line(note, 120))));
    if others > 0 {
        lines.push(format!("{others} other open tasks: task_list {{}}"));
    }
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() + 1 < MAX_BYTES {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&line);
        }
    }
    text
}
