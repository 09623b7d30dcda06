//! A proxy in front of a PostgreSQL server that breaks connections and counts statements.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenon_testkit::postgres::PostgresServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A TCP proxy between a store and its server.
pub(crate) struct Proxy {
    pub(crate) url: String,
    pub(crate) faults: Arc<Faults>,
}

#[derive(Default)]
pub(crate) struct Faults {
    /// Breaks all connections.
    pub(crate) breaks: Notify,
    /// Number of next connections to close immediately.
    pub(crate) reject_next: AtomicUsize,
    /// Forward the next request with this text, but not its answer.
    pub(crate) drop_answer_to: Mutex<Option<&'static str>>,
    /// Prepared statements that were executed.
    executed: AtomicUsize,
    /// Transactions that were begun.
    begun: AtomicUsize,
}

impl Faults {
    /// How many transactions were begun and prepared statements executed since the last time.
    pub(crate) fn sent(&self) -> (usize, usize) {
        (self.begun.swap(0, Ordering::SeqCst), self.executed.swap(0, Ordering::SeqCst))
    }
}

impl Proxy {
    pub(crate) async fn new(server: &PostgresServer) -> Self {
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
        while !has(&answer, READY) && from_server.read_buf(&mut answer).await.is_ok_and(|count| count > 0) {}
    }
}

/// The end of an answer, outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Forwards requests. Returns true after one whose answer must be dropped.
async fn forward_requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, faults: &Faults) -> bool {
    let mut bytes = vec![0; 1 << 16];
    let mut messages = Messages::default();
    loop {
        let count = match from.read(&mut bytes).await {
            Ok(count) if count > 0 => count,
            _ => return false,
        };
        for message in messages.complete(&bytes[..count]) {
            match message.as_slice() {
                [b'E', ..] => faults.executed.fetch_add(1, Ordering::SeqCst),
                [b'Q', text @ ..] if has(text, b"BEGIN") => faults.begun.fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
        }
        let is_named = |text: &mut &str| has(&bytes[..count], text.as_bytes());
        let dropped = faults.drop_answer_to.lock().unwrap().take_if(is_named).is_some();
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

/// The messages of a client, in any pieces.
#[derive(Default)]
struct Messages {
    pending: Vec<u8>,
    is_started: bool,
}

impl Messages {
    /// The messages that these bytes complete, each with its type.
    fn complete(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.pending.extend_from_slice(bytes);
        let mut complete = Vec::new();
        loop {
            // The first messages have no type: a question about TLS, and the start.
            let head = usize::from(self.is_started);
            let Some(length) = self.pending.get(head..head + 4) else { return complete };
            let end = head + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if self.pending.len() < end {
                return complete;
            }
            let message: Vec<u8> = self.pending.drain(..end).collect();
            if self.is_started {
                complete.push(message);
            } else {
                self.is_started = message.len() > 8;
            }
        }
    }
}
