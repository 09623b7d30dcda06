//! When a server's answers cover its project: the evidence that each rule of the registry needs.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::time::Instant;

use tenon_servers::registry::ReadinessRule;

/// What is known about a server's readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// What it said before that may be less than it knew after.
    Since(Instant),
    /// Nothing but time is missing.
    NotBefore(Instant),
    /// Something that the server must send is missing.
    Waiting,
}

/// Collects evidence since the server's start, with the time it came.
#[derive(Debug)]
pub(crate) struct Readiness {
    rule: Option<ReadinessRule>,
    started: Instant,
    /// When the first document was opened: before, a server may have nothing to load.
    opened: Option<Instant>,
    diagnosed: Option<Instant>,
    quiescent: Option<Instant>,
    announced: Option<Instant>,
    /// Work that the server announced and has not ended. We hand out no tokens of our own, so all of it is the server's.
    running: BTreeSet<String>,
    worked: Option<Instant>,
}

impl Readiness {
    pub(crate) fn new(rule: Option<ReadinessRule>, now: Instant) -> Self {
        Self {
            rule,
            started: now,
            opened: None,
            diagnosed: None,
            quiescent: None,
            announced: None,
            running: BTreeSet::new(),
            worked: None,
        }
    }

    pub(crate) fn state(&self, now: Instant) -> State {
        let since = match &self.rule {
            None | Some(ReadinessRule::Immediate) => Some(self.started),
            Some(ReadinessRule::FirstDiagnostics) => self.diagnosed,
            Some(ReadinessRule::ServerStatus) => self.quiescent,
            Some(ReadinessRule::LogMessage { .. }) => self.announced,
            Some(ReadinessRule::Progress { .. }) if !self.running.is_empty() => None,
            Some(rule @ ReadinessRule::Progress { .. }) => match (self.worked, self.opened) {
                (Some(worked), _) => Some(worked),
                (None, None) => None,
                (None, Some(opened)) => {
                    let until = opened + rule.grace().unwrap_or_default();
                    if now < until {
                        return State::NotBefore(until);
                    }
                    Some(until)
                }
            },
        };
        since.map_or(State::Waiting, State::Since)
    }

    /// Whether it has shown that it has loaded its project. A server that was given time to begin and did not is asked, but
    /// nobody vouches for its answers: a `clangd` without a list of files to compile never reads any but the open ones.
    pub(crate) fn is_proven(&self) -> bool {
        match self.rule {
            None => false,
            Some(ReadinessRule::Progress { .. }) => self.worked.is_some(),
            Some(_) => true,
        }
    }

    /// Whether the server works on something that it announced.
    pub(crate) fn is_working(&self) -> bool {
        !self.running.is_empty()
    }

    pub(crate) fn document_opened(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
    }

    pub(crate) fn diagnostics_arrived(&mut self, now: Instant) {
        self.diagnosed.get_or_insert(now);
    }

    /// `window/logMessage`. Says whether it was the one that is waited for.
    pub(crate) fn log_message(&mut self, text: &str, now: Instant) -> bool {
        let awaited =
            matches!(&self.rule, Some(ReadinessRule::LogMessage { contains }) if text.contains(contains));
        if awaited {
            self.announced.get_or_insert(now);
        }
        awaited
    }

    /// `experimental/serverStatus`.
    pub(crate) fn server_status(&mut self, params: &Value, now: Instant) {
        match params.get("quiescent").and_then(Value::as_bool) {
            Some(true) => {
                self.quiescent.get_or_insert(now);
            }
            Some(false) => self.quiescent = None,
            None => {}
        }
    }

    /// `$/progress`.
    pub(crate) fn progress(&mut self, params: &Value, now: Instant) {
        let Some(token) = params.get("token").map(Value::to_string) else {
            return;
        };
        match params.pointer("/value/kind").and_then(Value::as_str) {
            Some("begin") => {
                self.running.insert(token);
            }
            Some("end") if self.running.remove(&token) => self.worked = Some(now),
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
        let mut readiness = Readiness::new(Some(ReadinessRule::Progress { grace_ms: 500 }), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.document_opened(start);
        let grace = Duration::from_millis(500);
        assert_eq!(readiness.state(start), State::NotBefore(start + grace));
        readiness.progress(&progress("a", "begin"), start);
        assert_eq!(readiness.state(start + grace), State::Waiting);
        readiness.progress(&progress("b", "begin"), start);
        assert!(!readiness.is_proven());
        readiness.progress(&progress("a", "end"), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.progress(&progress("b", "end"), start);
        assert_eq!(readiness.state(start), State::Since(start));
        assert!(readiness.is_proven());
        readiness.progress(&progress("c", "begin"), start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_without_its_begin_proves_nothing() {
        let start = Instant::now();
        let mut readiness = Readiness::new(Some(ReadinessRule::Progress { grace_ms: 1 }), start);
        readiness.progress(&progress("early", "end"), start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn quiescence_comes_and_goes() {
        let start = Instant::now();
        let mut readiness = Readiness::new(Some(ReadinessRule::ServerStatus), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.server_status(&json!({ "quiescent": true, "health": "ok" }), start);
        assert_eq!(readiness.state(start), State::Since(start));
        readiness.server_status(&json!({ "quiescent": false }), start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_say_in_its_log_that_it_is_ready() {
        let start = Instant::now();
        let mut readiness =
            Readiness::new(Some(ReadinessRule::LogMessage { contains: "source file".to_owned() }), start);
        assert!(!readiness.log_message("Assuming Python version 3.11", start));
        assert_eq!(readiness.state(start), State::Waiting);
        assert!(readiness.log_message("Found 883 source files", start));
        assert_eq!(readiness.state(start), State::Since(start));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rule_waits_end_and_nothing_is_proved() {
        let start = Instant::now();
        let readiness = Readiness::new(None, start);
        assert_eq!(readiness.state(start), State::Since(start));
        assert!(!readiness.is_proven());
    }
}
