//! When a server's answers cover its project: the evidence that each rule of the registry needs.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::time::Instant;

use crate::registry::Ready;

/// What is known about a server's readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Nothing but time is missing.
    NotBefore(Instant),
    /// Something that the server must send is missing.
    Waiting,
}

/// Collects evidence since the server's start.
#[derive(Debug)]
pub(crate) struct Readiness {
    rule: Option<Ready>,
    /// When the first document was opened: before, a server may have nothing to load.
    opened: Option<Instant>,
    diagnosed: bool,
    quiescent: bool,
    announced: bool,
    /// Work that the server announced and has not ended. We hand out no tokens of our own, so all of it is the server's.
    running: BTreeSet<String>,
    worked: bool,
}

impl Readiness {
    pub(crate) fn new(rule: Option<Ready>) -> Self {
        Self {
            rule,
            opened: None,
            diagnosed: false,
            quiescent: false,
            announced: false,
            running: BTreeSet::new(),
            worked: false,
        }
    }

    pub(crate) fn state(&self, now: Instant) -> State {
        let ready = match &self.rule {
            None | Some(Ready::Immediate) => true,
            Some(Ready::FirstDiagnostics) => self.diagnosed,
            Some(Ready::ServerStatus) => self.quiescent,
            Some(Ready::LogMessage { .. }) => self.announced,
            Some(Ready::Progress { .. }) if !self.running.is_empty() => false,
            Some(Ready::Progress { .. }) if self.worked => true,
            Some(rule @ Ready::Progress { .. }) => {
                let Some(opened) = self.opened else {
                    return State::Waiting;
                };
                let until = opened + rule.grace().unwrap_or_default();
                if now < until {
                    return State::NotBefore(until);
                }
                true
            }
        };
        if ready { State::Ready } else { State::Waiting }
    }

    /// Whether a complete answer can be told from a partial one.
    pub(crate) fn is_provable(&self) -> bool {
        self.rule.is_some()
    }

    /// Whether the server works on something that it announced.
    pub(crate) fn is_working(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether the rule needs an open document before it can be met.
    pub(crate) fn needs_document(&self) -> bool {
        matches!(self.rule, Some(Ready::FirstDiagnostics | Ready::Progress { .. })) && self.opened.is_none()
    }

    pub(crate) fn document_opened(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
    }

    pub(crate) fn diagnostics_arrived(&mut self) {
        self.diagnosed = true;
    }

    /// `window/logMessage`.
    pub(crate) fn log_message(&mut self, text: &str) -> bool {
        let awaited = matches!(&self.rule, Some(Ready::LogMessage { contains }) if text.contains(contains));
        self.announced |= awaited;
        awaited
    }

    /// `experimental/serverStatus`.
    pub(crate) fn server_status(&mut self, params: &Value) {
        if let Some(quiescent) = params.get("quiescent").and_then(Value::as_bool) {
            self.quiescent = quiescent;
        }
    }

    /// `$/progress`.
    pub(crate) fn progress(&mut self, params: &Value) {
        let Some(token) = params.get("token").map(Value::to_string) else {
            return;
        };
        match params.pointer("/value/kind").and_then(Value::as_str) {
            Some("begin") => {
                self.running.insert(token);
            }
            Some("end") if self.running.remove(&token) => self.worked = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn progress(token: &str, kind: &str) -> Value {
        json!({ "token": token, "value": { "kind": kind } })
    }

    #[tokio::test(start_paused = true)]
    async fn progress_must_begin_and_end_or_stay_away_for_the_grace_time() {
        let start = Instant::now();
        let mut readiness = Readiness::new(Some(Ready::Progress { grace_ms: 500 }));
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.document_opened(start);
        let grace = Duration::from_millis(500);
        assert_eq!(readiness.state(start), State::NotBefore(start + grace));
        readiness.progress(&progress("a", "begin"));
        assert_eq!(readiness.state(start + grace), State::Waiting);
        readiness.progress(&progress("b", "begin"));
        readiness.progress(&progress("a", "end"));
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.progress(&progress("b", "end"));
        assert_eq!(readiness.state(start), State::Ready);
        readiness.progress(&progress("c", "begin"));
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_without_its_begin_proves_nothing() {
        let mut readiness = Readiness::new(Some(Ready::Progress { grace_ms: 1 }));
        readiness.progress(&progress("early", "end"));
        assert_eq!(readiness.state(Instant::now()), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn quiescence_comes_and_goes() {
        let mut readiness = Readiness::new(Some(Ready::ServerStatus));
        assert_eq!(readiness.state(Instant::now()), State::Waiting);
        readiness.server_status(&json!({ "quiescent": true, "health": "ok" }));
        assert_eq!(readiness.state(Instant::now()), State::Ready);
        readiness.server_status(&json!({ "quiescent": false }));
        assert_eq!(readiness.state(Instant::now()), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_say_in_its_log_that_it_is_ready() {
        let mut readiness = Readiness::new(Some(Ready::LogMessage { contains: "source file".to_owned() }));
        assert!(!readiness.log_message("Assuming Python version 3.11"));
        assert_eq!(readiness.state(Instant::now()), State::Waiting);
        assert!(readiness.log_message("Found 883 source files"));
        assert_eq!(readiness.state(Instant::now()), State::Ready);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rule_waits_end_and_nothing_is_proved() {
        let readiness = Readiness::new(None);
        assert_eq!(readiness.state(Instant::now()), State::Ready);
        assert!(!readiness.is_provable());
    }
}
