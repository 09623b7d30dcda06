//! The connection over pipes in memory: every request ends once, and no peer can block it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use tenon_lsp::codec::{self, FrameDecoder};
use tenon_lsp::message::{Payload, RpcError};
use tenon_lsp::transport::{Closed, Connection, Peer, RequestError};
use tenon_lsp::{CallContext, Interrupted};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio_util::codec::Decoder;

/// Records notifications, and answers every request with its method.
#[derive(Default)]
struct RecordingPeer(Mutex<Vec<String>>);

impl Peer for RecordingPeer {
    fn notification(&self, method: &str, _: Payload) -> Result<(), Closed> {
        self.0.lock().unwrap().push(method.to_owned());
        Ok(())
    }

    fn request(&self, method: &str, _: Payload) -> Result<Value, RpcError> {
        Ok(json!(method))
    }
}

/// The other end of the connection, driven by the test.
struct Far {
    from: DuplexStream,
    to: DuplexStream,
    decoder: FrameDecoder,
    buffer: BytesMut,
}

impl Far {
    async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer).unwrap() {
                return Some(serde_json::from_slice(&frame).unwrap());
            }
            if self.from.read_buf(&mut self.buffer).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn write(&mut self, message: Value) {
        self.to.write_all(&codec::frame(&message).unwrap()).await.unwrap();
    }
}

struct Near {
    connection: Connection,
    ears: Arc<RecordingPeer>,
    run: JoinHandle<Closed>,
}

fn connect(capacity: usize) -> (Near, Far) {
    let (near_out, far_in) = duplex(capacity);
    let (far_out, near_in) = duplex(capacity);
    let ears = Arc::new(RecordingPeer::default());
    let (connection, run) = Connection::open(near_in, near_out, Arc::clone(&ears) as Arc<dyn Peer>);
    let near = Near { connection, ears, run: tokio::spawn(run) };
    (near, Far { from: far_in, to: far_out, decoder: FrameDecoder::default(), buffer: BytesMut::new() })
}

fn call() -> CallContext {
    CallContext::within(Duration::from_secs(1000))
}

#[tokio::test]
async fn answers_in_any_order_reach_their_requests() {
    let (near, mut far) = connect(1 << 16);
    let call = call();
    let mut replies = Vec::new();
    for number in 0..3 {
        replies.push(near.connection.request(&call, "m", &json!([number])).await.unwrap());
    }
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(far.read().await.unwrap());
    }
    for request in asked.iter().rev() {
        far.write(json!({ "id": request["id"], "result": request["params"] })).await;
    }
    for (number, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.wait(&call).await.unwrap().parse::<[usize; 1]>().unwrap(), [number]);
    }
}

#[tokio::test(start_paused = true)]
async fn timed_out_request_is_cancelled_and_its_late_answer_ignored() {
    let (near, mut far) = connect(1 << 16);
    let late = near.connection.request(&call(), "late", &Value::Null).await.unwrap();
    let id = far.read().await.unwrap()["id"].clone();
    let ending = late.wait(&CallContext::within(Duration::from_secs(1))).await;
    assert!(matches!(ending, Err(RequestError::Interrupted(Interrupted::Deadline))));
    let cancel = far.read().await.unwrap();
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("$/cancelRequest"), &id));
    far.write(json!({ "id": id, "result": "too late" })).await;
    far.write(json!({ "id": "unknown", "result": 1 })).await;
    far.write(json!({ "id": id, "result": "again" })).await;

    let next = near.connection.request(&call(), "next", &Value::Null).await.unwrap();
    let id = far.read().await.unwrap()["id"].clone();
    far.write(json!({ "id": id, "error": { "code": 7, "message": "no" } })).await;
    let Err(RequestError::Refused(error)) = next.wait(&call()).await else { panic!("refused") };
    assert_eq!((error.code, error.message.as_str()), (7, "no"));
}

#[tokio::test]
async fn cancelled_request_ends_at_once() {
    let (near, mut far) = connect(1 << 16);
    let call = call();
    let reply = near.connection.request(&call, "m", &Value::Null).await.unwrap();
    far.read().await.unwrap();
    call.cancel.cancel();
    assert!(matches!(reply.wait(&call).await, Err(RequestError::Interrupted(Interrupted::Cancelled))));
    assert_eq!(far.read().await.unwrap()["method"], "$/cancelRequest");
}

