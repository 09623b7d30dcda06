//! Collects the evidence for a server's readiness rule: when its answers cover the project.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use tenon_servers::registry::ReadinessRule;

/// How much progress may run at once; more is ignored.
pub(super) const MAX_RUNNING: usize = 1000;

/// The longest token of progress, in bytes of JSON.
const MAX_TOKEN_BYTES: usize = 1024;

/// The token of a `$/progress` notification.
pub(super) fn progress_token(params: &Value) -> Option<String> {
    params.get("token").map(Value::to_string).filter(|token| token.len() <= MAX_TOKEN_BYTES)
}

/// Whether a server is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Answers from before that time may be incomplete.
    Since(Instant),
    /// Ready at that time, unless something else arrives.
    NotBefore(Instant),
    /// The server must send something first.
    Waiting,
}

/// The evidence since the server's start, with its times.
#[derive(Debug)]
pub(crate) struct Readiness {
    rule: Option<ReadinessRule>,
    started: Instant,
    /// When the first document was opened; before that, a server may have nothing to load.
    opened: Option<Instant>,
    diagnosed: Option<Instant>,
    quiescent: Option<Instant>,
    /// When it began to fill its caches, with everything loaded.
    filling: Option<Instant>,
    announced: Option<Instant>,
    /// The error that the server reports about itself.
    failure: Option<String>,
    /// It is about to announce itself again, before that time.
    relisting: Option<Relisting>,
    /// Progress that has begun and not ended. We send no tokens, so all of it is the server's own work.
    running: BTreeSet<String>,
    worked: Option<Instant>,
}

/// How long a server may take to list the project's files again. It does not list them if the change does not concern
/// its project.
const RELIST: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Relisting {
    until: Instant,
    was_asked_for: bool,
    /// Whether all new files are open, so that only lists of the whole project lack them.
    are_open: bool,
}

impl Readiness {
    pub(crate) fn new(rule: Option<ReadinessRule>, now: Instant) -> Self {
        Self {
            rule,
            started: now,
            opened: None,
            diagnosed: None,
            quiescent: None,
            filling: None,
            announced: None,
            failure: None,
            relisting: None,
            running: BTreeSet::new(),
            worked: None,
        }
    }

