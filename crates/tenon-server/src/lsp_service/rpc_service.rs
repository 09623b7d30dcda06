//! The service's methods over framed JSON-RPC: every request gets exactly one response.
//!
//! `lsp/checkFile` always returns a list, empty for a file that cannot be checked. A cancelled request stops waiting and
//! returns what is known: cancelling is not an error here.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tenon_lsp::CallContext;
use tenon_lsp::codec::{CodecError, FrameDecoder};
use tenon_lsp::message::{self, Message, MessageError, Payload, RequestId, RpcError};
use tenon_lsp::model::Severity;
use tenon_lsp::orchestrator::Orchestrator;
use tenon_lsp::service::{self, CheckFile, DiagnosticsAfter, ServiceServerStatus};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::codec::Decoder;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::diagnostics_json;
use super::host_servers::HostIds;

/// Queued responses. A host that does not read makes further requests wait.
const OUTBOX: usize = 256;
/// Requests in flight; further ones are rejected.
const IN_FLIGHT: usize = 1024;
const TOO_MANY: i64 = -32000;
/// How long the host may take to read the last responses.
const LAST_WRITES: Duration = Duration::from_millis(300);
/// The default and the longest wait of `lsp/diagnosticsAfter`.
const WAIT: Duration = Duration::from_millis(250);
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Answers the methods of the contract.
pub(super) struct RpcService {
    orchestrator: Orchestrator,
    severities: Vec<Severity>,
    host_ids: HostIds,
    outbox: mpsc::Sender<Bytes>,
    running: Arc<Mutex<BTreeMap<RequestId, CancellationToken>>>,
    tasks: TaskTracker,
}

impl RpcService {
    pub(super) fn new(
        orchestrator: Orchestrator,
        severities: Vec<Severity>,
        host_ids: HostIds,
    ) -> (Arc<Self>, mpsc::Receiver<Bytes>) {
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let (running, tasks) = (Arc::default(), TaskTracker::new());
        let service = Self { orchestrator, severities, host_ids, outbox, running, tasks };
        (Arc::new(service), messages)
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        if let Ok(frame) = message::notification(method, params) {
            let _ = self.outbox.send(frame).await;
        }
    }

    async fn answer(&self, id: Option<&RequestId>, outcome: Result<&Value, &RpcError>) {
        if let Ok(frame) = message::response(id, outcome) {
            // Fails only if the host has stopped reading.
            let _ = self.outbox.send(frame).await;
        }
    }

    async fn run(&self, method: &str, params: &Payload, call: &CallContext) -> Result<Value, RpcError> {
        match method {
            service::CHECK_FILE => Ok(self.check_file(params, call).await),
            service::DIAGNOSTICS => {
                let files = self.orchestrator.diagnostics().await;
                Ok(json!(diagnostics_json::files(self.orchestrator.gate(), &files, &self.severities)))
            }
            service::GET_DIAGNOSTIC_EPOCH => Ok(json!(self.orchestrator.epoch())),
            service::DIAGNOSTICS_AFTER => self.diagnostics_after(params, call).await,
            service::STATUS => {
                let status = self.orchestrator.status().into_iter().map(ServiceServerStatus::from);
                let status = status.map(|one| match self.host_ids.get(&one.id) {
                    Some(host_id) => one.called(host_id),
                    None => one,
                });
                Ok(json!(status.collect::<Vec<_>>()))
            }
            _ => Err(RpcError::method_not_found()),
        }
    }

    async fn check_file(&self, params: &Payload, call: &CallContext) -> Value {
        let nothing = || json!([]);
        let Ok(params) = params.parse::<CheckFile>() else {
            return nothing();
        };
        let gate = self.orchestrator.gate();
        if !params.file_path.starts_with('/') {
            return nothing();
        }
        let Ok(path) = gate.admit_path(&params.file_path) else {
            return nothing();
        };
        match self.orchestrator.check(&path, params.text, call).await {
            Ok(answer) => json!(diagnostics_json::file(gate, &path, &answer.value, &self.severities)),
            Err(_) => nothing(),
        }
    }

    async fn diagnostics_after(&self, params: &Payload, call: &CallContext) -> Result<Value, RpcError> {
        let params: DiagnosticsAfter =
            params.parse().map_err(|error| RpcError::new(RpcError::INVALID_PARAMS, error.to_string()))?;
        let wait = params.wait_ms.map_or(WAIT, Duration::from_millis).min(MAX_WAIT);
        let files = self.orchestrator.diagnostics_after(params.after_epoch, wait, call).await;
        Ok(json!(diagnostics_json::files(self.orchestrator.gate(), &files, &self.severities)))
    }

