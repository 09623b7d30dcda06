//! Outages of the PostgreSQL server: error messages, retries and unanswered commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tenon_contract::clock::Clock;
use tenon_testkit::postgres::PostgresServer;
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkspaceName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::client::call;

/// Longer than any test: no answer is caused by this timeout.
const PATIENCE: Duration = Duration::from_secs(3600);

async fn work(url: &str) -> Work {
    let store = Store::open_with(&StoreLocation::Postgres(url.to_owned()), PATIENCE).await.unwrap();
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    Work::new(store, Clock::system(), settings)
}

/// A TCP proxy proxy a store and its server.
struct Proxy {
    url: String,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Breaks all connections.
    breaks: Notify,
    /// Number of next connections to close immediately.
    reject_next: AtomicUsize,
    /// Forward the next commit, but not its answer.
    drop_commit_answer: AtomicBool,
}

impl Proxy {
    async fn new(server: &PostgresServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = server.database();
        let (_, after_user) = url.rsplit_once('@').unwrap();
        let (address, database) = after_user.split_once('/').unwrap();
        let url = format!("postgres://tenon@{}/{database}", listener.local_addr().unwrap());
        let faults = Arc::new(Faults::default());
        tokio::spawn(serve(listener, address.to_owned(), Arc::clone(&faults)));
        Self { url, faults }
    }
}

async fn serve(listener: TcpListener, server: String, faults: Arc<Faults>) {
    while let Ok((client, _)) = listener.accept().await {
        let fewer = |left: usize| left.checked_sub(1);
        if faults.reject_next.try_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_err() {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(forward(client, server, Arc::clone(&faults)));
        }
    }
}

async fn forward(client: TcpStream, server: TcpStream, faults: Arc<Faults>) {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let dropped = tokio::select! {
        dropped = forward_requests(from_client, to_server, &faults) => dropped,
        () = forward_answers(&mut from_server, &mut to_client) => false,
        () = faults.breaks.notified() => false,
    };
    if dropped {
        // Keep both connections open until the server has committed, so that the client's next read sees the change.
        let mut answer = Vec::new();
        while !has_commit(&answer) && from_server.read_buf(&mut answer).await.is_ok_and(|count| count > 0) {}
    }
}

/// Both the request and its answer contain this text.
fn has_commit(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|text| text == b"COMMIT")
}

/// Forwards requests. Returns true after a commit whose answer must be dropped.
async fn forward_requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, faults: &Faults) -> bool {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = match from.read(&mut bytes).await {
            Ok(count) if count > 0 => count,
            _ => return false,
        };
        let dropped = has_commit(&bytes[..count]) && faults.drop_commit_answer.swap(false, Ordering::SeqCst);
        if to.write_all(&bytes[..count]).await.is_err() || dropped {
            return dropped;
        }
    }
}

async fn forward_answers(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut bytes).await {
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let server = PostgresServer::new();
    let work = work(&server.database()).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    drop(server);
    let (read, write, wait) = tokio::join!(
        call(&work, "tasks_context", json!({})),
        call(&work, "tasks_note", json!({"task": "PLAN-001", "note": "n"})),
        call(&work, "tasks_delta", json!({"wait_ms": 25_000})),
    );
    for answer in [read, write, wait] {
        let answer = answer.fails("STORE_ERROR");
        let error = answer.error();
        assert!(error["message"].as_str().unwrap().contains("cannot reach"), "{error}");
        assert!(error["recovery"].as_str().unwrap().contains("server"), "{error}");
        assert_eq!(error["retryable"], true);
    }
}

#[tokio::test]
async fn short_outage_is_retried() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    for (tool, args) in
        [("tasks_context", json!({})), ("tasks_note", json!({"task": "PLAN-001", "note": "n"}))]
    {
        proxy.faults.reject_next.store(1, Ordering::SeqCst);
        proxy.faults.breaks.notify_waiters();
        call(&work, tool, args).await.ok();
        assert_eq!(proxy.faults.reject_next.load(Ordering::SeqCst), 0, "{tool}");
    }
}

#[tokio::test]
async fn unanswered_commit_is_reported_as_unknown() {
    let server = PostgresServer::new();
    let proxy = Proxy::new(&server).await;
    let work = work(&proxy.url).await;
    call(&work, "memory_init", json!({})).await.ok();
    proxy.faults.drop_commit_answer.store(true, Ordering::SeqCst);
    let answer = call(&work, "tasks_create", json!({"title": "Plan"})).await.fails("STORE_ERROR");
    let error = answer.error();
    assert!(error["message"].as_str().unwrap().contains("may or may not be stored"), "{error}");
    assert!(error["recovery"].as_str().unwrap().contains("before you repeat"), "{error}");
    assert_eq!(error["retryable"], false);
    let found = call(&work, "tasks_context", json!({})).await.ok();
    assert_eq!(found["plans"][0]["title"], "Plan");
}
