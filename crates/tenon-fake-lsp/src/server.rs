//! The server's loop: reads frames, runs rules, writes their messages.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tenon_contract::position::{Encoding, Position};
use tenon_lsp::codec::FrameDecoder;
use tenon_lsp::message::{self, Message, RequestId, RpcError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder;

use crate::documents::{Documents, bad_imports, lint, mentions, word};
use crate::script::{Action, Diagnostic, Publish, Rule, Script, Version};

/// Capacity of the output queue, so that a script never waits for its own output.
const QUEUE: usize = 128 * 1024;

/// Runs a script until the client or the script ends it; the result is the exit code.
pub async fn serve(
    script: Script,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    transcript: Option<PathBuf>,
) -> i32 {
    let (outgoing, queue) = mpsc::channel(QUEUE);
    let server = Arc::new(Server {
        encoding: encoding_of(&script.capabilities),
        script,
        documents: Mutex::default(),
        counts: Mutex::default(),
        outgoing,
        next_id: AtomicI64::new(1),
        reading: AtomicBool::new(true),
        root: Mutex::default(),
        transcript: transcript.and_then(|path| {
            std::fs::OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
        }),
    });
    server.record(&json!({ "started": std::process::id() }));
    if server.script.child {
        server.start_child();
    }
    let writing = tokio::spawn(write_loop(writer, queue, server.script.partial));
    let code = tokio::select! {
        code = Arc::clone(&server).read_loop(reader) => code,
        code = terminated(server.script.deaf_to_sigterm) => code,
    };
    writing.abort();
    code
}

async fn terminated(deaf: bool) -> i32 {
    let Ok(mut signals) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    loop {
        signals.recv().await;
        if !deaf {
            return 143;
        }
    }
}

fn encoding_of(capabilities: &Value) -> Encoding {
    match capabilities["positionEncoding"].as_str() {
        Some("utf-8") => Encoding::Utf8,
        Some("utf-32") => Encoding::Utf32,
        _ => Encoding::Utf16,
    }
}

enum Outgoing {
    Bytes(Bytes),
    Close,
}

async fn write_loop(
    writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    partial: Option<crate::Partial>,
) {
    let mut writer = Some(writer);
    while let Some(order) = queue.recv().await {
        let Outgoing::Bytes(bytes) = order else {
            writer = None;
            close_stdout();
            continue;
        };
        let Some(writer) = &mut writer else {
            continue;
        };
        let size = partial.map_or(bytes.len().max(1), |partial| partial.bytes.max(1));
        for piece in bytes.chunks(size) {
            if writer.write_all(piece).await.is_err() || writer.flush().await.is_err() {
                return;
            }
            if let Some(partial) = partial {
                tokio::time::sleep(Duration::from_millis(partial.pause_ms)).await;
            }
        }
    }
}

/// Redirects stdout to `/dev/null`, so that the client sees it close.
fn close_stdout() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(null);
    }
}

/// Redirects stdin from `/dev/null`, so that the client's next write fails.
fn close_stdin() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(null);
    }
}

struct Server {
    script: Script,
    encoding: Encoding,
    documents: Mutex<Documents>,
    /// The number of matching messages, by rule.
    counts: Mutex<BTreeMap<usize, u64>>,
    outgoing: mpsc::Sender<Outgoing>,
    next_id: AtomicI64,
    reading: AtomicBool,
    root: Mutex<String>,
    transcript: Option<Mutex<std::fs::File>>,
}

/// The message that triggered a rule.
#[derive(Clone)]
struct Cause {
    id: Option<RequestId>,
    params: Value,
    uri: String,
    version: i64,
}

