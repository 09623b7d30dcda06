//! Plans and tasks: create, edit, patch, list, delete.

use serde_json::json;

use crate::client::{Client, on_both};
use crate::fixture::{bare_task, close, field, revision, step, task};

on_both! {
    async fn task_requires_an_existing_plan(client: &Client) {
        client.call("tasks_create", json!({"title": "t", "kind": "task"})).await.fails("INVALID_INPUT");
        client.call("tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await.fails("UNKNOWN_ID");
        task(client).await;
        client.call("tasks_create", json!({"title": "t", "parent": "TASK-001"})).await.fails("INVALID_INPUT");
        client.call("tasks_create", json!({"title": "p", "kind": "plan", "parent": "PLAN-001"})).await.fails("INVALID_INPUT");
        let plan = client.ok("tasks_create", json!({"title": "p"})).await;
        assert_eq!((plan["kind"].as_str(), plan["revision"].as_i64()), (Some("plan"), Some(0)));
    }

    async fn create_event_has_all_given_fields(client: &Client) {
        let created = task(client).await;
        let after = &created["event"]["payload"]["after"];
        assert_eq!(after["TASK-001"], json!({
            "parent": "PLAN-001", "title": "Build it", "description": "The whole of it",
            "contract": "It builds on a clean machine", "priority": "high", "tags": ["build", "ci"],
        }));
        assert_eq!(after["STEP-00000004"], json!({
            "path": "s:1", "title": "Compile", "success_criteria": ["no errors", "no warnings"],
            "tests": ["make check"], "checkpoints": ["docs"],
        }));
        assert_eq!(created["event"]["payload"]["before"]["TASK-001"], json!(null));
        assert_eq!(created["event"]["type"], "task_created");
        assert_eq!(created["event"]["task"], "TASK-001");
        assert_eq!(created["event"]["workspace"], "w");
    }

    async fn edit_event_has_fields_before_and_after(client: &Client) {
        task(client).await;
        let edited = client.ok("tasks_edit", json!({"task": "TASK-001", "title": "Build", "priority": "low", "tags": ["b", "A", "a"]})).await;
        assert_eq!(edited["revision"], 1);
        assert_eq!(edited["event"]["payload"], json!({
            "before": {"TASK-001": {"title": "Build it", "priority": "high", "tags": ["build", "ci"], "revision": 0}},
            "after": {"TASK-001": {"title": "Build", "priority": "low", "tags": ["a", "b"], "revision": 1}},
        }));
        let same = client.call("tasks_edit", json!({"task": "TASK-001", "title": "Build"})).await;
        assert!(same.warns("nothing changed"));
        assert_eq!(same.envelope["result"]["event"], json!(null));
        assert_eq!(revision(client, "TASK-001").await, 1);
    }

    async fn task_without_steps_is_closed_by_edit_and_one_with_steps_by_its_steps(client: &Client) {
        bare_task(client).await;
        client.ok("tasks_edit", json!({"task": "TASK-001", "status": "done"})).await;
        assert_eq!(field(client, "TASK-001", "status").await, "done");
        client.ok("tasks_create", json!({"title": "s", "parent": "PLAN-001", "steps": [step("a"), step("b")]})).await;
        let rejected = client.call("tasks_edit", json!({"task": "TASK-002", "status": "done"})).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(rejected.error()["missing"], json!(["steps"]));
        assert_eq!(rejected.suggested(), ["tasks_verify"]);
        // A plan cannot be closed before its tasks.
        let rejected = client.call("tasks_edit", json!({"task": "PLAN-001", "status": "done"})).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(rejected.error()["missing"], json!(["tasks"]));
        close(client, "TASK-002", "s:0").await;
        assert_eq!(field(client, "TASK-002", "status").await, "active");
        close(client, "TASK-002", "s:1").await;
        assert_eq!(field(client, "TASK-002", "status").await, "done");
        client.call("tasks_edit", json!({"task": "TASK-002", "status": "todo"})).await.fails("INVALID_INPUT");
        client.ok("tasks_edit", json!({"task": "PLAN-001", "status": "done"})).await;
        // New steps reopen the task and the plan.
        client.ok("tasks_decompose", json!({"task": "TASK-002", "steps": [step("c")]})).await;
        assert_eq!(field(client, "TASK-002", "status").await, "active");
        assert_eq!(field(client, "PLAN-001", "status").await, "active");
    }

    async fn plan_is_reopened_with_its_tasks(client: &Client) {
        bare_task(client).await;
        let status = async |task: &str, status: &str| client.ok("tasks_edit", json!({"task": task, "status": status})).await;
        let plan = async || field(client, "PLAN-001", "status").await;
        status("TASK-001", "done").await;
        status("PLAN-001", "done").await;
        // Creating a task reopens the plan.
        let before = revision(client, "PLAN-001").await;
        let created = client.ok("tasks_create", json!({"title": "b", "parent": "PLAN-001"})).await;
        assert_eq!(created["event"]["payload"]["after"]["PLAN-001"], json!({"status": "active", "revision": before + 1}));
        assert_eq!(plan().await, "active");
        // Reopening a task reopens the plan; undo and redo follow.
        status("TASK-002", "done").await;
        status("PLAN-001", "done").await;
        let opened = client.ok("tasks_edit", json!({"task": "TASK-001", "status": "todo"})).await;
        assert_eq!(opened["event"]["payload"]["before"]["PLAN-001"]["status"], "done");
        for (tool, now) in [("tasks_undo", "done"), ("tasks_redo", "active"), ("tasks_undo", "done"), ("tasks_redo", "active")] {
            client.ok(tool, json!({"task": "TASK-001"})).await;
            assert_eq!(plan().await, now, "{tool}");
        }
        // If another task is reopened before the undo, the plan stays open.
        status("TASK-002", "todo").await;
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        assert_eq!((field(client, "TASK-001", "status").await, plan().await), (json!("done"), json!("active")));
        // Undoing a deletion reopens the plan.
        client.ok("tasks_delete", json!({"task": "TASK-002"})).await;
        status("PLAN-001", "done").await;
        client.ok("tasks_undo", json!({"task": "TASK-002"})).await;
        assert_eq!(plan().await, "active");
        // Closing the plan cannot be redone while a task is open.
        status("TASK-002", "done").await;
        status("PLAN-001", "done").await;
        client.ok("tasks_undo", json!({"task": "PLAN-001"})).await;
        client.ok("tasks_create", json!({"title": "c", "parent": "PLAN-001"})).await;
        let rejected = client.call("tasks_redo", json!({"task": "PLAN-001"})).await.fails("CONFLICT");
        assert!(rejected.error()["message"].as_str().unwrap().contains("TASK-003 is open"), "{}", rejected.text);
        let report = client.work.store().check().await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }

    async fn first_step_write_makes_a_task_active(client: &Client) {
        task(client).await;
        assert_eq!(field(client, "TASK-001", "status").await, "todo");
        client.ok("tasks_note", json!({"task": "TASK-001", "note": "about the task"})).await;
        client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": [step("x")]})).await;
        assert_eq!(field(client, "TASK-001", "status").await, "todo");
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "about the step"})).await;
        assert_eq!(field(client, "TASK-001", "status").await, "active");
    }

    async fn dependencies_must_exist_and_be_acyclic(client: &Client) {
        bare_task(client).await;
        for _ in 0..3 {
            client.ok("tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await;
        }
        client.ok("tasks_edit", json!({"task": "TASK-002", "depends_on": ["TASK-001"]})).await;
        client.ok("tasks_edit", json!({"task": "TASK-003", "depends_on": ["TASK-002", "TASK-002"]})).await;
        assert_eq!(field(client, "TASK-003", "depends_on").await, json!(["TASK-002"]));
        for (task, needs, code) in [
            ("TASK-001", "TASK-003", "INVALID_INPUT"),
            ("TASK-001", "TASK-001", "INVALID_INPUT"),
            ("TASK-001", "PLAN-001", "INVALID_INPUT"),
            ("TASK-001", "TASK-099", "UNKNOWN_ID"),
            ("PLAN-001", "TASK-001", "INVALID_INPUT"),
        ] {
            client.call("tasks_edit", json!({"task": task, "depends_on": [needs]})).await.fails(code);
            let patch = json!({"task": task, "ops": [{"op": "append", "field": "depends_on", "value": needs}]});
            client.call("tasks_patch", patch).await.fails(code);
        }
        let rejected = client.call("tasks_delete", json!({"task": "TASK-001"})).await.fails("CONFLICT");
        assert_eq!(rejected.suggested(), ["tasks_patch"]);
    }

    async fn patch_sets_every_field(client: &Client) {
        task(client).await;
        let ops = json!([
            {"op": "set", "field": "title", "value": "New"},
            {"op": "unset", "field": "description"},
            {"op": "set", "field": "contract", "value": "c"},
            {"op": "set", "field": "contract_data", "value": {"a": [1, null]}},
            {"op": "set", "field": "status", "value": "active"},
            {"op": "set", "field": "priority", "value": "low"},
            {"op": "append", "field": "tags", "value": " ZZ "},
            {"op": "remove", "field": "tags", "value": "BUILD"},
            {"op": "append", "field": "blockers", "value": "rain"},
        ]);
        let patched = client.ok("tasks_patch", json!({"task": "TASK-001", "ops": ops})).await;
        assert_eq!((patched["id"].as_str(), patched["revision"].as_i64()), (Some("TASK-001"), Some(1)));
        let found = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await;
        let task = &found["tasks"][0];
        assert_eq!(task["title"], "New");
        assert_eq!(task["description"], json!(null));
        assert_eq!(task["contract_data"], json!({"a": [1, null]}));
        assert_eq!((task["status"].as_str(), task["priority"].as_str()), (Some("active"), Some("low")));
        assert_eq!(task["tags"], json!(["ci", "zz"]));
        assert_eq!(task["blockers"], json!(["rain"]));

        let ops = json!([{"op": "append", "field": "confirmed", "value": "criteria"}, {"op": "set", "field": "title", "value": "C"}]);
        let patched = client.ok("tasks_patch", json!({"task": "TASK-001", "path": "s:1", "ops": ops})).await;
        assert_eq!(patched["step"]["revision"], 1);
        assert_eq!(patched["revision"], 2);
        let ops = json!([{"op": "set", "field": "completed", "value": true}]);
        let rejected = client.call("tasks_patch", json!({"task": "TASK-001", "path": "s:1", "ops": ops})).await.fails("CHECKPOINTS_NOT_CONFIRMED");
        assert_eq!(rejected.error()["missing"], json!(["tests", "docs"]));
    }

    async fn invalid_patch_names_the_operation(client: &Client) {
        task(client).await;
        for (op, path) in [
            (json!({"op": "set", "field": "revision", "value": 7}), None),
            (json!({"op": "set", "field": "titel", "value": "x"}), None),
            (json!({"op": "set", "field": "title", "value": 5}), None),
            (json!({"op": "set", "field": "title"}), None),
            (json!({"op": "set", "field": "status", "value": "finished"}), None),
            (json!({"op": "append", "field": "title", "value": "x"}), None),
            (json!({"op": "set", "field": "claim", "value": {"agent": "a"}}), None),
            (json!({"op": "set", "field": "path", "value": "s:9"}), Some("s:1")),
            (json!({"op": "append", "field": "checkpoints", "value": "speed"}), Some("s:1")),
        ] {
            let good = json!({"op": "append", "field": "blockers", "value": "x"});
            let args = json!({"task": "TASK-001", "path": path, "ops": [good, op]});
            let rejected = client.call("tasks_patch", args).await.fails("INVALID_INPUT");
            assert_eq!(rejected.error()["index"], 1, "{op}");
        }
        client.call("tasks_patch", json!({"task": "TASK-001", "ops": [{"op": "unset", "field": "title"}]})).await.fails("INVALID_INPUT");
        let args = json!({"task": "TASK-001", "path": "s:1", "ops": [{"op": "unset", "field": "success_criteria"}]});
        client.call("tasks_patch", args).await.fails("INVALID_INPUT");
        assert_eq!(revision(client, "TASK-001").await, 0);
    }

    async fn lists_filter_count_and_page(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"title": "Second plan", "tags": ["ci"]})).await;
        for number in 0..7 {
            client.ok("tasks_create", json!({"title": format!("Task {number} zebra"), "parent": "PLAN-002", "tags": ["x_y", "ci", "a%b"]})).await;
        }
        client.ok("tasks_edit", json!({"task": "TASK-003", "status": "done"})).await;
        let all = client.ok("tasks_context", json!({})).await;
        assert_eq!(all["counts"], json!({"plans": 2, "tasks": 8, "by_status": {"todo": 9, "active": 0, "done": 1}}));
        assert_eq!(all["plans"].as_array().unwrap().len(), 2);
        assert_eq!(all["tasks"][0]["steps"], json!({"total": 4, "completed": 0}));
        for (filter, plans, tasks) in [
            (json!({"kind": "plan"}), 2, 0),
            (json!({"kind": "task", "status": "done"}), 0, 1),
            (json!({"parent": "PLAN-001"}), 0, 1),
            (json!({"tags": ["CI"]}), 1, 8),
            (json!({"tags": ["ci", "build"]}), 0, 1),
            (json!({"tags": ["xxy"]}), 0, 0),
            (json!({"tags": ["a%b", "x_y"]}), 0, 7),
            (json!({"text": "ZEBRA"}), 0, 7),
            (json!({"text": "zeb* 4"}), 0, 1),
            (json!({"text": "clean machine", "kind": "task"}), 0, 1),
            (json!({"text": "clean zebra"}), 0, 0),
            (json!({"ids": ["TASK-002", "PLAN-002", "TASK-002"]}), 1, 1),
            (json!({"ids": ["TASK-002", "TASK-003"], "status": "todo"}), 0, 1),
        ] {
            let found = client.ok("tasks_context", filter.clone()).await;
            assert_eq!(found["plans"].as_array().unwrap().len(), plans, "{filter}");
            assert_eq!(found["tasks"].as_array().unwrap().len(), tasks, "{filter}");
            assert_eq!(found["counts"]["plans"], plans, "{filter}");
            assert_eq!(found["counts"]["tasks"], tasks, "{filter}");
        }
        let mut cursor = json!(null);
        let mut ids = Vec::new();
        loop {
            let page = client.ok("tasks_context", json!({"limit": 3, "cursor": cursor})).await;
            assert_eq!(page["pagination"]["cursor"], cursor);
            assert_eq!(page["pagination"]["limit"], 3);
            for list in ["plans", "tasks"] {
                ids.extend(page[list].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            }
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(ids.len(), 10);
        assert_eq!(ids[..3], ["PLAN-001", "PLAN-002", "TASK-001"]);
        let missing = client.call("tasks_context", json!({"ids": ["TASK-099"]})).await;
        assert!(missing.warns("TASK-099"));
    }

    async fn list_with_missing_parent_is_rejected(client: &Client) {
        task(client).await;
        for wrong in ["TASK-001", "STEP-00000001", "plan"] {
            client.call("tasks_context", json!({"parent": wrong})).await.fails("INVALID_INPUT");
        }
        let rejected = client.call("tasks_context", json!({"parent": "PLAN-009"})).await.fails("UNKNOWN_ID");
        assert_eq!(rejected.suggested(), ["tasks_context"]);
        client.ok("tasks_delete", json!({"task": "PLAN-001"})).await;
        client.call("tasks_context", json!({"parent": "PLAN-001"})).await.fails("UNKNOWN_ID");
    }

    async fn memory_numbers_are_clamped_with_a_warning(client: &Client) {
        client.ok("memory_notes_commit", json!({"content": "words"})).await;
        for (tool, arguments, warning) in [
            ("memory_show", json!({"seq": 1, "offset": -1}), "offset was clamped to 0"),
            ("memory_show", json!({"seq": 1, "offset": 9}), "offset was clamped to 5"),
            ("memory_graph_validate", json!({"max_errors": 0}), "max_errors was clamped to 1"),
            ("memory_graph_query", json!({"edges_limit": -1}), "edges_limit was clamped to 0"),
        ] {
            assert!(client.call(tool, arguments).await.warns(warning), "{warning}");
        }
    }

    async fn limits_are_clamped_and_reported(client: &Client) {
        task(client).await;
        for (asked, used) in [(0, 1), (-5, 1), (201, 200), (1_000_000_000, 200), (7, 7)] {
            let answer = client.call("tasks_context", json!({"limit": asked})).await;
            assert_eq!(answer.envelope["result"]["pagination"]["limit"], used);
            assert_eq!(answer.warns("clamped"), asked != used);
        }
        let found = client.ok("tasks_context", json!({})).await;
        assert_eq!(found["pagination"]["limit"], 50);
        for (asked, clamped) in [(1_000_000, true), (100_000, false)] {
            assert_eq!(client.call("tasks_context", json!({"max_chars": asked})).await.warns("max_chars was clamped to 100000"), clamped);
        }
    }

    async fn deleting_a_plan_deletes_its_tasks_and_undo_restores_them(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"title": "b", "parent": "PLAN-001", "depends_on": ["TASK-001"]})).await;
        client.ok("tasks_focus_set", json!({"task": "TASK-002"})).await;
        let deleted = client.call("tasks_delete", json!({"task": "PLAN-001"})).await;
        assert!(deleted.warns("focus was cleared"));
        assert_eq!(deleted.envelope["result"]["deleted"], json!(["PLAN-001", "TASK-001", "TASK-002"]));
        for id in ["PLAN-001", "TASK-001", "TASK-002"] {
            client.call("tasks_radar", json!({"task": id})).await.fails("UNKNOWN_ID");
        }
        let found = client.ok("tasks_context", json!({})).await;
        assert_eq!(found["counts"]["tasks"], 0);
        client.ok("tasks_undo", json!({"task": "PLAN-001"})).await;
        let found = client.ok("tasks_context", json!({})).await;
        assert_eq!(found["counts"], json!({"plans": 1, "tasks": 2, "by_status": {"todo": 3, "active": 0, "done": 0}}));
        assert_eq!(field(client, "TASK-002", "depends_on").await, json!(["TASK-001"]));
    }

    async fn redo_of_a_deletion_requires_no_dependents(client: &Client) {
        task(client).await;
        client.ok("tasks_create", json!({"title": "b", "parent": "PLAN-001"})).await;
        for task in ["TASK-002", "PLAN-001"] {
            client.ok("tasks_delete", json!({"task": task})).await;
        }
        for task in ["PLAN-001", "TASK-002"] {
            client.ok("tasks_undo", json!({"task": task})).await;
        }
        client.call("tasks_redo", json!({"task": "PLAN-001"})).await.fails("CONFLICT");
        client.ok("tasks_patch", json!({"task": "TASK-001", "ops": [{"op": "set", "field": "depends_on", "value": ["TASK-002"]}]})).await;
        client.call("tasks_redo", json!({"task": "TASK-002"})).await.fails("CONFLICT");
        client.ok("tasks_patch", json!({"task": "TASK-001", "ops": [{"op": "unset", "field": "depends_on"}]})).await;
        client.ok("tasks_focus_set", json!({"task": "TASK-002"})).await;
        assert!(client.call("tasks_redo", json!({"task": "TASK-002"})).await.warns("focus was cleared"));
        let found = client.ok("tasks_context", json!({})).await;
        assert_eq!(found["counts"]["tasks"], 1);
    }

    async fn deleting_a_step_deletes_its_children(client: &Client) {
        task(client).await;
        let deleted = client.ok("tasks_delete", json!({"task": "TASK-001", "path": "s:0"})).await;
        assert_eq!(deleted["deleted"], json!(["STEP-00000001", "STEP-00000002", "STEP-00000003"]));
        assert_eq!(deleted["revision"], 1);
        client.call("tasks_note", json!({"task": "TASK-001", "path": "s:0.s:0", "note": "x"})).await.fails("UNKNOWN_ID");
        client.ok("tasks_undo", json!({"task": "TASK-001"})).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:0.s:0", "note": "x"})).await;
    }
}
