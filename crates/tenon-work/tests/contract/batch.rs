//! Batches run in one transaction.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{confirmed, field, revision, task};

on_both! {
    async fn batch_runs_in_one_transaction(client: &Client) {
        let operations = json!([
            {"tool": "tasks_create", "args": {"title": "Plan"}},
            {"tool": "tasks_create", "args": {"title": "Task", "parent": "PLAN-001", "steps": [{"title": "s", "success_criteria": ["c"]}]}},
            {"tool": "tasks_focus_set", "args": {"task": "TASK-001"}},
            {"tool": "tasks_close_step", "args": {"path": "s:0", "checkpoints": confirmed(&["criteria", "tests"])}},
            {"tool": "tasks_radar", "args": {"max_chars": 2000}},
            {"tool": "tasks_next"},
        ]);
        let done = client.ok("tasks_batch", json!({"operations": operations})).await;
        let results = done["results"].as_array().unwrap();
        assert_eq!(results.len(), 6);
        assert_eq!(results[1]["id"], "TASK-001");
        assert_eq!(results[3]["step"]["completed"], true);
        assert_eq!(results[4]["radar"]["now"], "done");
        assert!(results.iter().all(|result| result["workspace"] == "w"));
        assert_eq!(field(client, "TASK-001", "status").await, "done");
    }

    async fn failed_batch_names_the_operation_and_rolls_back(client: &Client) {
        task(client).await;
        let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
        for (bad, code) in [
            (json!({"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:1"}}), "CHECKPOINTS_NOT_CONFIRMED"),
            (json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n", "expected_revision": 0}}), "REVISION_MISMATCH"),
            (json!({"tool": "tasks_note", "args": {"task": "TASK-001"}}), "INVALID_INPUT"),
            (json!({"tool": "tasks_nope", "args": {}}), "UNKNOWN_TOOL"),
            (json!({"tool": "memory_init", "args": {}}), "UNKNOWN_TOOL"),
            (json!({"tool": "tasks_batch", "args": {"operations": [note]}}), "INVALID_INPUT"),
            (json!({"tool": "tasks_note", "args": {"workspace": "other", "task": "TASK-001", "note": "n"}}), "INVALID_INPUT"),
        ] {
            let rejected = client.call("tasks_batch", json!({"operations": [note, note, bad]})).await.fails(code);
            assert_eq!(rejected.error()["index"], 2);
        }
        assert_eq!(revision(client, "TASK-001").await, 0);
        let delta = client.ok("tasks_delta", json!({})).await;
        assert_eq!(delta["events"].as_array().unwrap().len(), 2);
        let found = client.ok("memory_search", json!({"query": "n"})).await;
        assert_eq!(found["hits"], json!([]));
    }

    async fn failed_batch_reports_no_rolled_back_state(client: &Client) {
        task(client).await;
        let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
        let edit = |task: &str| json!({"tool": "tasks_edit", "args": {"task": task, "title": "x", "expected_revision": 7}});
        // No operation came before, so the reported state is valid.
        let rejected = client.call("tasks_batch", json!({"operations": [edit("TASK-001"), note]})).await.fails("REVISION_MISMATCH");
        assert_eq!((rejected.error()["actual"].clone(), rejected.envelope["context"]["current"]["revision"].clone()), (json!(0), json!(0)));
        assert_eq!(rejected.suggested(), ["tasks_context", "tasks_edit"]);
        let rejected = client.call("tasks_batch", json!({"operations": [note, edit("TASK-001")]})).await.fails("REVISION_MISMATCH");
        assert_eq!((&rejected.error()["expected"], &rejected.error()["index"]), (&json!(7), &json!(1)));
        assert_eq!((&rejected.error()["actual"], &rejected.envelope["context"]), (&json!(null), &json!({})));
        assert!(rejected.error()["recovery"].as_str().unwrap().contains("batch rolled back"), "{}", rejected.text);
        assert_eq!(rejected.suggested(), ["tasks_context"]);
        // A task that the batch created no longer exists after the rollback.
        let make = json!({"tool": "tasks_create", "args": {"title": "t", "parent": "PLAN-001"}});
        let rejected = client.call("tasks_batch", json!({"operations": [make, edit("TASK-002")]})).await.fails("REVISION_MISMATCH");
        assert_eq!((&rejected.envelope["context"], rejected.suggested().len()), (&json!({}), 0));
        let found = client.call("tasks_context", json!({"ids": ["TASK-002"]})).await;
        assert!(found.warns("TASK-002 does not exist"));
    }

    async fn batch_checks_expected_revision_and_target_first(client: &Client) {
        task(client).await;
        let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
        client.call("tasks_batch", json!({"operations": [note, note], "expected_revision": 5})).await.fails("REVISION_MISMATCH");
        client.ok("tasks_batch", json!({"operations": [note, note], "expected_revision": 0})).await;
        client.call("tasks_batch", json!({"operations": [note], "strict_targeting": true})).await.fails("STRICT_TARGETING_REQUIRES_EXPECTED_TARGET_ID");
        assert_eq!(revision(client, "TASK-001").await, 2);
    }

    async fn batch_takes_at_most_a_thousand_operations(client: &Client) {
        task(client).await;
        let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
        let many = vec![note.clone(); 1001];
        client.call("tasks_batch", json!({"operations": many})).await.fails("INVALID_INPUT");
        let done = client.call_quietly("tasks_batch", json!({"operations": vec![note; 300]})).await;
        assert!(done.warns("event payloads were left out"));
        assert_eq!(revision(client, "TASK-001").await, 300);
    }
}
