//! Tasks: a board by status, and one task with its steps, checkpoints, notes and events.

use futures::FutureExt;
use serde_json::{Value, json};

use super::activity::seconds_since;
use super::{Page, PageContext, PageData};
use crate::action::ActionOutcome;
use crate::form::{Fields, encoded};
use crate::tool_answer::{self, ToolFailure};

pub(super) const PAGE: Page = Page {
    owner: "builtin-tenon-tasks",
    id: "tasks",
    path: "/tasks",
    title: "Tasks",
    template: "tasks.html",
    topics: "work",
    load: |context| load(context).boxed(),
    act: Some(|context| act(context).boxed()),
};

/// Tasks per column.
const PER_COLUMN: usize = 15;

/// Plans that are listed.
const PLANS: usize = 20;

/// The most characters of an answer.
const MAX_CHARS: usize = 100_000;

/// The name under which the console claims tasks.
const AGENT: &str = "console";

async fn load(context: PageContext) -> PageData {
    match context.query.text("task") {
        Some(id) => task(&context, id).await,
        None => board(&context).await,
    }
}

async fn board(context: &PageContext) -> PageData {
    let text = context.query.text("text");
    let column = async |status: &str, title: &str| {
        let mut arguments =
            json!({"kind": "task", "status": status, "limit": PER_COLUMN, "max_chars": MAX_CHARS});
        if let Some(text) = text {
            arguments["text"] = json!(text);
        }
        if let Some(cursor) = context.query.text(&format!("{status}_cursor")) {
            arguments["cursor"] = json!(cursor);
        }
        match tool_answer::read_work(&context.access, "tasks_context", arguments).await {
            Ok(result) => json!({
                "status": status, "title": title, "tasks": result["tasks"],
                "total": result["counts"]["by_status"][status],
                "next": next_page(&result, status, text),
            }),
            Err(failure) => json!({"status": status, "title": title, "failure": failure.message}),
        }
    };
    let (todo, active, done, plans) = tokio::join!(
        column("todo", "To do"),
        column("active", "Active"),
        column("done", "Done"),
        tool_answer::read_work(&context.access, "tasks_context", json!({"kind": "plan", "limit": PLANS})),
    );
    let (plans, plan_count, failure) = match plans {
        Ok(mut result) => (result["plans"].take(), result["counts"]["plans"].clone(), None),
        Err(failure) => (json!([]), Value::Null, Some(failure.message)),
    };
    let columns = [todo, active, done];
    PageData::new(json!({
        "columns": columns, "plans": plans, "plan_count": plan_count, "failure": failure, "text": text,
    }))
}

/// The address of the next tasks of a column.
fn next_page(result: &Value, status: &str, text: Option<&str>) -> Option<String> {
    let cursor = result["pagination"]["next_cursor"].as_str()?;
    let filter = text.map(|text| format!("text={}&", encoded(text))).unwrap_or_default();
    Some(format!("?{filter}{status}_cursor={}", encoded(cursor)))
}

async fn task(context: &PageContext, id: &str) -> PageData {
    let access = &context.access;
    let summary = tool_answer::read_work(access, "tasks_context", json!({"ids": [id], "limit": 1})).await;
    let summary = match summary {
        Ok(result) => match result["tasks"].get(0).or_else(|| result["plans"].get(0)) {
            Some(found) => Ok(found.clone()),
            None => Err(format!("There is no task `{id}`.")),
        },
        Err(failure) => Err(failure.message),
    };
    let summary = match summary {
        Ok(summary) => summary,
        Err(failure) => return PageData::new(json!({"one": true, "id": id, "failure": failure})),
    };
    let arguments = json!({"task": id, "limit": 100, "max_chars": MAX_CHARS});
    let mut resume = match tool_answer::read_work(access, "tasks_resume", arguments).await {
        Ok(resume) => resume,
        Err(failure) => {
            return PageData::new(
                json!({"one": true, "id": id, "task": summary, "failure": failure.message}),
            );
        }
    };
    let now = access.workspace().clock().unix_millis();
    if let Some(steps) = resume["steps"].as_array_mut() {
        for step in steps {
            let depth = step["path"].as_str().unwrap_or_default().matches('.').count();
            step["depth"] = json!(depth);
        }
    }
    for list in ["events", "notes"] {
        for one in resume[list].as_array_mut().into_iter().flatten() {
            one["ago"] = json!(one["ts"].as_str().and_then(|time| seconds_since(time, now)));
            one["words"] = json!(one["type"].as_str().unwrap_or_default().replace('_', " "));
        }
    }
    let title = summary["title"].as_str().map(str::to_owned);
    let props = json!({
        "one": true, "id": id, "task": summary, "radar": resume["radar"], "steps": resume["steps"],
        "notes": resume["notes"], "events": resume["events"], "truncated": resume["truncated"],
        "more": resume["pagination"]["has_more"],
    });
    PageData { props, slots: Vec::new(), title }
}

