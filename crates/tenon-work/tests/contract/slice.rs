//! A thin slice from end to end.

use serde_json::json;

use crate::client::{Client, on_both};

on_both! {
    async fn create_note_radar_delta(client: &Client) {
        let plan = client.ok("tasks_create", json!({"title": "Ship"})).await;
        assert_eq!(plan["id"], "PLAN-001");
        let task = client.ok("tasks_create", json!({"title": "Build", "parent": "PLAN-001", "contract": "It builds",
            "steps": [{"title": "a", "success_criteria": ["c"], "steps": [{"title": "b", "success_criteria": ["d"]}]}]})).await;
        assert_eq!(task["id"], "TASK-001");
        assert_eq!(task["steps"], json!([{"path": "s:0", "step_id": "STEP-00000001"}, {"path": "s:0.s:0", "step_id": "STEP-00000002"}]));
        let note = client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:0.s:0", "note": "hello"})).await;
        assert_eq!(note["revision"], 1);
        assert_eq!(note["step"]["revision"], 1);
        let radar = client.ok("tasks_radar", json!({"task": "TASK-001"})).await;
        assert_eq!(radar["radar"]["now"], "s:0.s:0 b");
        assert_eq!(radar["target"]["status"], "active");
        let delta = client.ok("tasks_delta", json!({"since": "evt_0000000000000001"})).await;
        assert_eq!(delta["events"].as_array().unwrap().len(), 2);
    }
}
