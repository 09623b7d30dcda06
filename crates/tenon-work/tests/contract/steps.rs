//! Steps: checkpoints, gates, notes, blockers, evidence.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{close, confirmed, field, revision, step_of, task};

on_both! {
    async fn step_write_increments_step_and_task_revision(client: &Client) {
        task(client).await;
        let writes = [
            ("tasks_note", json!({"note": "n"})),
            ("tasks_define", json!({"tests": ["t"]})),
            ("tasks_verify", json!({"checkpoints": confirmed(&["criteria"])})),
            ("tasks_block", json!({"blocked": true, "reason": "r"})),
            ("tasks_evidence", json!({"checkpoint": "tests", "items": [{"kind": "diagnostics", "output": "clean"}]})),
            ("tasks_patch", json!({"ops": [{"op": "set", "field": "title", "value": "x"}]})),
            ("tasks_close_step", json!({"checkpoints": confirmed(&["criteria", "tests", "docs"])})),
        ];
        for (count, (tool, mut args)) in (1..).zip(writes) {
            args["task"] = json!("TASK-001");
            args["path"] = json!("s:1");
            let written = client.ok(tool, args).await;
            assert_eq!(written["revision"], count, "{tool}");
            assert_eq!(written["step"]["revision"], count, "{tool}");
            let after = &written["event"]["payload"]["after"];
            let before = &written["event"]["payload"]["before"];
            if tool != "tasks_close_step" {
                assert_eq!(after["STEP-00000004"]["revision"], count, "{tool}");
                assert_eq!(before["STEP-00000004"]["revision"], count - 1, "{tool}");
            }
        }
        assert_eq!(step_of(client, "TASK-001", "s:0").await["revision"], 0);
    }

    async fn step_closes_only_with_all_checkpoints_confirmed(client: &Client) {
        task(client).await;
        let done = json!({"task": "TASK-001", "path": "s:0.s:0"});
        let rejected = client.call("tasks_done", done.clone()).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(rejected.error()["missing"], json!(["criteria", "tests"]));
        assert_eq!(rejected.suggested(), ["tasks_verify"]);
        let docs = client.call("tasks_done", json!({"task": "TASK-001", "path": "s:1"})).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(docs.error()["missing"], json!(["criteria", "tests", "docs"]));
        client.ok("tasks_verify", json!({"task": "TASK-001", "path": "s:0.s:0", "checkpoints": confirmed(&["criteria"])})).await;
        let rejected = client.call("tasks_done", done.clone()).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(rejected.error()["missing"], json!(["tests"]));
        client.ok("tasks_verify", json!({"task": "TASK-001", "path": "s:0.s:0", "checkpoints": confirmed(&["tests"])})).await;
        let closed = client.ok("tasks_done", done.clone()).await;
        assert_eq!(closed["step"], json!({"step_id": "STEP-00000002", "path": "s:0.s:0", "revision": 3, "completed": true}));
        let again = client.call("tasks_done", done).await;
        assert!(again.warns("already done"));
        assert_eq!(again.envelope["result"]["event"], json!(null));
        assert_eq!(again.envelope["result"]["revision"], 3);
        assert_eq!(revision(client, "TASK-001").await, 3);
    }

    async fn parent_step_closes_after_its_children(client: &Client) {
        task(client).await;
        client.ok("tasks_verify", json!({"task": "TASK-001", "path": "s:0", "checkpoints": confirmed(&["criteria", "tests"])})).await;
        for tool in ["tasks_done", "tasks_close_step"] {
            let rejected = client.call(tool, json!({"task": "TASK-001", "path": "s:0"})).await.fails("CHECKPOINTS_NOT_CONFIRMED");
            assert_eq!(rejected.error()["missing"], json!(["children"]));
            assert_eq!(rejected.suggested(), ["tasks_verify"]);
        }
        close(client, "TASK-001", "s:0.s:0").await;
        close(client, "TASK-001", "s:0.s:1").await;
        client.ok("tasks_done", json!({"task": "TASK-001", "path": "s:0"})).await;
        close(client, "TASK-001", "s:1").await;
        assert_eq!(field(client, "TASK-001", "status").await, "done");
        // Reopening a child reopens its parents.
        let ops = json!([{"op": "set", "field": "completed", "value": false}]);
        let reopened = client.call("tasks_patch", json!({"task": "TASK-001", "path": "s:0.s:1", "ops": ops})).await;
        assert!(reopened.warns("s:0 was reopened"));
        assert_eq!(field(client, "TASK-001", "status").await, "active");
        assert_eq!(step_of(client, "TASK-001", "s:0").await["completed"], false);
    }

    async fn close_step_is_one_operation_with_two_events(client: &Client) {
        task(client).await;
        let closed = close(client, "TASK-001", "s:0.s:0").await;
        let types: Vec<&str> = closed["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["step_verified", "step_done"]);
        assert_eq!(closed["event"], closed["events"][1]);
        assert_eq!(closed["revision"], 1);
        let rejected = client.call("tasks_close_step", json!({"task": "TASK-001", "path": "s:1", "checkpoints": confirmed(&["criteria"])})).await;
        assert_eq!(rejected.fails("CHECKPOINTS_NOT_CONFIRMED").error()["missing"], json!(["tests", "docs"]));
        // A rejected call keeps nothing, not even the confirmation.
        assert_eq!(step_of(client, "TASK-001", "s:1").await["confirmed"], json!([]));
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        let step = step_of(client, "TASK-001", "s:0.s:0").await;
        assert_eq!((step["completed"].clone(), step["confirmed"].clone()), (json!(false), json!([])));
    }

    async fn define_resets_confirmed_checkpoints(client: &Client) {
        task(client).await;
        let at = |extra: serde_json::Value| {
            let mut args = json!({"task": "TASK-001", "path": "s:1"});
            args.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            args
        };
        client.ok("tasks_verify", at(json!({"checkpoints": confirmed(&["criteria", "tests", "docs"])}))).await;
        client.ok("tasks_define", at(json!({"tests": ["make check"]}))).await;
        assert_eq!(step_of(client, "TASK-001", "s:1").await["confirmed"], json!(["criteria", "docs"]));
        client.ok("tasks_define", at(json!({"success_criteria": ["other"], "title": "Compile all"}))).await;
        assert_eq!(step_of(client, "TASK-001", "s:1").await["confirmed"], json!(["docs"]));
        client.ok("tasks_define", at(json!({"blockers": ["b"], "checkpoints": ["security", "perf"]}))).await;
        let step = step_of(client, "TASK-001", "s:1").await;
        assert_eq!(step["missing"], json!(["criteria", "tests", "security", "perf"]));
        assert_eq!(step["title"], "Compile all");
        // Changing the criteria of a closed step reopens it.
        client.ok("tasks_close_step", at(json!({"checkpoints": confirmed(&["criteria", "tests", "security", "perf"])}))).await;
        let opened = client.call("tasks_define", at(json!({"success_criteria": ["more"]}))).await;
        assert!(opened.warns("reopened"));
        assert_eq!(opened.ok()["step"]["completed"], false);
    }

    async fn confirmation_can_be_withdrawn(client: &Client) {
        task(client).await;
        close(client, "TASK-001", "s:1").await;
        let args = json!({"task": "TASK-001", "path": "s:1", "checkpoints": {"docs": {"confirmed": false}}});
        let withdrawn = client.call("tasks_verify", args.clone()).await;
        assert!(withdrawn.warns("reopened"));
        let same = client.call("tasks_verify", args).await;
        assert!(same.warns("nothing changed"));
        for bad in [json!({}), json!({"speed": {"confirmed": true}}), json!({"docs": true}), json!({"docs": {}})] {
            client.call("tasks_verify", json!({"task": "TASK-001", "path": "s:1", "checkpoints": bad})).await.fails("INVALID_INPUT");
        }
    }

    async fn block_adds_and_removes_blockers(client: &Client) {
        task(client).await;
        client.ok("tasks_block", json!({"task": "TASK-001", "blocked": true, "reason": "no key"})).await;
        client.ok("tasks_block", json!({"task": "TASK-001", "blocked": true})).await;
        let same = client.call("tasks_block", json!({"task": "TASK-001", "blocked": true, "reason": "no key"})).await;
        assert!(same.warns("nothing changed"));
        assert_eq!(field(client, "TASK-001", "blockers").await, json!(["no key", "blocked"]));
        client.ok("tasks_block", json!({"task": "TASK-001", "blocked": false, "reason": "blocked"})).await;
        assert_eq!(field(client, "TASK-001", "blockers").await, json!(["no key"]));
        client.ok("tasks_block", json!({"task": "TASK-001", "path": "s:0.s:0", "blocked": true, "reason": "wet"})).await;
        let radar = client.ok("tasks_radar", json!({"task": "TASK-001"})).await;
        assert_eq!(radar["radar"]["blockers"], json!([
            {"kind": "task", "id": "TASK-001", "text": "no key"},
            {"kind": "step", "id": "STEP-00000002", "text": "wet"},
        ]));
        client.ok("tasks_block", json!({"task": "TASK-001", "blocked": false})).await;
        assert_eq!(field(client, "TASK-001", "blockers").await, json!([]));
    }

    async fn notes_are_mirrored_to_memory_with_provenance(client: &Client) {
        task(client).await;
        let noted = client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "look out"})).await;
        let shown = client.ok("memory_show", json!({"target": "TASK-001"})).await;
        assert_eq!((shown["branch"].as_str(), shown["doc"].as_str()), (Some("task/TASK-001"), Some("notes")));
        let entry = &shown["entries"][0];
        assert_eq!(entry["seq"], noted["note_seq"]);
        assert_eq!((entry["content"].as_str(), entry["kind"].as_str()), (Some("look out"), Some("note")));
        assert_eq!(entry["meta"], json!({"task": "TASK-001", "step_id": "STEP-00000004", "path": "s:1", "tool": "tasks_note"}));
        assert_eq!(noted["event"]["payload"]["note_seq"], noted["note_seq"]);
        assert_eq!(step_of(client, "TASK-001", "s:1").await["notes"], 1);
        client.ok("tasks_note", json!({"task": "PLAN-001", "note": "on the plan"})).await;
        let plan = client.ok("memory_show", json!({"target": "PLAN-001"})).await;
        assert_eq!(plan["branch"], "plan/PLAN-001");
        assert_eq!(field(client, "PLAN-001", "notes").await, 1);
    }

    async fn step_takes_at_most_100_evidence_items(client: &Client) {
        task(client).await;
        let attach = |pieces: usize| json!({"task": "TASK-001", "path": "s:1", "checkpoint": "tests",
            "items": vec![json!({"kind": "diagnostics", "output": "o"}); pieces]});
        client.ok("tasks_evidence", attach(100)).await;
        let rejected = client.call("tasks_evidence", attach(1)).await.fails("INVALID_INPUT");
        assert!(rejected.error()["recovery"].as_str().unwrap().contains("another step"), "{}", rejected.text);
    }

    async fn evidence_is_attached_to_a_checkpoint_and_readable(client: &Client) {
        task(client).await;
        let sha = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let items = json!([
            {"kind": "cmd_output", "command": "make check", "exit_code": 0, "output": "42 passed"},
            {"kind": "file_hash", "path": "out/bin", "sha256": sha},
            {"kind": "diagnostics", "output": "[]"},
        ]);
        let args = json!({"task": "TASK-001", "path": "s:1", "checkpoint": "tests", "items": items});
        let given = client.ok("tasks_evidence", args).await;
        let evidence = given["evidence"].as_array().unwrap();
        assert_eq!(evidence.len(), 3);
        assert_eq!((evidence[0]["kind"].as_str(), evidence[0]["bytes"].as_i64()), (Some("cmd_output"), Some(9)));
        assert_eq!(evidence[1]["sha256"], sha);
        let step = step_of(client, "TASK-001", "s:1").await;
        assert_eq!(step["evidence"][0]["checkpoint"], "tests");
        // Attached evidence can be read.
        let seq: i64 = evidence[0]["id"].as_str().unwrap().strip_prefix("evd_").unwrap().parse().unwrap();
        let entry = client.ok("memory_show", json!({"seq": seq})).await["entries"][0].clone();
        assert_eq!(entry["content"], "42 passed");
        assert_eq!((entry["meta"]["command"].as_str(), entry["meta"]["exit_code"].as_i64()), (Some("make check"), Some(0)));
        for (bad, index) in [
            (json!([{"kind": "diagnostics", "output": "x"}, {"kind": "cmd_output", "output": "x"}]), 1),
            (json!([{"kind": "file_hash", "path": "a", "sha256": "xyz"}]), 0),
        ] {
            let args = json!({"task": "TASK-001", "path": "s:1", "checkpoint": "tests", "items": bad});
            let rejected = client.call("tasks_evidence", args).await.fails("INVALID_INPUT");
            assert_eq!(rejected.error()["index"], index);
        }
    }

    async fn secrets_are_redacted_before_storing(client: &Client) {
        task(client).await;
        let note = "use token=Zx81-kkQ2pLm and token_count=128, key AKIAIOSFODNN7EXAMPLE";
        let noted = client.call("tasks_note", json!({"task": "TASK-001", "note": note})).await;
        assert!(noted.warns("redacted"));
        client.ok("tasks_edit", json!({"task": "TASK-001", "contract_data": {"api_key": "f00Bar99xyz", "token_count": 3}})).await;
        client.ok("memory_notes_commit", json!({"content": "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"})).await;
        let mut export = Vec::new();
        client.work.store().export(&mut export).await.unwrap();
        let export = String::from_utf8(export).unwrap();
        for secret in ["Zx81-kkQ2pLm", "AKIAIOSFODNN7EXAMPLE", "f00Bar99xyz", "BEGIN PRIVATE"] {
            assert!(!export.contains(secret), "{secret} is in the store");
        }
        assert!(export.contains("token_count=128"));
        let found = client.ok("memory_search", json!({"query": "AKIAIOSFODNN7EXAMPLE"})).await;
        assert_eq!(found["hits"], json!([]));
    }
}
