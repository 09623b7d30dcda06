//! A server that goes away: what is said about it, and what is known of a call that it did not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tenon_contract::clock::Clock;
use tenon_testkit::postgres::Server;
use tenon_work::{Store, StoreLocation, Work, WorkSettings, WorkspaceName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::client::call;

/// Far beyond what a test may take: an answer that comes is not owed to it.
const PATIENCE: Duration = Duration::from_secs(3600);

async fn work(url: &str) -> Work {
    let store = Store::open_with(&StoreLocation::Postgres(url.to_owned()), PATIENCE).await.unwrap();
    let settings = WorkSettings { workspace: Some(WorkspaceName::parse("w").unwrap()), strict: false };
    Work::new(store, Clock::system(), settings)
}

/// Stands between a store and its server.
struct Between {
    url: String,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// All connections break.
    breaks: Notify,
    /// How many of the next connections end as soon as they have begun.
    refused: AtomicUsize,
    /// The next commit reaches the server, and nothing comes back.
    cut: AtomicBool,
}

impl Between {
    async fn new(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = server.database();
        let (_, place) = url.rsplit_once('@').unwrap();
        let (address, database) = place.split_once('/').unwrap();
        let url = format!("postgres://tenon@{}/{database}", listener.local_addr().unwrap());
        let faults = Arc::new(Faults::default());
        tokio::spawn(serve(listener, address.to_owned(), Arc::clone(&faults)));
        Self { url, faults }
    }
}

async fn serve(listener: TcpListener, server: String, faults: Arc<Faults>) {
    while let Ok((client, _)) = listener.accept().await {
        let fewer = |left: usize| left.checked_sub(1);
        if faults.refused.try_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_err() {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(carry(client, server, Arc::clone(&faults)));
        }
    }
}

async fn carry(client: TcpStream, server: TcpStream, faults: Arc<Faults>) {
    let (from_client, to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let cut = tokio::select! {
        cut = asked(from_client, to_server, &faults) => cut,
        () = answered(&mut from_server, to_client) => false,
        () = faults.breaks.notified() => false,
    };
    if cut {
        // Once the server says anything it has done what it was asked.
        let _ = from_server.read(&mut [0]).await;
    }
}

/// Hands on what the client says. True if it ends with a commit that is not to be answered.
async fn asked(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, faults: &Faults) -> bool {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = match from.read(&mut bytes).await {
            Ok(count) if count > 0 => count,
            _ => return false,
        };
        let commits = bytes[..count].windows(6).any(|word| word == b"COMMIT");
        let cut = commits && faults.cut.swap(false, Ordering::SeqCst);
        if to.write_all(&bytes[..count]).await.is_err() || cut {
            return cut;
        }
    }
}

async fn answered(from: &mut OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut bytes).await {
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_said_to_be_gone() {
    let server = Server::new();
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
        assert!(error["message"].as_str().unwrap().contains("cannot be reached"), "{error}");
        assert!(error["recovery"].as_str().unwrap().contains("server"), "{error}");
        assert_eq!(error["retryable"], true);
    }
}

#[tokio::test]
async fn a_server_that_is_back_soon_was_never_gone() {
    let server = Server::new();
    let between = Between::new(&server).await;
    let work = work(&between.url).await;
    call(&work, "tasks_create", json!({"title": "Plan"})).await.ok();
    for (tool, args) in
        [("tasks_context", json!({})), ("tasks_note", json!({"task": "PLAN-001", "note": "n"}))]
    {
        between.faults.refused.store(1, Ordering::SeqCst);
        between.faults.breaks.notify_waiters();
        call(&work, tool, args).await.ok();
        assert_eq!(between.faults.refused.load(Ordering::SeqCst), 0, "{tool}");
    }
}

#[tokio::test]
async fn a_commit_that_nobody_answered_may_be_stored() {
    let server = Server::new();
    let between = Between::new(&server).await;
    let work = work(&between.url).await;
    call(&work, "memory_init", json!({})).await.ok();
    between.faults.cut.store(true, Ordering::SeqCst);
    let answer = call(&work, "tasks_create", json!({"title": "Plan"})).await.fails("STORE_ERROR");
    let error = answer.error();
    assert!(error["message"].as_str().unwrap().contains("not known whether it was stored"), "{error}");
    assert!(error["recovery"].as_str().unwrap().contains("before you repeat it"), "{error}");
    assert_eq!(error["retryable"], false);
    let found = call(&work, "tasks_context", json!({})).await.ok();
    assert_eq!(found["plans"][0]["title"], "Plan");
}
