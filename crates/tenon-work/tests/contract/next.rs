//! The ready queue and its claims.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, on_both};
use crate::fixture::{bare_task, field, revision, step};

async fn ready(client: &Client, args: Value) -> Vec<String> {
    let found = client.ok("tasks_next", args).await;
    found["ready"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

/// Five tasks in one plan: 1 low, 2 high, 3 medium, 4 high, 5 medium.
async fn five_tasks(client: &Client) {
    client.ok("tasks_create", json!({"title": "Plan"})).await;
    for priority in ["low", "high", "medium", "high", "medium"] {
        client
            .ok("tasks_create", json!({"title": priority, "parent": "PLAN-001", "priority": priority}))
            .await;
    }
}

on_both! {
    async fn queue_is_ordered_by_priority_then_number(client: &Client) {
        five_tasks(client).await;
        assert_eq!(ready(client, json!({})).await, ["TASK-002", "TASK-004", "TASK-003", "TASK-005", "TASK-001"]);
        let first = client.ok("tasks_next", json!({})).await;
        assert_eq!(first["task"]["id"], "TASK-002");
        assert_eq!(first["claim"], json!(null));
        let mut seen = Vec::new();
        let mut cursor = json!(null);
        loop {
            let page = client.ok("tasks_next", json!({"limit": 2, "cursor": cursor})).await;
            seen.extend(page["ready"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(seen, ["TASK-002", "TASK-004", "TASK-003", "TASK-005", "TASK-001"]);
    }

    async fn done_blocked_dependent_and_claimed_tasks_are_not_ready(client: &Client) {
        five_tasks(client).await;
        client.ok("tasks_edit", json!({"task": "TASK-002", "status": "done"})).await;
        client.ok("tasks_block", json!({"task": "TASK-004", "blocked": true})).await;
        client.ok("tasks_edit", json!({"task": "TASK-003", "depends_on": ["TASK-001"]})).await;
        client.ok("tasks_edit", json!({"task": "TASK-005", "depends_on": ["TASK-002"]})).await;
        assert_eq!(ready(client, json!({})).await, ["TASK-005", "TASK-001"]);
        client.ok("tasks_next", json!({"claim": true, "agent": "a"})).await;
        assert_eq!(ready(client, json!({"agent": "b"})).await, ["TASK-001"]);
        assert_eq!(ready(client, json!({"agent": "a"})).await, ["TASK-005", "TASK-001"]);
        assert_eq!(ready(client, json!({})).await, ["TASK-001"]);
        client.ok("tasks_edit", json!({"task": "TASK-001", "status": "done"})).await;
        assert_eq!(ready(client, json!({"agent": "b"})).await, ["TASK-003"]);
    }

    async fn task_with_only_blocked_steps_is_not_ready(client: &Client) {
        bare_task(client).await;
        client.ok("tasks_decompose", json!({"task": "TASK-001", "steps": [step("a"), step("b")]})).await;
        client.ok("tasks_block", json!({"task": "TASK-001", "path": "s:0", "blocked": true})).await;
        assert_eq!(ready(client, json!({})).await, ["TASK-001"]);
        client.ok("tasks_block", json!({"task": "TASK-001", "path": "s:1", "blocked": true})).await;
        assert_eq!(ready(client, json!({})).await, Vec::<String>::new());
    }

    async fn claim_expires_and_can_be_released(client: &Client) {
        five_tasks(client).await;
        client.call("tasks_next", json!({"claim": true})).await.fails("INVALID_INPUT");
        client.call("tasks_next", json!({"claim": true, "agent": " "})).await.fails("INVALID_INPUT");
        let claimed = client.ok("tasks_next", json!({"claim": true, "agent": "a", "ttl_s": 60})).await;
        assert_eq!(claimed["task"]["id"], "TASK-002");
        assert_eq!(claimed["claim"]["agent"], "a");
        assert_eq!(field(client, "TASK-002", "status").await, "active");
        assert_eq!(revision(client, "TASK-002").await, 1);
        let other = client.ok("tasks_next", json!({"claim": true, "agent": "b"})).await;
        assert_eq!(other["task"]["id"], "TASK-004");
        // The same agent gets the same task, with a new lease.
        let again = client.ok("tasks_next", json!({"claim": true, "agent": "a"})).await;
        assert_eq!(again["task"]["id"], "TASK-002");
        client.clock_control.advance(Duration::from_secs(901));
        let late = client.ok("tasks_next", json!({"claim": true, "agent": "c"})).await;
        assert_eq!(late["task"]["id"], "TASK-002");
        let rejected = client.call("tasks_next", json!({"release": "TASK-002", "agent": "a"})).await.fails("CONFLICT");
        assert_eq!(rejected.error()["actual"]["agent"], "c");
        client.ok("tasks_next", json!({"release": "TASK-002", "agent": "c"})).await;
        assert_eq!(field(client, "TASK-002", "claim").await, json!(null));
        let free = client.call("tasks_next", json!({"release": "TASK-002", "agent": "c"})).await;
        assert!(free.warns("not claimed"));
    }

    async fn next_page_does_not_claim_again(client: &Client) {
        five_tasks(client).await;
        let mut args = json!({"claim": true, "agent": "a", "limit": 1});
        let mut page = client.ok("tasks_next", args.clone()).await;
        assert_eq!((page["task"]["id"].as_str(), page["task"]["revision"].as_i64()), (Some("TASK-002"), Some(1)));
        let expires = page["claim"]["expires_at"].clone();
        let mut seen = Vec::new();
        loop {
            assert_eq!(page["pagination"]["count"], 1);
            seen.push(page["ready"][0]["id"].as_str().unwrap().to_owned());
            args["cursor"] = page["pagination"]["next_cursor"].clone();
            if args["cursor"].is_null() { break; }
            page = client.ok("tasks_next", args.clone()).await;
            assert_eq!(page["task"], json!(null));
        }
        assert_eq!(seen, ["TASK-002", "TASK-004", "TASK-003", "TASK-005", "TASK-001"]);
        assert_eq!(revision(client, "TASK-002").await, 1);
        assert_eq!(field(client, "TASK-002", "claim").await["expires_at"], expires);
        // The same if the page ends inside the claimed task.
        client.ok("tasks_edit", json!({"task": "TASK-002", "description": "d".repeat(3000)})).await;
        let mut args = json!({"claim": true, "agent": "a", "max_chars": 1500});
        let mut content = String::new();
        loop {
            let page = client.ok("tasks_next", args.clone()).await;
            content.push_str(page["task"]["content"].as_str().unwrap_or_default());
            args["cursor"] = page["pagination"]["next_cursor"].clone();
            if args["cursor"].is_null() { break; }
        }
        let task: Value = serde_json::from_str(&content).unwrap();
        assert_eq!((task["id"].as_str(), task["revision"].as_i64()), (Some("TASK-002"), Some(3)));
        assert_eq!(revision(client, "TASK-002").await, 3);
        // The next page does not repeat a release.
        let mut args = json!({"release": "TASK-002", "agent": "a", "limit": 1});
        args["cursor"] = client.ok("tasks_next", args.clone()).await["pagination"]["next_cursor"].clone();
        let page = client.call("tasks_next", args).await;
        assert!(!page.warns("not claimed"), "{}", page.text);
        client.call("tasks_next", json!({"claim": true, "agent": "a", "cursor": "bad"})).await.fails("INVALID_INPUT");
    }

    async fn ttl_s_out_of_range_is_clamped_with_a_warning(client: &Client) {
        bare_task(client).await;
        for (ttl, clamped) in [(0, Some(1)), (-5, Some(1)), (1_000_000_000_000_i64, Some(86_400)), (60, None)] {
            let answer = client.call("tasks_next", json!({"claim": true, "agent": "a", "ttl_s": ttl})).await;
            match clamped {
                Some(clamped) => assert!(answer.warns(&format!("ttl_s was clamped to {clamped}")), "{}", answer.text),
                None => assert!(!answer.warns("clamped"), "{}", answer.text),
            }
        }
    }

    async fn empty_queue_returns_no_task(client: &Client) {
        let empty = client.call("tasks_next", json!({"claim": true, "agent": "a"})).await;
        assert!(empty.warns("no task is ready"));
        assert_eq!(empty.envelope["result"]["task"], json!(null));
        client.call("tasks_next", json!({"release": "TASK-001", "agent": "a"})).await.fails("UNKNOWN_ID");
    }
}
