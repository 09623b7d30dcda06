//! `task_add`: a task from a title, with steps if there are any.
//!
//! Every task belongs to a plan. Without `under` it goes to the plan with the tag `default`, which the first such call
//! creates. `under` names a plan, by id or title; a title that no plan has creates one. Under a task, it becomes a step.

use serde_json::{Value, json};

use super::markdown_list::{self, ListItem};
use super::natural::Fields;
use super::reference::{Named, parse};
use super::task_text::TaskView;
use super::{LeanAnswer, LeanError, LeanTool};
use crate::catalog::WorkTool;
use crate::id::{TargetId, TargetKind};
use crate::plan::target::{self, TargetRow};
use crate::store::args;
use crate::work_call::WorkCall;

/// The title and tag of the plan for tasks without one.
const DEFAULT_PLAN: &str = "Tasks";
const DEFAULT_TAG: &str = "default";

const TITLE_CHARS: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct Args {
    title: String,
    about: Option<String>,
    steps: Vec<ListItem>,
    under: Option<String>,
    after: Vec<String>,
    priority: Option<&'static str>,
    tags: Vec<String>,
}

impl Args {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, LeanError> {
        let about = fields.text(&["description", "details", "body", "why", "about", "notes", "note"]);
        let named = fields.text(&["title", "name", "task", "subject", "summary", "text", "content", "goal"]);
        let (given, about) = match (named, about) {
            (Some(title), about) => (title, about),
            (None, Some(about)) => (about, None),
            (None, None) => {
                return Err(LeanError::new("a task needs a title")
                    .lead("for example")
                    .call(LeanTool::TaskAdd, json!({"title": "Fix the login test"})));
            }
        };
        let (title, rest) = split_title(&given);
        let mut steps = fields.steps(&["steps", "subtasks", "todos", "checklist", "plan", "items", "tasks"]);
        let mut about = about;
        if let Some(rest) = rest {
            // A list below the title is the steps, any other text the description.
            match markdown_list::read(&rest) {
                list if steps.is_empty() && rest.lines().any(is_bulleted) => steps = list,
                _ => about = Some(about.map_or(rest.clone(), |about| format!("{rest}\n{about}"))),
            }
        }
        Ok(Self {
            title,
            about,
            steps,
            under: fields.text(&["under", "parent", "planid", "parentid", "project", "epic"]),
            after: fields.texts(&["after", "dependson", "blockedby", "needs", "requires", "dependencies"]),
            priority: fields.text(&["priority"]).and_then(|word| priority(&word)),
            tags: fields.texts(&["tags", "labels", "tag", "label"]),
        })
    }
}

fn is_bulleted(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['-', '*', '+', '•', '[']) || line.starts_with(|one: char| one.is_ascii_digit())
}

/// The title in a text, and what follows it.
fn split_title(text: &str) -> (String, Option<String>) {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim().trim_start_matches(['#', '-', '*']).trim();
    let first = first.strip_prefix("[ ]").unwrap_or(first).trim();
    let rest = rest.trim_matches('\n');
    if first.chars().count() > TITLE_CHARS {
        return (target::excerpt(first, TITLE_CHARS), Some(text.to_owned()));
    }
    (first.to_owned(), (!rest.trim().is_empty()).then(|| rest.to_owned()))
}

pub(super) fn priority(word: &str) -> Option<&'static str> {
    Some(match word.trim().to_lowercase().as_str() {
        "high" | "urgent" | "critical" | "p0" | "p1" | "1" | "highest" => "high",
        "low" | "minor" | "p3" | "p4" | "3" | "lowest" => "low",
        "medium" | "normal" | "p2" | "2" | "default" => "medium",
        _ => return None,
    })
}

/// Steps as arguments of `tasks_create` and `tasks_decompose`. A step without criteria is done when its title says so.
pub(super) fn step_input(item: &ListItem) -> Value {
    let criteria = if item.criteria.is_empty() { vec![item.title.clone()] } else { item.criteria.clone() };
    let title: String = item.title.chars().take(500).collect();
    let steps: Vec<Value> = item.items.iter().map(step_input).collect();
    json!({"title": title, "success_criteria": criteria, "tests": item.tests, "steps": steps})
}

