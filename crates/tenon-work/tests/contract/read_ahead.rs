//! On PostgreSQL a write reads its task and step together with the lock of the workspace.

use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};
use tenon_work::StoreLocation;

use crate::client::{Client, On, call};
use crate::fixture::task;

/// Another writer: a connection that locks the workspace.
pub(crate) struct Holder(pub(crate) PgConnection);

impl Holder {
    pub(crate) async fn new(location: &StoreLocation) -> Self {
        let StoreLocation::Postgres(url) = location else { panic!("a server") };
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute("BEGIN; SELECT 1 FROM workspaces WHERE name = 'w' FOR UPDATE").await.unwrap();
        Self(connection)
    }

    /// Waits until another connection waits for the lock.
    pub(crate) async fn has_waiter(&mut self) {
        self.has_waiter_that("").await;
    }

    /// Waits until a connection waits for the lock with a statement that contains this.
    pub(crate) async fn has_waiter_that(&mut self, part: &str) {
        let waiters = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, $1) > 0";
        // A transaction keeps the statistics that it has read until it drops them.
        while sqlx::query_scalar::<_, i64>(waiters).bind(part).fetch_one(&mut self.0).await.unwrap() == 0 {
            self.0.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_while_waiting_for_the_lock_is_seen() {
    for (named, is_on_step) in [
        (json!({"task": "TASK-001", "path": "s:0"}), true),
        (json!({"task": "TASK-001", "step_id": "STEP-00000001"}), true),
        (json!({"task": "TASK-001"}), false),
    ] {
        let client = Client::new(On::Postgres).await;
        task(&client).await;
        let mut holder = Holder::new(&client.location).await;
        let mut args = named.clone();
        args["note"] = json!("n");
        let peer = client.locking_peer().await;
        let waiting = tokio::spawn(async move { call(&peer, "tasks_note", args).await.ok() });
        holder.has_waiter().await;
        let changes = "
            UPDATE targets SET revision = 40, notes = 7, title = 'Changed' WHERE parent IS NOT NULL;
            UPDATE steps SET revision = 50, notes = 9 WHERE step = 1;
            UPDATE workspaces SET events = events + 1;
            COMMIT";
        holder.0.execute(changes).await.unwrap();
        let noted = waiting.await.unwrap();
        assert_eq!(noted["revision"], 41, "{named}");
        if is_on_step {
            assert_eq!(noted["step"]["revision"], 51, "{named}");
        }
        let found = client.ok("tasks_context", json!({"ids": ["TASK-001"]})).await;
        let shown = &found["tasks"][0];
        assert_eq!(shown["title"], "Changed", "{named}");
        assert_eq!(shown["notes"], if is_on_step { 7 } else { 8 }, "{named}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_writer_changes_nothing() {
    let client = Client::new(On::Postgres).await;
    task(&client).await;
    let mut holder = Holder::new(&client.location).await;
    let peer = client.locking_peer().await;
    let args = json!({"task": "TASK-001", "path": "s:0", "note": "n"});
    let waiting = tokio::spawn(async move { call(&peer, "tasks_note", args).await.ok() });
    holder.has_waiter().await;
    holder.0.execute("UPDATE targets SET revision = 40; ROLLBACK").await.unwrap();
    assert_eq!(waiting.await.unwrap()["revision"], 1);
}
