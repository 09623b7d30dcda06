//! What clients do: the connected clients, and the last tool calls while they run and after.
//!
//! Kept in memory only, and bounded. A call is recorded with its short scalar arguments, which have their secrets masked;
//! texts, files and answers are not recorded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tenon_contract::clock::Clock;
use tokio::sync::watch;

use crate::log::redact::redact;
use crate::surface::{Arguments, ToolOutcome};

/// How many calls are kept.
pub const MAX_CALLS: usize = 2_000;

/// The longest argument that is recorded, in characters.
const MAX_ARGUMENT: usize = 120;

/// How many arguments are recorded.
const MAX_ARGUMENTS: usize = 8;

/// The longest name of a client or a tool that is recorded, in characters.
const MAX_NAME: usize = 80;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    Running,
    Ok,
    /// The tool answered with an error.
    Failed,
    /// The call was cancelled, or its client left.
    Cancelled,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    pub number: u64,
    pub client: String,
    pub tool: String,
    /// Short scalar arguments, as text.
    pub arguments: BTreeMap<String, String>,
    pub started_at: String,
    pub duration_us: u64,
    /// The size of the answer.
    pub bytes: usize,
    pub outcome: CallOutcome,
}

/// A connected client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientRecord {
    pub number: u64,
    /// As the client calls itself; empty before its handshake.
    pub name: String,
    pub version: String,
    pub connected_at: String,
    pub calls: u64,
}

#[derive(Default)]
struct Inner {
    last: u64,
    calls: VecDeque<(CallRecord, Duration)>,
    clients: BTreeMap<u64, ClientRecord>,
}

