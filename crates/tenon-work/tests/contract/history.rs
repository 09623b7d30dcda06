//! Undo and redo.

use serde_json::{Value, json};

use crate::client::{Client, on_both};
use crate::fixture::{close, confirmed, field, revision, step, step_of, task};

async fn tools(client: &Client) -> Vec<(String, bool)> {
    let history = client.ok("tasks_history", json!({"task": "TASK-001"})).await;
    let operations = history["operations"].as_array().unwrap();
    operations
        .iter()
        .map(|op| (op["tool"].as_str().unwrap().to_owned(), op["undone"] == json!(true)))
        .collect()
}

/// The state of TASK-001 without revisions and times.
async fn state(client: &Client) -> Value {
    let mut found =
        client.ok("tasks_resume", json!({"task": "TASK-001", "limit": 200, "max_chars": 100_000})).await;
    let mut task = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await["tasks"][0].take();
    for name in ["revision", "updated_at"] {
        task.as_object_mut().unwrap().remove(name);
        for step in found["steps"].as_array_mut().unwrap() {
            step.as_object_mut().unwrap().remove(name);
        }
    }
    json!([task, found["steps"]])
}

on_both! {
    async fn undo_and_redo_restore_every_state(client: &Client) {
        task(client).await;
        let mut states = vec![state(client).await];
        let writes = [
            ("tasks_edit", json!({"title": "x", "tags": ["t"]})),
            ("tasks_decompose", json!({"parent": "s:0", "steps": [{"title": "n", "success_criteria": ["c"], "steps": [step("m")]}]})),
            ("tasks_define", json!({"path": "s:1", "tests": ["other"]})),
            ("tasks_close_step", json!({"path": "s:1", "checkpoints": confirmed(&["criteria", "tests", "docs"])})),
            ("tasks_block", json!({"path": "s:0", "blocked": true, "reason": "r"})),
            ("tasks_patch", json!({"ops": [{"op": "set", "field": "contract_data", "value": {"k": 1}}]})),
            ("tasks_note", json!({"path": "s:0", "note": "n"})),
            ("tasks_delete", json!({"path": "s:0"})),
        ];
        for (tool, mut args) in writes.clone() {
            args["task"] = json!("TASK-001");
            client.ok(tool, args).await;
            states.push(state(client).await);
        }
        let mut expected: Vec<(String, bool)> = writes.iter().rev().map(|(tool, _)| ((*tool).to_owned(), false)).collect();
        assert_eq!(tools(client).await, expected);
        for round in (0..writes.len()).rev() {
            let undone = client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
            assert_eq!(undone["event"]["type"], "undone");
            assert_eq!(undone["event"]["payload"]["op_id"], undone["op_id"]);
            assert_eq!(state(client).await, states[round], "undo of {}", writes[round].0);
        }
        expected.iter_mut().for_each(|op| op.1 = true);
        assert_eq!(tools(client).await, expected);
        let rejected = client.call("tasks_undo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        assert_eq!(rejected.suggested(), ["tasks_history"]);
        for round in 0..writes.len() {
            client.ok("tasks_redo", json!({"task": "TASK-001"})).await;
            assert_eq!(state(client).await, states[round + 1], "redo of {}", writes[round].0);
        }
        client.call("tasks_redo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        // Every write, undo and redo incremented the revision.
        assert_eq!(revision(client, "TASK-001").await, 24);
    }

    async fn undo_does_not_overwrite_newer_changes(client: &Client) {
        task(client).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "status": "active"})).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "status": "todo"})).await;
        // A claim is not an operation, but it changes the status that the undo would restore.
        client.ok("tasks_next", json!({"claim": true, "agent": "a"})).await;
        let rejected = client.call("tasks_undo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        assert_eq!((rejected.error()["expected"].as_str(), rejected.error()["actual"].as_str()), (Some("todo"), Some("active")));
        assert_eq!(field(client, "TASK-001", "status").await, "active");
    }

    async fn redo_after_a_newer_change_is_rejected(client: &Client) {
        task(client).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "title": "a"})).await;
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "n"})).await;
        let rejected = client.call("tasks_redo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        assert!(rejected.error()["message"].as_str().unwrap().contains("changed after the undo"));
        // The later operation can be undone and redone; the older one cannot be redone.
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        client.ok("tasks_redo", json!({"task": "TASK-001"})).await;
        client.call("tasks_redo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        assert_eq!(field(client, "TASK-001", "title").await, "Build it");
    }

    async fn history_is_per_task(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"title": "other", "parent": "PLAN-001"})).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "title": "a"})).await;
        client.ok("tasks_edit", json!({"task": "TASK-002", "title": "b"})).await;
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        assert_eq!(field(client, "TASK-001", "title").await, "Build it");
        assert_eq!(field(client, "TASK-002", "title").await, "b");
        client.call("tasks_undo", json!({"task": "PLAN-001"})).await.fails("CONFLICT");
    }

    async fn undo_of_a_task_deletion_requires_the_plan(client: &Client) {
        task(client).await;
        client.ok("tasks_delete", json!({"task": "TASK-001"})).await;
        client.ok("tasks_delete", json!({"task": "PLAN-001"})).await;
        client.call("tasks_undo", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        client.ok("tasks_undo", json!({"task": "PLAN-001"})).await;
        client.call("tasks_radar", json!({"task": "TASK-001"})).await.fails("UNKNOWN_ID");
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        client.ok("tasks_radar", json!({"task": "TASK-001"})).await;
        client.ok("tasks_redo", json!({"task": "TASK-001"})).await;
        client.call("tasks_radar", json!({"task": "TASK-001"})).await.fails("UNKNOWN_ID");
    }

    async fn claimed_task_stays_active_after_undo(client: &Client) {
        task(client).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "n"})).await;
        client.ok("tasks_next", json!({"claim": true, "agent": "a", "ttl_s": 60})).await;
        for tool in ["tasks_undo", "tasks_redo", "tasks_undo"] {
            client.ok(tool, json!({"task": "TASK-001"})).await;
            assert_eq!(field(client, "TASK-001", "status").await, "active", "{tool}");
        }
        client.ok("tasks_redo", json!({"task": "TASK-001"})).await;
        // An expired lease has no effect.
        client.clock_control.advance(std::time::Duration::from_secs(61));
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        assert_eq!(field(client, "TASK-001", "status").await, "todo");
    }

    async fn undone_note_stays_in_the_document(client: &Client) {
        task(client).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "kept"})).await;
        let undone = client.call("tasks_undo", json!({"task": "TASK-001"})).await;
        assert!(undone.warns("entries are never removed"));
        assert_eq!(step_of(client, "TASK-001", "s:1").await["notes"], 0);
        let shown = client.ok("memory_show", json!({"target": "TASK-001"})).await;
        assert_eq!(shown["entries"].as_array().unwrap().len(), 1);
    }

    async fn history_pages_start_with_the_newest(client: &Client) {
        task(client).await;
        for number in 0..7 {
            client.ok("tasks_edit", json!({"task": "TASK-001", "title": format!("t{number}")})).await;
        }
        close(client, "TASK-001", "s:1").await;
        let mut revisions = Vec::new();
        let mut cursor = json!(null);
        loop {
            let page = client.ok("tasks_history", json!({"task": "TASK-001", "limit": 3, "cursor": cursor})).await;
            revisions.extend(page["operations"].as_array().unwrap().iter().map(|op| op["revision"].as_i64().unwrap()));
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(revisions, (1..=8).rev().collect::<Vec<_>>());
    }
}
