//! `tenon tasks board`: tasks in columns by status.

use serde_json::{Value, json};
use tenon_work::WorkTool;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::styled_text::{Colour, StyledText};
use crate::work::{WorkOptions, call_tool, line, list};

/// Lines of the last column: the newest tasks that are done.
const DONE: usize = 10;
const DEFAULT_WIDTH: usize = 100;

/// Show tasks in columns: todo, active, done
#[derive(Debug, clap::Args)]
pub(super) struct Board {
    #[command(flatten)]
    options: WorkOptions,
}

pub(super) fn run(args: Board, invocation: &mut Invocation) -> Result<Exit, Failure> {
    let arguments = json!({"kind": "task", "limit": 200});
    let answer = call_tool(WorkTool::TasksContext, arguments, &args.options, invocation)?;
    if answer.silent {
        return Ok(Exit::Success);
    }
    let width = invocation.environment.get("COLUMNS").and_then(|text| text.parse().ok());
    let text = board(list(&answer.result["tasks"]), width.unwrap_or(DEFAULT_WIDTH));
    invocation.print_styled(&text)?;
    Ok(Exit::Success)
}

fn board(tasks: &[Value], width: usize) -> StyledText {
    let column = |status: &str| -> Vec<String> {
        tasks.iter().filter(|task| task["status"] == status).map(card).collect()
    };
    let (todo, active, mut done) = (column("todo"), column("active"), column("done"));
    let counts = [todo.len(), active.len(), done.len()];
    done.reverse();
    done.truncate(DONE);
    let columns =
        [("todo", Colour::Yellow, todo), ("active", Colour::Blue, active), ("done", Colour::Green, done)];
    let cell = (width.clamp(30, 240) / 3).saturating_sub(2);
    let mut text = StyledText::default();
    for ((name, colour, _), count) in columns.iter().zip(counts) {
        let head = format!("{name} ({count})");
        text.coloured(*colour, &head);
        text.plain(&" ".repeat((cell + 2).saturating_sub(head.chars().count())));
    }
    text.end_line();
    let height = columns.iter().map(|(_, _, cards)| cards.len()).max().unwrap_or(0);
    for row in 0..height {
        for (_, _, cards) in &columns {
            text.plain(&padded(cards.get(row).map_or("", String::as_str), cell));
            text.plain("  ");
        }
        text.end_line();
    }
    text
}

/// `TASK-002 1/3 Fix the login`
fn card(task: &Value) -> String {
    let steps = &task["steps"];
    let progress = match steps["total"].as_i64() {
        Some(total) if total > 0 => format!(" {}/{total}", steps["completed"]),
        _ => String::new(),
    };
    let blocked = if list(&task["blockers"]).is_empty() { "" } else { " !" };
    format!("{}{progress}{blocked} {}", line(&task["id"]), line(&task["title"]))
}

/// A text that fills a cell, cut if it is longer.
fn padded(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length > width {
        let kept: String = text.chars().take(width.saturating_sub(1)).collect();
        return format!("{kept}…");
    }
    format!("{text}{}", " ".repeat(width - length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_in_the_column_of_their_status() {
        let tasks = json!([
            {"id": "TASK-001", "title": "A title that is too long for the cell", "status": "done", "blockers": [], "steps": {}},
            {"id": "TASK-002", "title": "Fix", "status": "active", "blockers": ["no key"], "steps": {"total": 3, "completed": 1}},
        ]);
        let text = board(tasks.as_array().unwrap(), 90);
        let plain = anstream::adapter::strip_str(text.as_str()).to_string();
        let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["todo", "(0)", "active", "(1)", "done", "(1)"]
        );
        assert!(
            lines[1].contains("TASK-002 1/3 ! Fix") && lines[1].ends_with("TASK-001 A title that is to…"),
            "{plain}"
        );
    }
}