pub(super) async fn run(call: &mut WorkCall<'_>, args: &Args) -> Result<LeanAnswer, LeanError> {
    let mut after = Vec::new();
    for name in &args.after {
        after.push(call.named_target(name, Some(TargetKind::Task)).await?.id);
    }
    let plan = match &args.under {
        None => default_plan(call).await?,
        Some(name) => match place(call, name).await? {
            TaskParent::Plan(id) => id,
            TaskParent::Task(row, step) => return add_step(call, args, *row, step).await,
        },
    };
    let steps: Vec<Value> = args.steps.iter().map(step_input).collect();
    let mut create = json!({
        "kind": "task", "title": args.title, "parent": plan, "depends_on": after, "steps": steps, "tags": args.tags,
        "description": args.about,
    });
    if let Some(priority) = args.priority {
        create["priority"] = json!(priority);
    }
    let made = call.tool(WorkTool::TasksCreate, create).await?;
    let id: TargetId =
        made["id"].as_str().and_then(|id| id.parse().ok()).expect("the tool answers with an id");
    super::closing::close_marked(call, id, &args.steps).await?;
    let row = call.load(id).await?;
    let view = TaskView::read(call, row).await?;
    let plan =
        view.plan.as_ref().map(|plan| format!(" in {} {}", plan.id, plan.fields.title)).unwrap_or_default();
    let mut lines =
        vec![format!("added {} {}{plan}", view.row.id, super::task_text::one_line(&args.title, 200))];
    lines.extend(view.step_lines());
    let waits = view.waits_for.iter().map(|(id, title)| format!("waits for: {id} {title}"));
    lines.extend(waits);
    Ok(LeanAnswer::new(lines.join("\n"), view.data()))
}

/// What a new task is added to.
enum TaskParent {
    Plan(TargetId),
    Task(Box<TargetRow>, Option<String>),
}

/// Where a new task goes. A title that nothing has becomes a new plan.
async fn place(call: &mut WorkCall<'_>, name: &str) -> Result<TaskParent, LeanError> {
    let (named, step) = parse(name);
    let row = match named {
        Named::Id(_) => call.named_target(name, None).await?,
        Named::Title(title) => match call.titled_target(title, Some(TargetKind::Plan)).await? {
            Some(plan) => plan,
            None => match call.titled_target(title, Some(TargetKind::Task)).await {
                Ok(Some(task)) => task,
                _ => return Ok(TaskParent::Plan(create_plan(call, title, &[]).await?)),
            },
        },
    };
    Ok(match row.id.kind {
        TargetKind::Plan => TaskParent::Plan(row.id),
        TargetKind::Task => TaskParent::Task(Box::new(row), step.map(str::to_owned)),
    })
}

pub(super) async fn create_plan(
    call: &mut WorkCall<'_>,
    title: &str,
    tags: &[&str],
) -> Result<TargetId, LeanError> {
    let title: String = title.chars().take(500).collect();
    let made =
        call.tool(WorkTool::TasksCreate, json!({"kind": "plan", "title": title, "tags": tags})).await?;
    Ok(made["id"].as_str().and_then(|id| id.parse().ok()).expect("the tool answers with an id"))
}

/// The plan of tasks that name none.
pub(super) async fn default_plan(call: &mut WorkCall<'_>) -> Result<TargetId, LeanError> {
    const FIND: &str = "SELECT target FROM targets WHERE ws = $1 AND deleted = 0 AND target < 1099511627776
        AND tags LIKE '%\"default\"%' ORDER BY target LIMIT 1";
    match call.tx.row(FIND, args![call.ws.id]).await? {
        Some(row) => Ok(TargetId::from_key(row.int(0)?)),
        None => create_plan(call, DEFAULT_PLAN, &[DEFAULT_TAG]).await,
    }
}

/// Adds the task as a step of a task, below a step if one is named.
async fn add_step(
    call: &mut WorkCall<'_>,
    args: &Args,
    task: TargetRow,
    step: Option<String>,
) -> Result<LeanAnswer, LeanError> {
    let parent = match step {
        Some(step) => Some(call.named_step(&task, &step).await?.fields.path),
        None => None,
    };
    let item =
        ListItem { title: args.title.clone(), items: args.steps.clone(), ..ListItem::titled(&args.title) };
    let arguments = json!({"task": task.id, "parent": parent, "steps": [step_input(&item)]});
    call.tool(WorkTool::TasksDecompose, arguments).await?;
    let row = call.load(task.id).await?;
    let view = TaskView::read(call, row).await?;
    let mut lines = vec![format!("added a step to {}", view.head(call.now))];
    lines.extend(view.step_lines());
    Ok(LeanAnswer::new(lines.join("\n"), view.data()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_or_multi_line_titles_are_split() {
        assert_eq!(split_title("Fix it"), ("Fix it".into(), None));
        assert_eq!(split_title("# Fix it\n\n- a\n- b"), ("Fix it".into(), Some("- a\n- b".into())));
        let long = "word ".repeat(100);
        let (title, rest) = split_title(&long);
        assert_eq!((title.chars().count(), rest.as_deref()), (TITLE_CHARS + 1, Some(long.trim())));
    }
}
