//! Optimistic concurrency and strict targeting.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{confirmed, revision, task};

on_both! {
    async fn stale_revision_is_rejected_with_suggestions(client: &Client) {
        task(client).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "from another client"})).await;
        let stale = json!({"task": "TASK-001", "title": "Mine", "expected_revision": 0});
        let rejected = client.call("tasks_edit", stale).await.fails("REVISION_MISMATCH");
        assert_eq!((rejected.error()["expected"].clone(), rejected.error()["actual"].clone()), (json!(0), json!(1)));
        assert!(rejected.error()["recovery"].is_string());
        assert_eq!(rejected.envelope["context"]["current"]["id"], "TASK-001");
        assert_eq!(rejected.envelope["context"]["current"]["revision"], 1);
        assert_eq!(rejected.suggested(), ["tasks_context", "tasks_edit"]);
        let [look, again] = rejected.envelope["suggestions"].as_array().unwrap().as_slice() else { panic!("two") };
        assert_eq!(look["params"], json!({"workspace": "w", "ids": ["TASK-001"]}));
        assert_eq!(look["priority"], "high");
        assert_eq!(again["params"], json!({"workspace": "w", "task": "TASK-001", "title": "Mine", "expected_revision": 1}));
        assert_eq!(again["priority"], "low");
        // A retry would fail for missing checkpoints, so it is not suggested.
        let gated = json!({"task": "TASK-001", "path": "s:0", "expected_version": 7});
        let rejected = client.call("tasks_done", gated).await.fails("REVISION_MISMATCH");
        assert_eq!(rejected.suggested(), ["tasks_context"]);
    }

    async fn expected_revision_is_reported_as_sent(client: &Client) {
        task(client).await;
        let edit = |revision: serde_json::Value| json!({"task": "TASK-001", "title": "x", "expected_revision": revision});
        for sent in [i64::MAX, -1, i64::MIN] {
            let rejected = client.call("tasks_edit", edit(json!(sent))).await.fails("REVISION_MISMATCH");
            assert_eq!(rejected.error()["expected"], json!(sent));
        }
        for out_of_range in [json!(1_u64 << 63), json!(1e30), json!(-1e19)] {
            client.call("tasks_edit", edit(out_of_range)).await.fails("INVALID_INPUT");
        }
    }

    async fn every_write_checks_the_revision_under_both_names(client: &Client) {
        task(client).await;
        let writes = [
            ("tasks_edit", json!({"title": "x"})),
            ("tasks_patch", json!({"ops": [{"op": "set", "field": "title", "value": "y"}]})),
            ("tasks_decompose", json!({"steps": [{"title": "s", "success_criteria": ["c"]}]})),
            ("tasks_define", json!({"path": "s:1", "title": "z"})),
            ("tasks_note", json!({"note": "n"})),
            ("tasks_verify", json!({"path": "s:1", "checkpoints": confirmed(&["criteria", "tests", "docs"])})),
            ("tasks_done", json!({"path": "s:1"})),
            ("tasks_close_step", json!({"path": "s:0.s:0", "checkpoints": confirmed(&["criteria", "tests"])})),
            ("tasks_block", json!({"blocked": true})),
            ("tasks_evidence", json!({"path": "s:1", "checkpoint": "docs", "items": [{"kind": "diagnostics", "output": "o"}]})),
            ("tasks_undo", json!({})),
            ("tasks_redo", json!({})),
            ("tasks_delete", json!({"path": "s:0"})),
        ];
        for (revision, (tool, mut args)) in (0..).zip(writes) {
            args["task"] = json!("TASK-001");
            for name in ["expected_revision", "expected_version"] {
                args[name] = json!(revision + 5);
                client.call(tool, args.clone()).await.fails("REVISION_MISMATCH");
                args.as_object_mut().unwrap().remove(name);
            }
            args["expected_revision"] = json!(revision);
            args["expected_version"] = json!(revision + 1);
            client.call(tool, args.clone()).await.fails("INVALID_INPUT");
            args["expected_version"] = json!(revision);
            client.ok(tool, args).await;
        }
        assert_eq!(revision(client, "TASK-001").await, 13);
        // Creating a task checks the revision of the plan, and memory writes that of the target.
        let make = json!({"title": "t", "parent": "PLAN-001", "expected_revision": 3});
        client.call("tasks_create", make).await.fails("REVISION_MISMATCH");
        for (tool, args) in [
            ("memory_notes_commit", json!({"content": "c"})),
            ("memory_graph_apply", json!({"ops": [{"op": "node_upsert", "id": "a", "type": "t"}]})),
            ("memory_think_card", json!({"card": {"type": "note", "text": "x"}})),
        ] {
            let mut args = args;
            args["target"] = json!("TASK-001");
            args["expected_revision"] = json!(99);
            client.call(tool, args.clone()).await.fails("REVISION_MISMATCH");
            args["expected_revision"] = json!(13);
            client.ok(tool, args).await;
        }
        client.call("memory_notes_commit", json!({"content": "c", "expected_revision": 0})).await.fails("INVALID_INPUT");
    }

    async fn strict_targeting_requires_expected_target_id(client: &Client) {
        task(client).await;
        client.ok("tasks_focus_set", json!({"task": "TASK-001"})).await;
        let without = json!({"note": "n", "strict_targeting": true});
        let rejected = client.call("tasks_note", without).await.fails("STRICT_TARGETING_REQUIRES_EXPECTED_TARGET_ID");
        assert_eq!(rejected.suggested(), ["tasks_note"]);
        let wrong = json!({"note": "n", "strict_targeting": true, "expected_target_id": "PLAN-001"});
        let rejected = client.call("tasks_note", wrong).await.fails("EXPECTED_TARGET_MISMATCH");
        assert_eq!((rejected.error()["expected"].as_str(), rejected.error()["actual"].as_str()), (Some("PLAN-001"), Some("TASK-001")));
        assert_eq!(rejected.suggested(), ["tasks_context", "tasks_note"]);
        // An expected target is checked even without strict targeting.
        client.call("tasks_note", json!({"note": "n", "expected_target_id": "PLAN-001"})).await.fails("EXPECTED_TARGET_MISMATCH");
        client.ok("tasks_note", json!({"note": "n", "strict_targeting": true, "expected_target_id": "TASK-001"})).await;
        client.call("memory_notes_commit", json!({"content": "c", "strict_targeting": true})).await.fails("STRICT_TARGETING_REQUIRES_EXPECTED_TARGET_ID");
        let noted = json!({"content": "c", "strict_targeting": true, "expected_target_id": "TASK-001"});
        client.call("memory_notes_commit", noted).await.fails("EXPECTED_TARGET_MISMATCH");
        client.ok("memory_notes_commit", json!({"target": "TASK-001", "content": "c", "strict_targeting": true, "expected_target_id": "TASK-001"})).await;
    }

    async fn checks_run_in_a_fixed_order(client: &Client) {
        task(client).await;
        // All arguments are invalid; each round fixes the one that was just rejected.
        let mut args = json!({"workspace": "no such/name!", "task": "TASK-009", "path": "s:0", "strict_targeting": true,
            "expected_revision": 9, "bogus": 1});
        let mut expect = async |code: &str, fix: &dyn Fn(&mut serde_json::Value)| {
            client.call("tasks_done", args.clone()).await.fails(code);
            fix(&mut args);
        };
        expect("INVALID_INPUT", &|args| drop(args.as_object_mut().unwrap().remove("bogus"))).await;
        expect("INVALID_NAME", &|args| drop(args.as_object_mut().unwrap().remove("workspace"))).await;
        expect("UNKNOWN_ID", &|args| args["task"] = json!("TASK-001")).await;
        expect("STRICT_TARGETING_REQUIRES_EXPECTED_TARGET_ID", &|args| args["expected_target_id"] = json!("TASK-001")).await;
        expect("REVISION_MISMATCH", &|args| args["expected_revision"] = json!(0)).await;
        expect("CHECKPOINTS_NOT_CONFIRMED", &|_| {}).await;
    }
}