async fn act(context: PageContext) -> ActionOutcome {
    let form = &context.query;
    let task = form.text("task").unwrap_or_default();
    let page = match task.is_empty() {
        true => "/tasks".to_owned(),
        false => format!("/tasks?task={}", encoded(task)),
    };
    let call = async |tool: &str, arguments: Value, done: &str| {
        let called = tool_answer::work(&context.access, tool, with_revision(arguments, form)).await;
        ActionOutcome::of_call(called, done, &page)
    };
    let text = |name: &str| form.text(name).unwrap_or_default();
    match form.text("action") {
        Some("add") => {
            // A task belongs to a plan; without one, this is a plan.
            let kind = if form.text("parent").is_some() { "task" } else { "plan" };
            let mut arguments = json!({"kind": kind, "title": text("title")});
            for name in ["description", "parent", "priority"] {
                if let Some(value) = form.text(name) {
                    arguments[name] = json!(value);
                }
            }
            let steps: Vec<Value> = text("steps")
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .map(|line| json!({"title": line, "success_criteria": [line]}))
                .collect();
            if !steps.is_empty() {
                arguments["steps"] = json!(steps);
            }
            match form.text("title") {
                None => ActionOutcome::failed("A task or plan needs a title.", "/tasks"),
                Some(_) => added(tool_answer::work(&context.access, "tasks_create", arguments).await),
            }
        }
        Some("edit") => {
            let mut arguments = json!({"task": task});
            for name in ["title", "priority", "status"] {
                if let Some(value) = form.text(name) {
                    arguments[name] = json!(value);
                }
            }
            // Unlike the others, a description may be emptied.
            if form.has("description") {
                arguments["description"] = json!(text("description"));
            }
            call("tasks_edit", arguments, "Saved.").await
        }
        Some("note") => {
            let mut arguments = json!({"task": task, "note": text("note")});
            if let Some(step) = form.text("step_id") {
                arguments["step_id"] = json!(step);
            }
            call("tasks_note", arguments, "The note was added.").await
        }
        Some("verify") => {
            let checkpoint = text("checkpoint").to_owned();
            let arguments = json!({"task": task, "step_id": text("step_id"), "checkpoints": {checkpoint: {"confirmed": true}}});
            call("tasks_verify", arguments, "The checkpoint is confirmed.").await
        }
        Some("close") => {
            let arguments = json!({"task": task, "step_id": text("step_id")});
            call("tasks_done", arguments, "The step is closed.").await
        }
        Some("claim") => {
            let called =
                tool_answer::work(&context.access, "tasks_next", json!({"claim": true, "agent": AGENT}))
                    .await;
            match called {
                Ok(result) => match result["task"]["id"].as_str() {
                    Some(id) => {
                        let page = format!("/tasks?task={}", encoded(id));
                        ActionOutcome::done(format!("{id} is claimed by the console."), &page)
                    }
                    None => ActionOutcome::failed("No task is ready to be claimed.", "/tasks"),
                },
                Err(failure) => ActionOutcome::failed(failure.message, "/tasks"),
            }
        }
        Some("release") => {
            call("tasks_next", json!({"release": task, "agent": AGENT}), "The claim is released.").await
        }
        _ => ActionOutcome::failed("There is no such action.", &page),
    }
}

fn added(called: Result<Value, ToolFailure>) -> ActionOutcome {
    match called {
        Ok(result) => {
            let id = result["id"].as_str().unwrap_or_default().to_owned();
            let page = format!("/tasks?task={}", encoded(&id));
            ActionOutcome::done(format!("{id} was added."), &page)
        }
        Err(failure) => ActionOutcome::failed(failure.message, "/tasks"),
    }
}

/// The revision that the form was made for: a newer one is not overwritten.
fn with_revision(mut arguments: Value, form: &Fields) -> Value {
    if let Some(revision) = form.number::<u64>("expected_revision") {
        arguments["expected_revision"] = json!(revision);
    }
    arguments
}
