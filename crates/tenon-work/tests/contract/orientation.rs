//! Focus, radar, handoff and resume.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{close, task};

on_both! {
    async fn calls_without_a_task_use_the_focus(client: &Client) {
        task(client).await;
        assert_eq!(client.ok("tasks_focus_get", json!({})).await["focus"], json!(null));
        let rejected = client.call("tasks_note", json!({"note": "n"})).await.fails("INVALID_INPUT");
        assert_eq!(rejected.suggested(), ["tasks_context"]);
        let set = client.ok("tasks_focus_set", json!({"task": "TASK-001"})).await;
        assert_eq!((set["focus"].clone(), set["previous"].clone()), (json!("TASK-001"), json!(null)));
        client.ok("tasks_note", json!({"note": "n"})).await;
        assert_eq!(client.ok("tasks_radar", json!({})).await["target"]["id"], "TASK-001");
        let set = client.ok("tasks_focus_set", json!({"task": "PLAN-001"})).await;
        assert_eq!(set["previous"], "TASK-001");
        let cleared = client.ok("tasks_focus_clear", json!({})).await;
        assert_eq!((cleared["cleared"].clone(), cleared["previous"].clone()), (json!(true), json!("PLAN-001")));
        assert_eq!(client.ok("tasks_focus_clear", json!({})).await["cleared"], false);
        client.call("tasks_focus_set", json!({"task": "TASK-009"})).await.fails("UNKNOWN_ID");
        // The focus is not part of a task: no event, no revision.
        let delta = client.ok("tasks_delta", json!({})).await;
        assert_eq!(delta["events"].as_array().unwrap().len(), 3);
    }

    async fn radar_has_now_why_verify_next_and_blockers(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"title": "First", "parent": "PLAN-001"})).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "depends_on": ["TASK-002"]})).await;
        let radar = client.ok("tasks_radar", json!({"task": "TASK-001"})).await;
        assert_eq!(radar["requested"], "TASK-001");
        assert_eq!(radar["focus"], json!(null));
        assert_eq!(radar["target"], json!({"id": "TASK-001", "kind": "task", "title": "Build it", "status": "todo", "revision": 1}));
        assert_eq!(radar["reasoning_ref"], json!({"branch": "task/TASK-001", "notes_doc": "notes",
            "graph_doc": "TASK-001-graph", "trace_doc": "TASK-001-trace"}));
        assert_eq!(radar["radar"], json!({
            "now": "s:0.s:0 Fetch",
            "why": "It builds on a clean machine",
            "verify": [{"checkpoint": "criteria", "text": "Fetch worked"}, {"checkpoint": "tests", "text": null}],
            "next": [
                {"step_id": "STEP-00000001", "path": "s:0", "title": "Prepare"},
                {"step_id": "STEP-00000003", "path": "s:0.s:1", "title": "Unpack"},
                {"step_id": "STEP-00000004", "path": "s:1", "title": "Compile"},
            ],
            "blockers": [{"kind": "dependency", "id": "TASK-002", "text": "First"}],
        }));
        assert_eq!(radar["steps"], json!({"total": 4, "open": 4, "completed": 0, "missing_criteria": 4,
            "missing_tests": 4, "first_open": {"step_id": "STEP-00000002", "path": "s:0.s:0"}}));
        for path in ["s:0.s:0", "s:0.s:1", "s:0", "s:1"] {
            close(client, "TASK-001", path).await;
        }
        let radar = client.ok("tasks_radar", json!({"task": "TASK-001"})).await;
        assert_eq!(radar["radar"]["now"], "done");
        assert_eq!(radar["steps"]["open"], 0);
    }

    async fn without_task_and_focus_a_suggestion_is_returned(client: &Client) {
        for tool in ["tasks_radar", "tasks_handoff", "tasks_resume"] {
            let answer = client.call(tool, json!({})).await;
            assert!(answer.warns("no focus"));
            assert_eq!(answer.suggested(), ["tasks_context"]);
            assert_eq!(answer.envelope["result"]["target"], json!(null));
        }
        let history = client.call("tasks_history", json!({})).await;
        assert!(history.warns("no focus"));
        assert_eq!(history.suggested(), ["tasks_context"]);
        let history = history.ok();
        assert_eq!((&history["task"], &history["operations"]), (&json!(null), &json!([])));
    }

    async fn handoff_lists_done_remaining_and_risks(client: &Client) {
        task(client).await;
        close(client, "TASK-001", "s:0.s:1").await;
        client.ok("tasks_block", json!({"task": "TASK-001", "path": "s:1", "blocked": true, "reason": "no compiler"})).await;
        let handoff = client.ok("tasks_handoff", json!({"task": "TASK-001"})).await;
        let paths = |list: &str| -> Vec<String> {
            handoff[list].as_array().unwrap().iter().map(|s| s["path"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(paths("done"), ["s:0.s:1"]);
        assert_eq!(paths("remaining"), ["s:0", "s:0.s:0", "s:1"]);
        assert_eq!(handoff["remaining"][2]["missing"], json!(["criteria", "tests", "docs"]));
        assert_eq!(handoff["risks"], json!([{"kind": "step", "id": "STEP-00000004", "text": "no compiler"}]));
        assert_eq!(handoff["radar"]["now"], "s:0.s:0 Fetch");
        assert!(handoff["reasoning_ref"].is_object());
    }

    async fn resume_has_steps_notes_cards_and_events(client: &Client) {
        task(client).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "first"})).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "second"})).await;
        client.ok("memory_think_card", json!({"target": "TASK-001", "card": {"type": "decision", "title": "Use make"}})).await;
        close(client, "TASK-001", "s:1").await;
        let resumed = client.ok("tasks_resume", json!({"task": "TASK-001"})).await;
        let column = |list: &str, name: &str| -> Vec<String> {
            resumed[list].as_array().unwrap().iter().map(|item| item[name].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(column("steps", "path"), ["s:0", "s:0.s:0", "s:0.s:1", "s:1"]);
        assert_eq!(column("notes", "content"), ["second", "first"]);
        assert_eq!(column("cards", "title"), ["Use make"]);
        assert_eq!(column("events", "type"), ["step_done", "step_verified", "note_added", "note_added", "task_created"]);
        assert_eq!(resumed["radar"]["why"], "It builds on a clean machine");
        assert_eq!(resumed["counts"]["completed"], 1);
    }
}