impl Server {
    async fn read_loop(self: Arc<Self>, mut reader: impl AsyncRead + Unpin) -> i32 {
        let mut decoder = FrameDecoder::default();
        let mut buffer = BytesMut::new();
        loop {
            loop {
                match decoder.decode(&mut buffer) {
                    Ok(Some(frame)) => {
                        if let Some(code) = self.handle(&frame).await {
                            return code;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.record(&json!({ "unreadable": error.to_string() }));
                        return 3;
                    }
                }
            }
            if !self.reading.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            match reader.read_buf(&mut buffer).await {
                Ok(1..) => {}
                _ if self.script.deaf_to_eof => std::future::pending().await,
                _ => return 0,
            }
        }
    }

    async fn handle(self: &Arc<Self>, frame: &Bytes) -> Option<i32> {
        let value: Value = serde_json::from_slice(frame).unwrap_or_default();
        self.record(&json!({ "in": value }));
        let (id, method, params) = match Message::parse(frame).ok()? {
            Message::Request { id, method, params } => (Some(id), method, params),
            Message::Notification { method, params } => (None, method, params),
            Message::Response { .. } => return None,
        };
        let params: Value = params.parse().unwrap_or_default();
        lock(&self.documents).apply(&method, &params, self.encoding);
        match (&*method, &id) {
            ("initialize", Some(id)) => return self.initialize(id, &params).await,
            ("exit", None) if !self.script.deaf_to_exit => return Some(0),
            _ => {}
        }
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
        let version = lock(&self.documents).get(&uri).map_or(0, |document| document.version);
        let cause = Cause { id, params, uri, version };
        let matching = self.matching(&method, &cause);
        if matching.is_empty()
            && let Some(id) = &cause.id
        {
            match &*method {
                "shutdown" => self.answer(id, Ok(&Value::Null)),
                _ if self.script.ignores_unknown => {}
                _ => self.answer(id, Err(&RpcError::method_not_found())),
            }
        }
        for actions in matching {
            if self.script.in_order {
                self.run(&actions, &cause).await;
                continue;
            }
            let server = Arc::clone(self);
            let cause = cause.clone();
            tokio::spawn(async move { server.run(&actions, &cause).await });
        }
        // Rules without a pause finish before the next message is read.
        tokio::task::yield_now().await;
        None
    }

    async fn initialize(self: &Arc<Self>, id: &RequestId, params: &Value) -> Option<i32> {
        *lock(&self.root) = params["rootUri"].as_str().unwrap_or_default().to_owned();
        let script = &self.script.initialize;
        let cause = Cause { id: None, params: params.clone(), uri: String::new(), version: 0 };
        self.run(&script.before, &cause).await;
        if script.exit.is_some() {
            return script.exit;
        }
        if script.hang {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(script.delay_ms)).await;
        match &script.refuse {
            Some(message) => self.answer(id, Err(&RpcError::new(RpcError::INTERNAL_ERROR, message))),
            None => self.answer(id, Ok(&json!({ "capabilities": self.script.capabilities }))),
        }
        None
    }

    /// The actions of all rules that match a message.
    fn matching(&self, method: &str, cause: &Cause) -> Vec<Vec<Action>> {
        let mut counts = lock(&self.counts);
        let mut matching = Vec::new();
        for (index, rule) in self.script.rules.iter().enumerate() {
            if rule.on != method || !self.concerns(rule, cause) {
                continue;
            }
            let count = counts.entry(index).or_default();
            *count += 1;
            if rule.nth.is_none_or(|nth| nth == *count) && rule.from.is_none_or(|from| *count >= from) {
                matching.push(rule.actions.clone());
            }
        }
        matching
    }

    fn concerns(&self, rule: &Rule, cause: &Cause) -> bool {
        let file = rule.file.as_ref().is_none_or(|file| cause.uri.ends_with(file.as_str()));
        let text = rule.text.as_ref().is_none_or(|text| {
            let documents = lock(&self.documents);
            documents.get(&cause.uri).is_some_and(|document| document.lines.text().contains(text.as_str()))
        });
        file && text
    }

    async fn run(self: &Arc<Self>, actions: &[Action], cause: &Cause) {
        for action in actions {
            self.act(action, cause).await;
        }
    }

    async fn act(self: &Arc<Self>, action: &Action, cause: &Cause) {
        match action {
            Action::Reply(value) => self.reply(cause, &self.filled(value, cause)),
            Action::Refuse { code, message } => {
                if let Some(id) = &cause.id {
                    self.answer(id, Err(&RpcError::new(*code, message)));
                }
            }
            Action::ReplyHere => {
                let at = &cause.params["position"];
                self.reply(cause, &json!([{ "uri": cause.uri, "range": { "start": at, "end": at } }]));
            }
            Action::ReplyWord => {
                let position: Position =
                    serde_json::from_value(cause.params["position"].clone()).unwrap_or_default();
                let found = lock(&self.documents)
                    .get(&cause.uri)
                    .map(|document| word(&document.lines, position, self.encoding));
                let value = found.unwrap_or_else(|| "(not open)".to_owned());
                self.reply(cause, &json!({ "contents": { "kind": "plaintext", "value": value } }));
            }
            Action::ReplyLocations(locations) => {
                let uri = self.uri_of(&locations.uri, cause);
                let list: Vec<Value> = (0..locations.count)
                    .map(|line| {
                        let range = json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 1 } });
                        json!({ "uri": uri, "range": range })
                    })
                    .collect();
                self.reply(cause, &json!(list));
            }
            Action::ReplyMentions(files) => {
                let found = self.mentions(files, cause);
                let places = found.iter().flat_map(|(uri, _, ranges)| {
                    ranges.iter().map(move |range| json!({ "uri": uri, "range": range }))
                });
                self.reply(cause, &places.collect());
            }
            Action::ReplyRename(files) => {
                let to = &cause.params["newName"];
                let found = self.mentions(files, cause);
                let documents =
                    found.iter().filter(|(_, _, ranges)| !ranges.is_empty()).map(|(uri, version, ranges)| {
                        let edits: Vec<Value> =
                            ranges.iter().map(|range| json!({ "range": range, "newText": to })).collect();
                        json!({ "textDocument": { "uri": uri, "version": version }, "edits": edits })
                    });
                self.reply(cause, &json!({ "documentChanges": documents.collect::<Vec<Value>>() }));
            }
            Action::ReplyLint => {
                let items = self.lint(&cause.uri);
                self.reply(cause, &json!({ "kind": "full", "items": items }));
            }
            Action::ReplyImports => {
                let items = bad_imports(&lock(&self.documents), &cause.uri, self.encoding);
                self.reply(cause, &json!({ "kind": "full", "items": items }));
            }
            Action::ReplyWrongId(value) => self.answer(&RequestId::Number(-7), Ok(value)),
            Action::WaitMs(pause) => tokio::time::sleep(Duration::from_millis(*pause)).await,
            Action::Publish(publish) => self.publish(publish, cause),
            Action::Progress(progress) => self.notify(
                "$/progress",
                &json!({ "token": progress.token, "value": { "kind": progress.kind, "title": "work" } }),
            ),
            Action::Notify { method, params } => self.notify(method, &self.filled(params, cause)),
            Action::Request { method, params } => self.request(method, &self.filled(params, cause)),
            Action::Raw(text) => self.send(Bytes::from(text.clone())),
            Action::RawFrame(body) => {
                self.send(Bytes::from(format!("Content-Length: {}\r\n\r\n{body}", body.len())));
            }
            Action::FloodStderr(bytes) => {
                let line = [b'x'; 1023];
                let mut stderr = std::io::stderr().lock();
                for _ in 0..bytes.div_ceil(1024) {
                    let _ = stderr.write_all(&line).and_then(|()| stderr.write_all(b"\n"));
                }
            }
            Action::FloodRequests(count) => {
                for _ in 0..*count {
                    self.request("workspace/configuration", &json!({ "items": [{ "section": "x" }] }));
                }
            }
            Action::FloodFiles(count) => {
                let range =
                    json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
                for number in 0..*count {
                    let uri = format!("{}{number}", cause.uri);
                    let diagnostics = json!([{ "range": range, "message": "flood" }]);
                    self.notify(
                        "textDocument/publishDiagnostics",
                        &json!({ "uri": uri, "diagnostics": diagnostics }),
                    );
                }
            }
            Action::Exit(code) => std::process::exit(*code),
            Action::Die => std::process::abort(),
            Action::CloseStdout => {
                let _ = self.outgoing.try_send(Outgoing::Close);
            }
            Action::CloseStdin => {
                self.reading.store(false, Ordering::Relaxed);
                close_stdin();
                self.record(&json!({ "closed": std::process::id() }));
            }
            Action::StopReading => self.reading.store(false, Ordering::Relaxed),
        }
    }

    /// The places of the word at the position of a request, by file.
    fn mentions(&self, files: &[String], cause: &Cause) -> Vec<(String, Option<i64>, Vec<Value>)> {
        let position: Position = serde_json::from_value(cause.params["position"].clone()).unwrap_or_default();
        let documents = lock(&self.documents);
        let name = documents.get(&cause.uri).map(|open| word(&open.lines, position, self.encoding));
        let name = name.unwrap_or_default();
        let file = |file: &String| {
            let uri = self.uri_of(file, cause);
            let (version, ranges) = mentions(&documents, &uri, &name, self.encoding);
            (uri, version, ranges)
        };
        files.iter().map(file).collect()
    }

    fn publish(&self, publish: &Publish, cause: &Cause) {
        let uri = self.uri_of(&publish.uri, cause);
        let items = match &publish.diagnostics {
            Some(list) => list.iter().map(written).collect(),
            None => self.lint(&uri),
        };
        let mut params = json!({ "uri": uri, "diagnostics": items });
        match publish.version {
            Version::Caused => params["version"] = json!(cause.version),
            Version::Exactly(version) => params["version"] = json!(version),
            Version::None => {}
        }
        self.notify("textDocument/publishDiagnostics", &params);
    }

    fn lint(&self, uri: &str) -> Vec<Value> {
        let documents = lock(&self.documents);
        documents.get(uri).map(|document| lint(&document.lines, self.encoding)).unwrap_or_default()
    }

    fn uri_of(&self, uri: &str, cause: &Cause) -> String {
        match uri {
            "$uri" => cause.uri.clone(),
            relative => format!("{}/{relative}", lock(&self.root)),
        }
    }

    /// Replaces names by the values of the message.
    fn filled(&self, value: &Value, cause: &Cause) -> Value {
        match value {
            Value::String(text) => match text.as_str() {
                "$uri" => json!(cause.uri),
                "$version" => json!(cause.version),
                "$root" => json!(*lock(&self.root)),
                text if text.starts_with("$root/") => json!(text.replacen("$root", &lock(&self.root), 1)),
                _ => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.filled(item, cause)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, item)| (key.clone(), self.filled(item, cause))).collect()
            }
            other => other.clone(),
        }
    }

    fn reply(&self, cause: &Cause, value: &Value) {
        if let Some(id) = &cause.id {
            self.answer(id, Ok(value));
        }
    }

    fn answer(&self, id: &RequestId, outcome: Result<&Value, &RpcError>) {
        if let Ok(frame) = message::response(Some(id), outcome) {
            self.send(frame);
        }
    }

    fn notify(&self, method: &str, params: &Value) {
        if let Ok(frame) = message::notification(method, params) {
            self.send(frame);
        }
    }

    fn request(&self, method: &str, params: &Value) {
        let id = RequestId::Text(format!("fake-{}", self.next_id.fetch_add(1, Ordering::Relaxed)));
        if let Ok(frame) = message::request(&id, method, params) {
            self.send(frame);
        }
    }

    fn send(&self, bytes: Bytes) {
        let _ = self.outgoing.try_send(Outgoing::Bytes(bytes));
    }

    fn start_child(&self) {
        if let Ok(child) = std::process::Command::new("sleep").arg("1000").spawn() {
            self.record(&json!({ "child": child.id() }));
        }
    }

    fn record(&self, value: &Value) {
        if let Some(file) = &self.transcript {
            // One write per line, so that a test that reads meanwhile sees whole lines.
            let _ = lock(file).write_all(format!("{value}\n").as_bytes());
        }
    }
}

fn written(diagnostic: &Diagnostic) -> Value {
    let line = diagnostic.line;
    let range = diagnostic.range.clone().unwrap_or_else(
        || json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 1 } }),
    );
    let mut value = json!({ "range": range, "message": diagnostic.message });
    if let Some(severity) = diagnostic.severity {
        value["severity"] = json!(severity);
    }
    if let Some(code) = &diagnostic.code {
        value["code"] = code.clone();
    }
    if let Some(source) = &diagnostic.source {
        value["source"] = json!(source);
    }
    value
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
