//! A small plan that most tests start with.

use serde_json::{Value, json};

use crate::client::Client;

/// `PLAN-001` with `TASK-001`, which has the steps `s:0` (with `s:0.s:0` and `s:0.s:1`) and `s:1`.
pub async fn task(client: &Client) -> Value {
    client.ok("tasks_create", json!({"title": "Ship it"})).await;
    client
        .ok(
            "tasks_create",
            json!({
                "title": "Build it",
                "parent": "PLAN-001",
                "description": "The whole of it",
                "contract": "It builds on a clean machine",
                "priority": "high",
                "tags": ["Build", "ci"],
                "steps": [
                    {"title": "Prepare", "success_criteria": ["all is there"], "steps": [
                        step("Fetch"), step("Unpack"),
                    ]},
                    {"title": "Compile", "success_criteria": ["no errors", "no warnings"], "tests": ["make check"],
                        "checkpoints": ["docs"]},
                ],
            }),
        )
        .await
}

/// A step with one criterion.
pub fn step(title: &str) -> Value {
    json!({"title": title, "success_criteria": [format!("{title} worked")]})
}

/// A plan and a task without steps.
pub async fn bare_task(client: &Client) -> Value {
    client.ok("tasks_create", json!({"title": "Plan"})).await;
    client.ok("tasks_create", json!({"title": "Task", "parent": "PLAN-001"})).await
}

pub fn confirmed(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!({"confirmed": true})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Confirms criteria and tests of a step and closes it.
pub async fn close(client: &Client, task: &str, path: &str) -> Value {
    let checkpoints = confirmed(&["criteria", "tests", "docs"]);
    client.ok("tasks_close_step", json!({"task": task, "path": path, "checkpoints": checkpoints})).await
}

/// The revision of a plan or task.
pub async fn revision(client: &Client, id: &str) -> i64 {
    let found = client.ok("tasks_context", json!({"ids": [id]})).await;
    let list = if id.starts_with("PLAN") { "plans" } else { "tasks" };
    found[list][0]["revision"].as_i64().unwrap()
}

/// A field of a plan or task.
pub async fn field(client: &Client, id: &str, name: &str) -> Value {
    let found = client.ok("tasks_context", json!({"ids": [id]})).await;
    let list = if id.starts_with("PLAN") { "plans" } else { "tasks" };
    found[list][0][name].clone()
}

/// A step in the answer of tasks_resume.
pub async fn step_of(client: &Client, task: &str, path: &str) -> Value {
    let found = client.ok("tasks_resume", json!({"task": task, "limit": 200, "max_chars": 100_000})).await;
    let steps = found["steps"].as_array().unwrap();
    steps.iter().find(|step| step["path"] == path).unwrap_or_else(|| panic!("no step {path}")).clone()
}