#[tokio::test]
async fn answer_that_is_too_large_ends_only_its_request() {
    let (near, mut far) = connect(1 << 16);
    let call = call();
    let large = near.connection.request(&call, "large", &json!({})).await.unwrap();
    let small = near.connection.request(&call, "small", &json!({})).await.unwrap();
    let ids = [far.read().await.unwrap()["id"].clone(), far.read().await.unwrap()["id"].clone()];
    let list = "x".repeat(codec::MAX_BODY_BYTES);
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":\"{list}\"}}", ids[0]);
    far.to.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    far.write(json!({ "id": ids[1], "result": 1 })).await;
    assert!(matches!(large.wait(&call).await, Err(RequestError::TooLarge)));
    assert_eq!(small.wait(&call).await.unwrap().parse::<u32>().unwrap(), 1);
}

#[tokio::test]
async fn closed_pipe_ends_every_open_request() {
    let (near, far) = connect(1 << 16);
    let call = call();
    let mut replies = Vec::new();
    for _ in 0..10 {
        replies.push(near.connection.request(&call, "m", &Value::Null).await.unwrap());
    }
    drop(far);
    for reply in replies {
        assert!(matches!(reply.wait(&call).await, Err(RequestError::Closed(_))));
    }
    near.run.await.unwrap();
    let after = near.connection.request(&call, "m", &Value::Null).await;
    assert!(matches!(after, Err(RequestError::Closed(_))));
    assert!(near.connection.notify(&call, "m", &Value::Null).await.is_err());
}

#[tokio::test]
async fn requests_and_notifications_of_the_peer_are_handled_in_order() {
    let (near, mut far) = connect(1 << 16);
    far.write(json!({ "method": "one" })).await;
    far.write(json!({ "id": "a", "method": "ask" })).await;
    far.write(json!({ "method": "two" })).await;
    assert_eq!(far.read().await.unwrap(), json!({ "jsonrpc": "2.0", "id": "a", "result": "ask" }));
    let reply = near.connection.request(&call(), "m", &Value::Null).await.unwrap();
    let id = far.read().await.unwrap()["id"].clone();
    far.write(json!({ "id": id, "result": null })).await;
    reply.wait(&call()).await.unwrap();
    assert_eq!(*near.ears.0.lock().unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn answer_is_seen_before_later_notifications() {
    let (near, mut far) = connect(1 << 16);
    let ears = Arc::clone(&near.ears);
    let note = move |_: &Result<Payload, RpcError>| ears.0.lock().unwrap().push("answer".to_owned());
    near.connection.request_mark(&call(), "m", &Value::Null, note).await.unwrap();
    let id = far.read().await.unwrap()["id"].clone();
    far.write(json!({ "method": "before" })).await;
    far.write(json!({ "id": id, "result": null })).await;
    far.write(json!({ "method": "after" })).await;
    drop(far);
    near.run.await.unwrap();
    assert_eq!(*near.ears.0.lock().unwrap(), ["before", "answer", "after"]);
}

#[tokio::test(start_paused = true)]
async fn peer_that_stops_reading_ends_the_connection() {
    let (near, _far) = connect(64);
    let call = call();
    let reply = near.connection.request(&call, "m", &"x".repeat(1000)).await.unwrap();
    assert!(matches!(reply.wait(&call).await, Err(RequestError::Closed(Closed::Stalled))));
    assert_eq!(near.run.await.unwrap(), Closed::Stalled);
}

#[tokio::test(start_paused = true)]
async fn peer_that_stops_inside_a_frame_ends_the_connection() {
    let (near, mut far) = connect(1 << 16);
    far.to.write_all(b"Content-Length: 100\r\n\r\n{\"half\":").await.unwrap();
    assert_eq!(near.run.await.unwrap(), Closed::Stalled);
}

#[tokio::test(start_paused = true)]
async fn idle_peer_keeps_the_connection_open() {
    let (near, mut far) = connect(1 << 16);
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    far.write(json!({ "method": "still here" })).await;
    drop(far);
    assert_eq!(near.run.await.unwrap(), Closed::EndOfStream);
    assert_eq!(*near.ears.0.lock().unwrap(), ["still here"]);
}

#[tokio::test(start_paused = true)]
async fn full_queue_waits_until_the_calls_deadline() {
    let (near, _far) = connect(64);
    let call = CallContext::within(Duration::from_secs(5));
    let mut sent = 0;
    let ending = loop {
        match near.connection.notify(&call, "m", &"x".repeat(100)).await {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(ending, RequestError::Interrupted(Interrupted::Deadline)), "{ending:?} after {sent}");
    assert!(sent < 1000, "the queue has a bound");
}
