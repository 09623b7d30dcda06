//! Identifiers: patterns, counters and errors.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{bare_task, step, task};

on_both! {
    async fn ids_match_their_patterns_and_are_never_reused(client: &Client) {
        let created = task(client).await;
        assert_eq!(created["id"], "TASK-001");
        let ids: Vec<&str> = created["steps"].as_array().unwrap().iter().map(|s| s["step_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["STEP-00000001", "STEP-00000002", "STEP-00000003", "STEP-00000004"]);
        assert_eq!(created["event"]["event_id"], "evt_0000000000000002");
        client.ok("tasks_delete", json!({"task": "TASK-001"})).await;
        let next = client.ok("tasks_create", json!({"title": "Again", "parent": "PLAN-001", "steps": [step("a")]})).await;
        assert_eq!(next["id"], "TASK-002");
        assert_eq!(next["steps"][0]["step_id"], "STEP-00000005");
        for number in 3..=12 {
            client.ok("tasks_create", json!({"title": "More", "parent": "PLAN-001"})).await;
            assert!(number <= 12);
        }
        let found = client.ok("tasks_context", json!({"kind": "task"})).await;
        let ids: Vec<&str> = found["tasks"].as_array().unwrap().iter().map(|t| t["id"].as_str().unwrap()).collect();
        assert_eq!(ids.first(), Some(&"TASK-002"));
        assert_eq!(ids.last(), Some(&"TASK-012"));
        assert!(ids.is_sorted());
    }

    async fn malformed_id_is_invalid_and_missing_id_unknown(client: &Client) {
        task(client).await;
        for wrong in ["STEP-00000001", "TASK-1", "task-001", "", "TASK-001 ", "s:0", "CONFLICT-00"] {
            client.call("tasks_radar", json!({"task": wrong})).await.fails("INVALID_INPUT");
            client.call("tasks_note", json!({"task": wrong, "note": "x"})).await.fails("INVALID_INPUT");
        }
        for absent in ["TASK-002", "PLAN-002", "TASK-0001", "TASK-99999999999999999999"] {
            let answer = client.call("tasks_radar", json!({"task": absent})).await.fails("UNKNOWN_ID");
            assert_eq!(answer.suggested(), ["tasks_context"]);
            client.call("tasks_note", json!({"task": absent, "note": "x"})).await.fails("UNKNOWN_ID");
        }
        for (step, code) in [("STEP-00000099", "UNKNOWN_ID"), ("TASK-001", "INVALID_INPUT"), ("STEP-1", "INVALID_INPUT")] {
            client.call("tasks_done", json!({"task": "TASK-001", "step_id": step})).await.fails(code);
        }
        for (path, code) in [("s:7", "UNKNOWN_ID"), ("s:0.s:9", "UNKNOWN_ID"), ("s:01", "UNKNOWN_ID"), ("0", "INVALID_INPUT")] {
            client.call("tasks_done", json!({"task": "TASK-001", "path": path})).await.fails(code);
        }
        for (id, code) in [("evt_1", "INVALID_INPUT"), ("TASK-001", "INVALID_INPUT")] {
            client.call("tasks_delta", json!({"since": id})).await.fails(code);
        }
        for (id, code) in [
            ("CONFLICT-0123456789abcdef0123456789abcdef", "UNKNOWN_ID"),
            ("CONFLICT-0123456789ABCDEF0123456789abcdef", "INVALID_INPUT"),
            ("TASK-001", "INVALID_INPUT"),
        ] {
            client.call("memory_graph_conflict_show", json!({"conflict_id": id})).await.fails(code);
        }
    }

    async fn ids_of_another_workspace_are_unknown(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"workspace": "other", "title": "Theirs"})).await;
        client.call("tasks_note", json!({"workspace": "other", "task": "TASK-001", "note": "x"})).await.fails("UNKNOWN_ID");
        client.call("tasks_create", json!({"workspace": "other", "title": "t", "parent": "PLAN-002"})).await.fails("UNKNOWN_ID");
        let note = client.ok("memory_notes_commit", json!({"content": "mine"})).await;
        client.call("memory_show", json!({"workspace": "other", "seq": note["entry"]["seq"]})).await.fails("UNKNOWN_ID");
        // Each workspace has separate counters.
        let theirs = client.ok("tasks_create", json!({"workspace": "other", "title": "t", "parent": "PLAN-001"})).await;
        assert_eq!(theirs["id"], "TASK-001");
    }

    async fn step_id_and_path_must_agree(client: &Client) {
        task(client).await;
        let both = json!({"task": "TASK-001", "step_id": "STEP-00000002", "path": "s:0.s:0", "note": "x"});
        client.ok("tasks_note", both).await;
        let differing = json!({"task": "TASK-001", "step_id": "STEP-00000002", "path": "s:1", "note": "x"});
        client.call("tasks_note", differing).await.fails("INVALID_INPUT");
        // A step of another task is unknown.
        client.ok("tasks_create", json!({"title": "o", "parent": "PLAN-001", "steps": [step("x")]})).await;
        client.call("tasks_done", json!({"task": "TASK-001", "step_id": "STEP-00000005"})).await.fails("UNKNOWN_ID");
    }

    async fn paths_stay_stable_after_deletions(client: &Client) {
        bare_task(client).await;
        let steps = json!([step("a"), step("b"), step("c")]);
        client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": steps})).await;
        client.ok("tasks_delete", json!({"task": "TASK-001", "path": "s:2"})).await;
        client.ok("tasks_delete", json!({"task": "TASK-001", "path": "s:0"})).await;
        let more = client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": [step("d")]})).await;
        assert_eq!(more["steps"], json!([{"step_id": "STEP-00000004", "path": "s:3"}]));
        let left = client.ok("tasks_handoff", json!({"task": "TASK-001"})).await;
        let paths: Vec<&str> = left["remaining"].as_array().unwrap().iter().map(|s| s["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["s:1", "s:3"]);
    }
}
