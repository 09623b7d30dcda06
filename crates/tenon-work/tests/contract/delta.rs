//! The event stream.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, call, on_both};
use crate::fixture::task;

fn ids(result: &Value) -> Vec<String> {
    result["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event_id"].as_str().unwrap().to_owned())
        .collect()
}

on_both! {
    async fn events_after_since_come_in_order(client: &Client) {
        task(client).await;
        for number in 0..5 {
            client.ok("tasks_note", json!({"task": "TASK-001", "note": format!("n{number}")})).await;
        }
        let all = client.ok("tasks_delta", json!({})).await;
        assert_eq!(ids(&all), (1..=7).map(|n| format!("evt_{n:016}")).collect::<Vec<_>>());
        let some = client.ok("tasks_delta", json!({"since": "evt_0000000000000005"})).await;
        assert_eq!(ids(&some), ["evt_0000000000000006", "evt_0000000000000007"]);
        let plan = client.ok("tasks_delta", json!({"task": "PLAN-001"})).await;
        assert_eq!(ids(&plan), ["evt_0000000000000001"]);
        client.call("tasks_delta", json!({"task": "TASK-009"})).await.fails("UNKNOWN_ID");
        let mut seen = Vec::new();
        let mut cursor = json!(null);
        loop {
            let page = client.ok("tasks_delta", json!({"limit": 2, "cursor": cursor})).await;
            seen.extend(ids(&page));
            cursor = page["pagination"]["next_cursor"].clone();
            if cursor.is_null() { break; }
        }
        assert_eq!(seen, ids(&all));
    }

    async fn wait_ms_out_of_range_is_clamped_with_a_warning(client: &Client) {
        task(client).await;
        for (wait, warning) in [(json!(-1), "wait_ms was clamped to 0"), (json!(25_001), "wait_ms was clamped to 25000"),
            (json!(1e30), "wait_ms was clamped to 25000")] {
            let answer = client.call("tasks_delta", json!({"wait_ms": wait})).await;
            assert!(answer.warns(warning), "{}", answer.text);
        }
        let answer = client.call("tasks_delta", json!({"wait_ms": 25_000})).await;
        assert_eq!(answer.envelope["warnings"], json!([]));
    }

    async fn every_event_is_recorded_in_the_trace_document(client: &Client) {
        task(client).await;
        client.ok("tasks_note", json!({"task": "TASK-001", "path": "s:1", "note": "n"})).await;
        let trace = client.ok("memory_show", json!({"target": "TASK-001", "doc_kind": "trace"})).await;
        assert_eq!(trace["doc"], "TASK-001-trace");
        let entries = trace["entries"].as_array().unwrap();
        let titles: Vec<&str> = entries.iter().map(|entry| entry["title"].as_str().unwrap()).collect();
        assert_eq!(titles, ["task_created", "note_added"]);
        assert!(entries.iter().all(|entry| entry["kind"] == "event"));
        assert_eq!(entries[1]["meta"], json!({"event_id": "evt_0000000000000003", "task": "TASK-001", "path": "s:1"}));
        let payload: Value = serde_json::from_str(entries[1]["content"].as_str().unwrap()).unwrap();
        let delta = client.ok("tasks_delta", json!({"since": "evt_0000000000000002"})).await;
        assert_eq!(payload, delta["events"][0]["payload"]);
    }

    async fn wait_ends_with_an_event_or_the_timeout(client: &Client) {
        task(client).await;
        // No event: the call waits for the given time and returns an empty list.
        let none = client.ok("tasks_delta", json!({"since": "evt_0000000000000002", "wait_ms": 30})).await;
        assert_eq!(ids(&none), Vec::<String>::new());
        // This daemon and another one write while the call waits.
        let peer = client.peer().await;
        for (writer, event) in [(&client.work, 3), (&peer, 4), (&client.work, 5), (&peer, 6)] {
            let since = format!("evt_{:016}", event - 1);
            let waiting = client.ok("tasks_delta", json!({"since": since, "wait_ms": 20_000}));
            // If the event does not end the wait, the answer comes after this deadline.
            let waiting = tokio::time::timeout(Duration::from_secs(15), waiting);
            let writing = async {
                // Usually lets the wait begin before the write; the test must pass in either order.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                call(writer, "tasks_note", json!({"task": "TASK-001", "note": "news"})).await.ok();
            };
            let (delta, ()) = tokio::join!(waiting, writing);
            assert_eq!(ids(&delta.expect("the event ends the wait")), [format!("evt_{event:016}")]);
        }
        // With pending events there is no wait.
        let now = client.ok("tasks_delta", json!({"wait_ms": 25_000})).await;
        assert_eq!(ids(&now).len(), 6);
        peer.store().close().await;
    }
}