    /// Starts a request. Returns `true` for the one that ends the service.
    async fn request(self: &Arc<Self>, id: RequestId, method: String, params: Payload) -> bool {
        if method == service::SHUTDOWN {
            self.leave().await;
            self.answer(Some(&id), Ok(&Value::Null)).await;
            return true;
        }
        let cancel = CancellationToken::new();
        let refused = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let full = running.len() >= IN_FLIGHT;
            let twice = running.contains_key(&id);
            if !full && !twice {
                running.insert(id.clone(), cancel.clone());
            }
            match (full, twice) {
                (_, true) => Some(RpcError::new(RpcError::INVALID_REQUEST, "the id is in use")),
                (true, false) => Some(RpcError::new(TOO_MANY, "too many requests in flight")),
                (false, false) => None,
            }
        };
        if let Some(error) = refused {
            self.answer(Some(&id), Err(&error)).await;
            return false;
        }
        let service = Arc::clone(self);
        // Requests run concurrently; the texts that they pass keep the order of arrival.
        let call = CallContext::new(Instant::now() + MAX_WAIT * 60, cancel).in_order();
        self.tasks.spawn(async move {
            let outcome = service.run(&method, &params, &call).await;
            service.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            service.answer(Some(&id), outcome.as_ref()).await;
        });
        false
    }

    /// Cancels requests in flight and shuts the servers down.
    async fn leave(&self) {
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for cancel in running.into_values() {
            cancel.cancel();
        }
        self.orchestrator.shutdown().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn cancel(&self, params: &Payload) {
        let params: Value = params.parse().unwrap_or_default();
        let Some(id) = params.get("id").and_then(RequestId::from_value) else {
            return;
        };
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancel) = running.get(&id) {
            cancel.cancel();
        }
    }

    /// Handles one frame. Returns `true` to end the service.
    async fn handle(self: &Arc<Self>, frame: &Bytes) -> bool {
        match Message::parse(frame) {
            Ok(Message::Request { id, method, params }) => return self.request(id, method, params).await,
            Ok(Message::Notification { method, params }) => match method.as_str() {
                "$/cancelRequest" => self.cancel(&params),
                "exit" => return true,
                _ => {}
            },
            Ok(Message::Response { .. }) => {}
            Err(MessageError::Json(error)) => {
                let error = RpcError::new(RpcError::PARSE_ERROR, error.to_string());
                self.answer(None, Err(&error)).await;
            }
            Err(MessageError::Shape(problem)) => {
                self.answer(None, Err(&RpcError::new(RpcError::INVALID_REQUEST, problem))).await;
            }
        }
        false
    }
}

/// Serves until the host ends it or disconnects. Earlier responses are still written, unless the host does not read.
pub(super) async fn run<R, W>(
    service: &Arc<RpcService>,
    outbox: mpsc::Receiver<Bytes>,
    stdin: R,
    stdout: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let finished = CancellationToken::new();
    // A separate task: a half-written frame must not be dropped when reading ends.
    let mut writing = tokio::spawn(write(outbox, stdout, finished.clone()));
    let ended = tokio::select! {
        ended = read(service, stdin) => ended,
        written = &mut writing => return written.unwrap_or_else(|error| Err(io::Error::other(error))),
    };
    finished.cancel();
    // A host that stopped reading does not delay the exit.
    let _ = tokio::time::timeout(LAST_WRITES, &mut writing).await;
    writing.abort();
    ended
}

async fn read(service: &Arc<RpcService>, mut stdin: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut decoder = FrameDecoder::default();
    let mut buffer = BytesMut::new();
    loop {
        match decoder.decode(&mut buffer) {
            Ok(Some(frame)) => {
                if service.handle(&frame).await {
                    return Ok(());
                }
                continue;
            }
            Ok(None) => {}
            Err(CodecError::Io(error)) => return Err(error),
            Err(unframed) => return Err(io::Error::new(io::ErrorKind::InvalidData, unframed)),
        }
        buffer.reserve(8 * 1024);
        if stdin.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

async fn write(
    mut outbox: mpsc::Receiver<Bytes>,
    mut stdout: impl AsyncWrite + Unpin,
    finished: CancellationToken,
) -> io::Result<()> {
    loop {
        let frame = tokio::select! {
            biased;
            frame = outbox.recv() => frame,
            () = finished.cancelled() => None,
        };
        let Some(frame) = frame else {
            return stdout.flush().await;
        };
        stdout.write_all(&frame).await?;
        if outbox.is_empty() {
            stdout.flush().await?;
        }
    }
}