/// See the module.
pub struct ActivityLog {
    clock: Clock,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

impl ActivityLog {
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { clock, inner: Mutex::default(), changes: watch::Sender::new(0) })
    }

    /// Changes with every record.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The calls, the newest first. Those that run have the duration so far.
    pub fn calls(&self) -> Vec<CallRecord> {
        let now = self.clock.monotonic();
        let inner = self.inner();
        let calls = inner.calls.iter().rev();
        calls
            .map(|(record, started)| {
                let mut record = record.clone();
                if record.outcome == CallOutcome::Running {
                    record.duration_us = micros(now.saturating_sub(*started));
                }
                record
            })
            .collect()
    }

    /// The connected clients, the oldest first.
    pub fn clients(&self) -> Vec<ClientRecord> {
        self.inner().clients.values().cloned().collect()
    }

    /// Records a client until the guard is dropped.
    pub(crate) fn connect(self: &Arc<Self>) -> ClientConnection {
        let connected_at = self.clock.rfc3339();
        let number = self.change(|inner| {
            inner.last += 1;
            let number = inner.last;
            let record =
                ClientRecord { number, name: String::new(), version: String::new(), connected_at, calls: 0 };
            inner.clients.insert(number, record);
            number
        });
        ClientConnection { log: Arc::clone(self), number }
    }

    /// Records a call that begins. Dropping the guard without an outcome records that it was cancelled.
    pub(crate) fn begin(self: &Arc<Self>, client: &str, tool: &str, arguments: &Arguments) -> RunningCall {
        let started = self.clock.monotonic();
        let started_at = self.clock.rfc3339();
        let number = self.change(|inner| {
            inner.last += 1;
            let record = CallRecord {
                number: inner.last,
                client: cut(client, MAX_NAME),
                tool: cut(tool, MAX_NAME),
                arguments: shown(arguments),
                started_at,
                duration_us: 0,
                bytes: 0,
                outcome: CallOutcome::Running,
            };
            inner.calls.push_back((record, started));
            if inner.calls.len() > MAX_CALLS {
                inner.calls.pop_front();
            }
            inner.last
        });
        RunningCall { log: Arc::clone(self), number, started, ended: false }
    }

    fn end(&self, number: u64, started: Duration, outcome: CallOutcome, bytes: usize) {
        let duration = self.clock.monotonic().saturating_sub(started);
        self.change(|inner| {
            let found = inner.calls.binary_search_by_key(&number, |(record, _)| record.number);
            if let Ok(at) = found {
                let (record, _) = &mut inner.calls[at];
                record.duration_us = micros(duration);
                record.outcome = outcome;
                record.bytes = bytes;
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.inner());
        self.changes.send_modify(|version| *version += 1);
        result
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connected client, until it is dropped.
pub(crate) struct ClientConnection {
    log: Arc<ActivityLog>,
    number: u64,
}

impl ClientConnection {
    /// The client said who it is.
    pub(crate) fn name(&self, name: &str, version: &str) {
        self.log.change(|inner| {
            if let Some(client) = inner.clients.get_mut(&self.number) {
                client.name = cut(name, MAX_NAME);
                client.version = cut(version, MAX_NAME);
            }
        });
    }

    /// The client made a call.
    pub(crate) fn count_call(&self) {
        if let Some(client) = self.log.inner().clients.get_mut(&self.number) {
            client.calls += 1;
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.log.change(|inner| inner.clients.remove(&self.number));
    }
}

/// A call that runs.
pub(crate) struct RunningCall {
    log: Arc<ActivityLog>,
    number: u64,
    started: Duration,
    ended: bool,
}

impl RunningCall {
    /// The call ended with an outcome of this size.
    pub(crate) fn end(mut self, outcome: &ToolOutcome, bytes: usize) {
        self.ended = true;
        let outcome = match outcome {
            Ok(answer) if !answer.is_error => CallOutcome::Ok,
            Ok(_) | Err(_) => CallOutcome::Failed,
        };
        self.log.end(self.number, self.started, outcome, bytes);
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.ended {
            self.log.end(self.number, self.started, CallOutcome::Cancelled, 0);
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// The arguments that are short enough to show.
fn shown(arguments: &Arguments) -> BTreeMap<String, String> {
    let scalars = arguments.iter().filter_map(|(name, value)| {
        let text = match value {
            Value::String(text) if text.chars().count() <= MAX_ARGUMENT => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        // The name next to the value may mark it as a secret.
        let pair = format!("{name}={text}");
        let clean = redact(&pair);
        let value = clean.split_once('=').map_or("", |(_, value)| value).to_owned();
        Some((cut(name, MAX_NAME), value))
    });
    scalars.take(MAX_ARGUMENTS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::surface::ToolAnswer;

    fn arguments(value: &Value) -> Arguments {
        value.as_object().expect("the test passes an object").clone()
    }

    #[test]
    fn call_is_visible_while_it_runs_and_after() {
        let log = ActivityLog::new(Clock::system());
        let call = log.begin("agent", "find", &arguments(&json!({"name": "Order", "body": true})));
        assert_eq!(log.calls()[0].outcome, CallOutcome::Running);
        assert_eq!(log.calls()[0].arguments["name"], "Order");
        call.end(&Ok(ToolAnswer::text("found")), 5);
        assert_eq!(log.calls()[0].outcome, CallOutcome::Ok);
        assert_eq!(log.calls()[0].bytes, 5);
        drop(log.begin("agent", "references", &Arguments::new()));
        assert_eq!(log.calls()[0].outcome, CallOutcome::Cancelled);
    }

    #[test]
    fn secrets_and_texts_are_not_recorded() {
        let log = ActivityLog::new(Clock::system());
        let given = json!({"api_key": "abcdef123456", "note": "password=hunter22", "text": "x".repeat(500)});
        let _call = log.begin("agent", "tasks_note", &arguments(&given));
        let record = log.calls().remove(0);
        assert_eq!(record.arguments.len(), 2);
        assert!(!format!("{record:?}").contains("abcdef123456"), "{record:?}");
        assert!(!format!("{record:?}").contains("hunter22"), "{record:?}");
    }

    #[test]
    fn the_oldest_calls_give_way() {
        let log = ActivityLog::new(Clock::system());
        for _ in 0..MAX_CALLS + 5 {
            log.begin("agent", "find", &Arguments::new()).end(&Ok(ToolAnswer::text("")), 0);
        }
        let calls = log.calls();
        assert_eq!(calls.len(), MAX_CALLS);
        assert!(calls.iter().all(|call| call.outcome == CallOutcome::Ok));
    }

    #[test]
    fn client_is_listed_until_it_leaves() {
        let log = ActivityLog::new(Clock::system());
        let client = log.connect();
        client.name("claude-code", "2.0");
        client.count_call();
        assert_eq!((log.clients()[0].name.as_str(), log.clients()[0].calls), ("claude-code", 1));
        drop(client);
        assert!(log.clients().is_empty());
    }
}
