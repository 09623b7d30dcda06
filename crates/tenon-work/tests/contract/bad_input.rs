//! Invalid input gets a typed error and writes nothing.

use serde_json::{Value, json};

use crate::client::{Client, on_both};
use crate::fixture::{bare_task, field, revision, step, step_of, task};

/// Nested steps.
fn chain(depth: usize) -> Value {
    (1..depth).fold(step("leaf"), |inner, _| {
        let mut outer = step("branch");
        outer["steps"] = json!([inner]);
        outer
    })
}

on_both! {
    async fn arguments_that_violate_the_schema_are_rejected(client: &Client) {
        task(client).await;
        for (tool, args) in [
            ("tasks_create", json!({})),
            ("tasks_create", json!({"title": 5})),
            ("tasks_create", json!({"title": "t", "colour": "red"})),
            ("tasks_create", json!({"title": "t", "colour": null})),
            ("tasks_create", json!({"title": "t", "kind": "epic"})),
            ("tasks_create", json!({"title": "t", "priority": "urgent"})),
            ("tasks_create", json!({"title": "t", "steps": [{"title": "s"}]})),
            ("tasks_create", json!({"title": "t", "steps": [{"title": "s", "success_criteria": []}]})),
            ("tasks_create", json!({"title": "t", "steps": [{"title": "s", "success_criteria": ["c"], "steps": [{"title": "x", "success_criteria": ["c"], "bogus": 1}]}]})),
            ("tasks_create", json!({"title": "t", "steps": [{"title": "s", "success_criteria": ["c"], "checkpoints": ["tests"]}]})),
            ("tasks_note", json!({"task": "TASK-001", "note": ["n"]})),
            ("tasks_context", json!({"limit": "50"})),
            ("tasks_context", json!({"limit": 1.5})),
            ("tasks_context", json!({"max_chars": true})),
            ("tasks_context", json!({"text": " ?! "})),
            ("memory_search", json!({"query": ""})),
            ("memory_search", json!({"query": "x".repeat(1001)})),
            ("memory_search", json!({"query": "x", "in": ["everything"]})),
            ("memory_graph_query", json!({"text": "…"})),
            ("memory_think_template", json!({"type": "thought"})),
            ("memory_think_card", json!({"card": 5})),
            ("memory_show", json!({"offset": 5})),
            ("memory_show", json!({"target": "TASK-001", "branch": "main"})),
            ("memory_show", json!({"target": "TASK-001", "seq": 1})),
            ("memory_notes_commit", json!({"content": "  "})),
            ("memory_notes_commit", json!({"content": "x", "meta": {"m": "x".repeat(5000)}})),
            ("tasks_note", json!({"task": "TASK-001", "note": " \n"})),
            ("tasks_create", json!({"title": " "})),
            ("tasks_decompose", json!({"task": "TASK-001", "steps": []})),
        ] {
            let answer = client.call(tool, args.clone()).await;
            assert_eq!(answer.code(), "INVALID_INPUT", "{tool} {args}");
        }
        let delta = client.ok("tasks_delta", json!({})).await;
        assert_eq!(delta["events"].as_array().unwrap().len(), 2);
    }

    async fn null_means_absent(client: &Client) {
        task(client).await;
        client.ok("tasks_radar", json!({"task": "TASK-001", "max_chars": null, "cursor": null, "workspace": null})).await;
        client.ok("tasks_create", json!({"title": "t", "parent": null, "steps": null, "tags": null})).await;
        // At every depth.
        let mut leaf = step("leaf");
        leaf["tests"] = json!(null);
        leaf["steps"] = json!(null);
        let mut branch = step("branch");
        branch["steps"] = json!([leaf]);
        let mut root = step("root");
        root["steps"] = json!([branch]);
        client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": [root]})).await;
        let checkpoints = json!({"criteria": {"confirmed": true}, "tests": null});
        client.ok("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": checkpoints})).await;
        assert_eq!(step_of(client, "TASK-001", "s:1").await["confirmed"], json!(["criteria"]));
        // A required null is still missing, and unknown names are rejected even with null.
        let unset = json!({"criteria": {"confirmed": null}});
        client.call("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": unset})).await.fails("INVALID_INPUT");
        client.call("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": {"speed": null}})).await.fails("INVALID_INPUT");
        let mut bad = step("root");
        bad["steps"] = json!([step("fine"), {"title": 5, "success_criteria": ["c"]}]);
        let rejected = client.call("tasks_decompose", json!({"task": "TASK-001", "steps": [bad]})).await.fails("INVALID_INPUT");
        assert!(rejected.error()["message"].as_str().unwrap().contains("/steps/0/steps/1/title"), "{}", rejected.text);
        // Free data keeps its own.
        client.ok("tasks_edit", json!({"task": "TASK-001", "title": null, "contract_data": {"kept": null}})).await;
        assert_eq!(field(client, "TASK-001", "contract_data").await, json!({"kept": null}));
    }

    async fn oversized_input_is_rejected(client: &Client) {
        bare_task(client).await;
        let megabytes = "x".repeat(10 * 1024 * 1024);
        for (tool, args) in [
            ("tasks_note", json!({"task": "TASK-001", "note": megabytes})),
            ("memory_notes_commit", json!({"content": megabytes})),
            ("tasks_edit", json!({"task": "TASK-001", "description": megabytes})),
            ("tasks_edit", json!({"task": "TASK-001", "contract_data": {"x": megabytes}})),
            ("memory_graph_apply", json!({"ops": [{"op": "node_upsert", "id": "a", "type": "t", "text": megabytes}]})),
            ("tasks_edit", json!({"task": "TASK-001", "title": "ä".repeat(501)})),
            ("tasks_decompose", json!({"task": "TASK-001", "steps": vec![step("s"); 100_000]})),
            ("tasks_decompose", json!({"task": "TASK-001", "steps": [chain(17)]})),
            ("memory_graph_apply", json!({"ops": vec![json!({"op": "node_upsert", "id": "a", "type": "t"}); 1001]})),
        ] {
            let rejected = client.call(tool, args).await.fails("INVALID_INPUT");
            assert!(rejected.error()["recovery"].is_string(), "{}", rejected.text);
        }
        assert_eq!(revision(client, "TASK-001").await, 0);
        client.ok("tasks_edit", json!({"task": "TASK-001", "title": "ä".repeat(500), "description": "x".repeat(256 * 1024)})).await;
        client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": [chain(16)]})).await;
        let full = client.call_quietly("tasks_decompose", json!({"task": "TASK-001", "steps": vec![step("s"); 1000]})).await;
        assert_eq!(full.ok()["steps"].as_array().unwrap().len(), 1000);
    }

    async fn task_with_ten_thousand_steps_takes_no_more(client: &Client) {
        bare_task(client).await;
        for _ in 0..10 {
            let args = json!({"task": "TASK-001", "steps": vec![step("s"); 1000]});
            client.call_quietly("tasks_decompose", args).await.ok();
        }
        let before = revision(client, "TASK-001").await;
        let more = json!({"task": "TASK-001", "steps": [step("s")]});
        let rejected = client.call("tasks_decompose", more.clone()).await.fails("INVALID_INPUT");
        // The hint must not suggest to split the call.
        assert!(rejected.error()["recovery"].as_str().unwrap().contains("another task"), "{}", rejected.text);
        let below = json!({"task": "TASK-001", "parent": "s:0", "steps": [step("s")]});
        client.call("tasks_decompose", below).await.fails("INVALID_INPUT");
        assert_eq!(revision(client, "TASK-001").await, before);
        client.ok("tasks_delete", json!({"task": "TASK-001", "path": "s:7"})).await;
        client.ok("tasks_decompose", more).await;
    }

    async fn invalid_graph_ids_are_rejected(client: &Client) {
        for id in ["a|b", "a\nb", "a\u{7f}b", "", "   ", &"x".repeat(257), "a\u{0}b"] {
            let ops = json!([{"op": "node_upsert", "id": "fine", "type": "t"}, {"op": "node_upsert", "id": id, "type": "t"}]);
            let rejected = client.call("memory_graph_apply", json!({"ops": ops})).await.fails("INVALID_INPUT");
            if !id.contains('\0') {
                assert_eq!(rejected.error()["index"], 1, "{id:?}");
            }
        }
        let edge = |rel: &str| json!({"op": "edge_upsert", "from": "a", "rel": rel, "to": "b"});
        for op in [edge("x|y"), edge(""), edge("\u{1}"), json!({"op": "edge_upsert", "from": "a", "rel": "r"}),
            json!({"op": "node_upsert", "id": "a"}), json!({"op": "node_upsert", "id": "a", "type": "t", "rel": "r"}),
            json!({"op": "edge_delete", "from": "a", "rel": "r", "to": "b", "title": "t"})] {
            client.call("memory_graph_apply", json!({"ops": [op]})).await.fails("INVALID_INPUT");
        }
        client.call("memory_graph_apply", json!({"ops": [{"op": "node_delete", "id": "missing"}]})).await.fails("UNKNOWN_ID");
        let found = client.ok("memory_graph_query", json!({})).await;
        assert_eq!(found["nodes"], json!([]));
    }

    async fn invalid_or_stale_cursor_is_rejected(client: &Client) {
        task(client).await;
        for number in 0..5 {
            client.ok("tasks_note", json!({"task": "TASK-001", "note": format!("n{number}")})).await;
        }
        let page = client.ok("memory_show", json!({"target": "TASK-001", "limit": 2})).await;
        let cursor = page["pagination"]["next_cursor"].as_str().unwrap().to_owned();
        client.ok("memory_show", json!({"target": "TASK-001", "limit": 1, "max_chars": 900, "cursor": cursor})).await;
        for (tool, args) in [
            ("memory_show", json!({"target": "PLAN-001", "cursor": cursor})),
            ("memory_show", json!({"target": "TASK-001", "doc_kind": "trace", "cursor": cursor})),
            ("tasks_delta", json!({"cursor": cursor})),
            ("memory_show", json!({"target": "TASK-001", "cursor": ""})),
            ("memory_show", json!({"target": "TASK-001", "cursor": "not a cursor"})),
            ("memory_show", json!({"target": "TASK-001", "cursor": format!("{cursor}A")})),
        ] {
            let rejected = client.call(tool, args).await.fails("INVALID_INPUT");
            assert!(rejected.error()["recovery"].as_str().unwrap().contains("without cursor"));
        }
        // A cursor of a digest is valid for one revision only.
        let radar = client.ok("tasks_radar", json!({"task": "TASK-001", "limit": 2})).await;
        let cursor = radar["pagination"]["next_cursor"].clone();
        client.ok("tasks_radar", json!({"task": "TASK-001", "limit": 2, "cursor": cursor})).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "n"})).await;
        client.call("tasks_radar", json!({"task": "TASK-001", "limit": 2, "cursor": cursor})).await.fails("INVALID_INPUT");
    }
}
