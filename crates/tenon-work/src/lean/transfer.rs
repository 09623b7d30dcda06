//! Tasks as Markdown: headings are plans, items are tasks, nested items are steps. An export can be imported again.

use serde_json::{Value, json};

use super::LeanError;
use super::closing::close_marked;
use super::markdown_list::{self, ListItem};
use super::task_add::{create_plan, default_plan, step_input};
use crate::catalog::WorkTool;
use crate::id::{TargetId, TargetKind};
use crate::plan::step::{self, StepRow};
use crate::plan::target::{self, Status, TargetRow};
use crate::work_call::WorkCall;

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedTasks {
    pub added: Vec<String>,
    /// Titles of tasks that the plan has already.
    pub skipped: Vec<String>,
}

/// Adds the tasks of a Markdown text. A task whose plan has one with the same title is skipped.
pub(crate) async fn import(call: &mut WorkCall<'_>, markdown: &str) -> Result<ImportedTasks, LeanError> {
    let mut imported = ImportedTasks::default();
    for (heading, list) in sections(markdown) {
        let items = markdown_list::read(&list);
        if items.is_empty() {
            continue;
        }
        let plan = match heading {
            Some(title) => match plan_titled(call, title).await? {
                Some(plan) => plan,
                None => create_plan(call, title, &[]).await?,
            },
            None => default_plan(call).await?,
        };
        let known = target::children(call.tx, call.ws.id, plan).await?;
        for item in &items {
            if known.iter().any(|task| task.fields.title == item.title) {
                imported.skipped.push(item.title.clone());
            } else {
                imported.added.push(add(call, plan, item).await?.to_string());
            }
        }
    }
    Ok(imported)
}

/// The text below each heading. Text before the first one has none.
fn sections(markdown: &str) -> Vec<(Option<&str>, String)> {
    let mut sections = vec![(None, String::new())];
    for line in markdown.lines() {
        let heading = line.trim_start_matches('#');
        if line.starts_with('#') && heading.starts_with(' ') && !heading.trim().is_empty() {
            sections.push((Some(heading.trim()), String::new()));
        } else if let Some((_, text)) = sections.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    // Prose without a single bullet is not a list of tasks.
    let is_list = |text: &str| {
        text.lines().any(|line| line.trim_start().starts_with(['-', '*', '+']) || numbered(line))
    };
    sections.into_iter().filter(|(_, text)| is_list(text)).collect()
}

fn numbered(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|one: char| one.is_ascii_digit());
    rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
}

async fn plan_titled(call: &mut WorkCall<'_>, title: &str) -> Result<Option<TargetId>, LeanError> {
    let every = target::every(call.tx, call.ws.id).await?;
    let is_it = |row: &&TargetRow| {
        row.id.kind == TargetKind::Plan && !row.fields.deleted && row.fields.title == title
    };
    Ok(every.iter().find(is_it).map(|row| row.id))
}

async fn add(call: &mut WorkCall<'_>, plan: TargetId, item: &ListItem) -> Result<TargetId, LeanError> {
    let steps: Vec<Value> = item.items.iter().map(step_input).collect();
    let mut lines = item.criteria.clone();
    lines.extend(item.tests.iter().map(|test| format!("tests: {test}")));
    let contract = (!lines.is_empty()).then(|| lines.join("\n"));
    let title: String = item.title.chars().take(500).collect();
    let made = call
        .tool(
            WorkTool::TasksCreate,
            json!({"kind": "task", "title": title, "parent": plan, "contract": contract, "steps": steps}),
        )
        .await?;
    let id: TargetId =
        made["id"].as_str().and_then(|id| id.parse().ok()).expect("the tool answers with an id");
    if item.done && item.items.is_empty() {
        call.tool(WorkTool::TasksEdit, json!({"task": id, "status": "done"})).await?;
    } else if item.done {
        let all: Vec<ListItem> = item.items.iter().map(all_done).collect();
        close_marked(call, id, &all).await?;
    } else {
        close_marked(call, id, &item.items).await?;
    }
    Ok(id)
}

fn all_done(item: &ListItem) -> ListItem {
    ListItem { done: true, items: item.items.iter().map(all_done).collect(), ..item.clone() }
}

/// All plans with their tasks as Markdown.
pub(crate) async fn export(call: &mut WorkCall<'_>) -> Result<String, LeanError> {
    let every = target::every(call.tx, call.ws.id).await?;
    let live: Vec<&TargetRow> = every.iter().filter(|row| !row.fields.deleted).collect();
    let mut out = String::new();
    for plan in live.iter().filter(|row| row.id.kind == TargetKind::Plan) {
        let mut items = Vec::new();
        for task in live.iter().filter(|row| row.fields.parent == Some(plan.id)) {
            let steps = step::all(call.tx, call.ws.id, task.id).await?;
            items.push(item(task, &steps));
        }
        if !items.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            let title = plan.fields.title.split_whitespace().collect::<Vec<_>>().join(" ");
            out.push_str(&format!("# {title}\n\n{}", markdown_list::write(&items)));
        }
    }
    Ok(out)
}

fn item(task: &TargetRow, steps: &[StepRow]) -> ListItem {
    let fields = &task.fields;
    let (tests, criteria): (Vec<&str>, Vec<&str>) =
        fields.contract.iter().flat_map(|text| text.lines()).partition(|line| line.starts_with("tests: "));
    ListItem {
        title: fields.title.clone(),
        done: fields.status == Status::Done,
        criteria: criteria.into_iter().map(str::to_owned).collect(),
        tests: tests.into_iter().map(|line| line["tests: ".len()..].to_owned()).collect(),
        items: below(steps, 1),
    }
}

/// The tree of steps that begins at a depth.
fn below(steps: &[StepRow], depth: usize) -> Vec<ListItem> {
    let mut items = Vec::new();
    let mut rest = steps;
    while let Some((first, after)) = rest.split_first() {
        let count = after.iter().take_while(|step| step.fields.path.depth() > depth).count();
        let fields = &first.fields;
        items.push(ListItem {
            title: fields.title.clone(),
            done: fields.completed,
            criteria: fields.success_criteria.iter().filter(|text| **text != fields.title).cloned().collect(),
            tests: fields.tests.clone(),
            items: below(&after[..count], depth + 1),
        });
        rest = &after[count..];
    }
    items
}
