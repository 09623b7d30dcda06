//! Workspaces: names, defaults, strict mode.

use serde_json::json;
use tenon_work::WorkSettings;

use crate::client::{Client, On, on_both};

on_both! {
    async fn workspace_branch_and_document_names_are_validated(client: &Client) {
        for good in ["a", "github.com/owner/repo", "A.b_c-d/9", &"x".repeat(128)] {
            client.ok("tasks_context", json!({"workspace": good})).await;
            client.ok("tasks_create", json!({"workspace": good, "title": "t"})).await;
        }
        for bad in ["", "-a", "/a", "a b", "ä", "a|b", "a\nb", "a\u{0}b", &"x".repeat(129)] {
            for tool in ["tasks_context", "memory_init", "memory_status"] {
                let answer = client.call(tool, json!({"workspace": bad})).await;
                // NUL is rejected before any other check.
                answer.fails(if bad.contains('\0') { "INVALID_INPUT" } else { "INVALID_NAME" });
            }
        }
        for bad in ["-a", "", "a b", "task/TASK-001", "plan/PLAN-1234"] {
            client.call("memory_branch_create", json!({"name": bad})).await.fails("INVALID_NAME");
        }
        // Only the exact names of plans and tasks are reserved.
        for good in ["plan/x", "task/fix-login", "task/TASK-01", "task/TASK-0001", "task/PLAN-001", "task/TASK-001/x"] {
            let created = client.ok("memory_branch_create", json!({"name": good})).await;
            assert_eq!(created["branch"]["name"], good);
            client.ok("memory_checkout", json!({"ref": good})).await;
        }
        client.ok("memory_checkout", json!({"ref": "main"})).await;
        client.ok("memory_init", json!({})).await;
        client.call("memory_checkout", json!({"ref": "a b"})).await.fails("INVALID_NAME");
        client.call("memory_show", json!({"branch": "!", "doc": "notes"})).await.fails("INVALID_NAME");
        client.call("memory_show", json!({"branch": "main", "doc": "a b"})).await.fails("INVALID_INPUT");
    }

    async fn first_write_creates_the_workspace_and_earlier_reads_are_empty(client: &Client) {
        for tool in ["tasks_context", "tasks_next", "tasks_delta", "memory_show", "memory_branch_list", "memory_status",
            "memory_graph_query", "memory_graph_validate", "memory_think_context", "tasks_focus_get", "tasks_radar"] {
            let answer = client.call(tool, json!({})).await;
            assert!(answer.warns("does not exist yet"), "{tool}");
            assert_eq!(answer.ok()["workspace"], "w");
        }
        let empty = client.ok("memory_search", json!({"query": "x"})).await;
        assert_eq!(empty["hits"], json!([]));
        let status = client.ok("memory_status", json!({})).await;
        assert_eq!(status["workspace_exists"], false);
        let first = client.call("tasks_create", json!({"title": "t"})).await;
        assert!(first.warns("workspace `w` was created"));
        let second = client.call("tasks_create", json!({"title": "t"})).await;
        assert!(!second.warns("created"));
        let status = client.ok("memory_status", json!({})).await;
        assert_eq!(status["workspace_exists"], true);
        assert_eq!((status["checkout"].as_str(), status["last_event"].as_str()), (Some("main"), Some("evt_0000000000000002")));
        assert_eq!(status["last_doc_entry"]["doc"], "PLAN-002-trace");
        assert_eq!(status["schema_version"], 5);
    }

    async fn memory_init_is_idempotent(client: &Client) {
        let first = client.ok("memory_init", json!({})).await;
        assert_eq!((first["created"].clone(), first["schema_version"].clone()), (json!(true), json!(5)));
        assert_eq!(client.ok("memory_init", json!({})).await["created"], false);
    }

    async fn rejected_first_write_creates_no_workspace(client: &Client) {
        client.call("tasks_create", json!({"title": "t", "parent": "PLAN-001"})).await.fails("UNKNOWN_ID");
        assert_eq!(client.ok("memory_status", json!({})).await["workspace_exists"], false);
    }
}

async fn strict(on: On) {
    let client = Client::with(on, WorkSettings { workspace: None, strict: true }).await;
    client.call("tasks_context", json!({})).await.fails("INVALID_INPUT");
    let rejected = client.call("tasks_context", json!({"workspace": "s"})).await.fails("UNKNOWN_WORKSPACE");
    assert_eq!(rejected.suggested(), ["memory_init"]);
    let rejected =
        client.call("tasks_create", json!({"workspace": "s", "title": "t"})).await.fails("NOT_INITIALIZED");
    assert_eq!(rejected.suggested(), ["memory_init"]);
    // `memory_status` is always allowed.
    assert_eq!(client.ok("memory_status", json!({"workspace": "s"})).await["workspace_exists"], false);
    client.ok("memory_init", json!({"workspace": "s"})).await;
    client.ok("tasks_create", json!({"workspace": "s", "title": "t"})).await;
    client.ok("tasks_context", json!({"workspace": "s"})).await;
}

#[tokio::test]
async fn strict_mode_requires_initialised_workspace_on_sqlite() {
    strict(On::Sqlite).await;
}

#[tokio::test]
async fn strict_mode_requires_initialised_workspace_on_postgres() {
    strict(On::Postgres).await;
}