    pub(crate) fn state(&self, now: Instant) -> State {
        let since = match &self.rule {
            None | Some(ReadinessRule::Immediate) => Some(self.started),
            Some(ReadinessRule::FirstDiagnostics) => self.diagnosed,
            Some(ReadinessRule::ServerStatus { .. }) => self.quiescent.or(self.filling),
            Some(ReadinessRule::LogMessage { .. }) => match &self.relisting {
                Some(relisting) if now < relisting.until && !relisting.are_open => {
                    return State::NotBefore(relisting.until);
                }
                _ => self.announced,
            },
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

    /// Whether there is evidence that it has loaded its project. A server that did not begin within the grace time is used, but
    /// its answers may be incomplete: `clangd` without a compilation database reads only open files.
    pub(crate) fn is_proven(&self) -> bool {
        match self.rule {
            None => false,
            Some(ReadinessRule::Progress { .. }) => self.worked.is_some(),
            Some(_) => true,
        }
    }

    /// The error that the server reports about itself: its answers then say nothing about the project.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether the server reports work in progress.
    pub(crate) fn is_working(&self) -> bool {
        !self.running.is_empty()
    }

    pub(crate) fn document_opened(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
    }

    pub(crate) fn diagnostics_arrived(&mut self, now: Instant) {
        self.diagnosed.get_or_insert(now);
    }

    /// `window/logMessage`. Returns whether the message matches the rule.
    pub(crate) fn log_message(&mut self, text: &str, now: Instant) -> bool {
        let awaited =
            matches!(&self.rule, Some(ReadinessRule::LogMessage { contains }) if text.contains(contains));
        if awaited {
            self.announced.get_or_insert(now);
            // A message from before the new files were known to it says nothing about them.
            self.relisting.take_if(|relisting| relisting.was_asked_for);
        }
        awaited
    }

    /// The project's files changed, and it is about to list them again.
    pub(crate) fn lists_again(&mut self, are_open: bool, now: Instant) {
        let were_open = self.relisting.as_ref().is_none_or(|relisting| relisting.are_open);
        let until = now + RELIST;
        self.relisting = Some(Relisting { until, was_asked_for: false, are_open: are_open && were_open });
    }

    /// When it has listed new files, unless it says so earlier; `None` if it has.
    pub(crate) fn listed_at(&self, now: Instant) -> Option<Instant> {
        self.relisting.as_ref().map(|relisting| relisting.until).filter(|until| now < *until)
    }

    /// It knows that the files changed.
    pub(crate) fn list_was_asked_for(&mut self) {
        if let Some(relisting) = &mut self.relisting {
            relisting.was_asked_for = true;
        }
    }

    /// Whether it reports that it is quiescent.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.quiescent.is_some()
    }

    /// `experimental/serverStatus`.
    pub(crate) fn server_status(&mut self, params: &Value, now: Instant) {
        match params.get("quiescent").and_then(Value::as_bool) {
            Some(true) => {
                self.quiescent.get_or_insert(now);
            }
            Some(false) => (self.quiescent, self.filling) = (None, None),
            None => {}
        }
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        self.failure = (text("health") == Some("error")).then(|| {
            let message = text("message").and_then(|message| message.lines().next());
            message.unwrap_or("the server reports an error").to_owned()
        });
    }

    /// `$/progress`.
    pub(crate) fn progress(&mut self, params: &Value, now: Instant) {
        let Some(token) = progress_token(params) else {
            return;
        };
        let kind = params.pointer("/value/kind").and_then(Value::as_str);
        if self.fills_caches(&token) {
            // No answer depends on its end, so it does not count as running.
            if kind == Some("begin") {
                self.filling.get_or_insert(now);
            }
            return;
        }
        match kind {
            Some("begin") if self.running.len() < MAX_RUNNING => {
                // It loads something again.
                self.filling = None;
                self.running.insert(token);
            }
            Some("end") if self.running.remove(&token) => self.worked = Some(now),
            _ => {}
        }
    }

    fn fills_caches(&self, token: &str) -> bool {
        matches!(&self.rule, Some(ReadinessRule::ServerStatus { caches: Some(caches) }) if token.contains(caches))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn progress(token: &str, kind: &str) -> Value {
        json!({ "token": token, "value": { "kind": kind } })
    }

    #[tokio::test(start_paused = true)]
    async fn running_progress_is_bounded() {
        let start = Instant::now();
        let mut readiness = Readiness::new(None, start);
        for number in 0..2 * MAX_RUNNING {
            readiness.progress(&progress(&number.to_string(), "begin"), start);
        }
        readiness.progress(&progress(&"x".repeat(MAX_TOKEN_BYTES), "begin"), start);
        assert_eq!(readiness.running.len(), MAX_RUNNING);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_rule_needs_begin_and_end_or_the_grace_time() {
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
    async fn progress_end_without_begin_is_ignored() {
        let start = Instant::now();
        let mut readiness = Readiness::new(Some(ReadinessRule::Progress { grace_ms: 1 }), start);
        readiness.progress(&progress("early", "end"), start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn server_status_can_become_busy_again() {
        let start = Instant::now();
        let mut readiness = Readiness::new(Some(ReadinessRule::ServerStatus { caches: None }), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.server_status(&json!({ "quiescent": true, "health": "ok" }), start);
        assert_eq!(readiness.state(start), State::Since(start));
        readiness.server_status(&json!({ "quiescent": false }), start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_fills_its_caches_is_ready_until_it_loads_again() {
        let start = Instant::now();
        let rule = ReadinessRule::ServerStatus { caches: Some("x/caches".to_owned()) };
        let mut readiness = Readiness::new(Some(rule), start);
        let busy = json!({ "quiescent": false });
        readiness.server_status(&busy, start);
        readiness.progress(&progress("x/loading", "begin"), start);
        readiness.progress(&progress("x/loading", "end"), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.progress(&progress("x/caches", "begin"), start);
        assert_eq!(readiness.state(start), State::Since(start));
        assert!(!readiness.is_working() && !readiness.is_quiescent());
        // It does not report again that it is busy.
        readiness.progress(&progress("x/loading", "begin"), start);
        assert_eq!(readiness.state(start), State::Waiting);
        readiness.progress(&progress("x/loading", "end"), start);
        readiness.progress(&progress("x/caches", "begin"), start);
        readiness.progress(&progress("x/caches", "end"), start);
        readiness.server_status(&json!({ "quiescent": true }), start);
        assert_eq!(readiness.state(start), State::Since(start));
        readiness.server_status(&busy, start);
        assert_eq!(readiness.state(start), State::Waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn matching_log_message_makes_the_server_ready() {
        let start = Instant::now();
        let mut readiness =
            Readiness::new(Some(ReadinessRule::LogMessage { contains: "source file".to_owned() }), start);
        assert!(!readiness.log_message("Assuming Python version 3.11", start));
        assert_eq!(readiness.state(start), State::Waiting);
        assert!(readiness.log_message("Found 883 source files", start));
        assert_eq!(readiness.state(start), State::Since(start));
    }

    #[tokio::test(start_paused = true)]
    async fn new_files_that_are_open_delay_only_lists() {
        let start = Instant::now();
        let rule = ReadinessRule::LogMessage { contains: "source file".to_owned() };
        let mut readiness = Readiness::new(Some(rule), start);
        readiness.log_message("Found 2 source files", start);
        readiness.lists_again(true, start);
        assert_eq!(readiness.state(start), State::Since(start));
        assert_eq!(readiness.listed_at(start), Some(start + RELIST));
        readiness.log_message("Found 2 source files", start);
        assert!(readiness.listed_at(start).is_some(), "it did not know the new files");
        readiness.list_was_asked_for();
        readiness.log_message("Found 3 source files", start);
        assert_eq!(readiness.listed_at(start), None);
        readiness.lists_again(false, start);
        readiness.lists_again(true, start);
        assert_eq!(readiness.state(start), State::NotBefore(start + RELIST), "some new files are not open");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rule_the_server_is_ready_but_not_proven() {
        let start = Instant::now();
        let readiness = Readiness::new(None, start);
        assert_eq!(readiness.state(start), State::Since(start));
        assert!(!readiness.is_proven());
    }
}
