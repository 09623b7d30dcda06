//! The check that a server runs on the files on disk after `didSave`, for example `cargo check`.
//!
//! Its diagnostics are about the saved files, whatever version a publish names, and servers do not repeat a list that did
//! not change. So they count once the check that a save asked for has ended, and never for a text that is not on disk.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::diagnostics::Freshness;
use super::readiness::{MAX_RUNNING, progress_token};
use crate::model::Diagnostic;
use tenon_servers::registry::OnSave;

/// How long another check may take to begin if it is not clear which save the last one was about.
const RESTART: Duration = Duration::from_millis(500);

/// What caused a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The server became ready.
    Ready,
    Save,
}

/// Which of a server's diagnostics come from the files on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskShare {
    None,
    Part,
    All,
}

/// The checks of one server.
#[derive(Debug)]
pub(crate) struct DiskCheck {
    rule: Option<OnSave>,
    /// The last thing that causes a check, with its tick and time.
    wanted: Option<(Cause, u64, Instant)>,
    /// Whether a check was still to begin then, so that the next one may be about an earlier save.
    overlapped: bool,
    /// The tick of the last begin; 0 if none.
    begun: u64,
    running: BTreeSet<String>,
    ended: Option<Instant>,
    /// Whether the server loads the project, again perhaps: it then drops what it found and checks once it has loaded it.
    /// cargo writes `Cargo.lock` in the first check, which causes such a load.
    loading: bool,
    /// The tick of the last change on disk of a file that is not open.
    disk_changed: u64,
    /// Whether a check was wanted and none began in the whole grace time: checks are switched off. Once a check began this
    /// is over.
    never_checks: bool,
    /// Why the last check could not run.
    failure: Option<String>,
}

impl DiskCheck {
    pub(crate) fn new(rule: Option<OnSave>) -> Self {
        Self {
            rule,
            wanted: None,
            overlapped: false,
            begun: 0,
            running: BTreeSet::new(),
            ended: None,
            loading: false,
            disk_changed: 0,
            never_checks: false,
            failure: None,
        }
    }

    fn progress_name(&self) -> Option<&str> {
        self.rule.as_ref()?.progress.as_deref()
    }

    /// Whether the end of a check can be seen.
    pub(crate) fn has_progress(&self) -> bool {
        self.progress_name().is_some()
    }

    /// Whether a diagnostic comes from the files on disk.
    pub(crate) fn made(&self, diagnostic: &Diagnostic) -> bool {
        self.rule.as_ref().is_some_and(|rule| {
            let source = diagnostic.source.as_deref().unwrap_or_default();
            rule.sources.is_empty() || rule.sources.iter().any(|one| one == source)
        })
    }

    pub(crate) fn share(&self) -> DiskShare {
        match &self.rule {
            None => DiskShare::None,
            Some(rule) if rule.sources.is_empty() => DiskShare::All,
            Some(_) => DiskShare::Part,
        }
    }

    /// Whether files changed on disk since a check was caused, so that a save should cause another one.
    pub(crate) fn is_outdated(&self) -> bool {
        self.has_progress() && self.wanted.is_some_and(|(_, tick, _)| self.disk_changed > tick)
    }

    pub(crate) fn note_disk_change(&mut self, tick: u64) {
        self.disk_changed = tick;
    }

    pub(crate) fn note_ready(&mut self, tick: u64, now: Instant) {
        self.want(Cause::Ready, tick, now);
    }

    pub(crate) fn note_save(&mut self, tick: u64, now: Instant) {
        self.want(Cause::Save, tick, now);
    }

    fn want(&mut self, cause: Cause, tick: u64, now: Instant) {
        self.overlapped = self.wanted.is_some_and(|(_, tick, _)| tick > self.begun);
        let grace = self.rule.as_ref().map(OnSave::grace);
        self.never_checks = self.begun == 0
            && self
                .wanted
                .zip(grace)
                .is_some_and(|((_, _, at), grace)| self.never_checks || now >= at + grace);
        self.wanted = Some((cause, tick, now));
    }

    /// `$/progress`.
    pub(crate) fn progress(&mut self, params: &Value, tick: u64, now: Instant) {
        let (Some(name), Some(token)) = (self.progress_name(), progress_token(params)) else {
            return;
        };
        let title = params.pointer("/value/title").and_then(Value::as_str).unwrap_or_default();
        match params.pointer("/value/kind").and_then(Value::as_str) {
            Some("begin") if token.contains(name) || title.contains(name) => {
                self.begun = tick;
                self.never_checks = false;
                if self.running.len() < MAX_RUNNING {
                    self.running.insert(token);
                }
            }
            Some("end") if self.running.remove(&token) => self.ended = Some(now),
            _ => {}
        }
    }

    /// `experimental/serverStatus`.
    pub(crate) fn server_status(&mut self, params: &Value) {
        if let Some(quiescent) = params.get("quiescent").and_then(Value::as_bool) {
            self.loading = !quiescent;
        }
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let failure = self.rule.as_ref().and_then(|rule| rule.failure.as_deref());
        let failed = |line: &&str| failure.is_some_and(|failure| line.starts_with(failure));
        self.failure = message.lines().find(failed).map(|line| {
            // The reason of `cargo` follows.
            let reason = message.lines().find(|line| line.starts_with("error: "));
            reason.map_or(line.to_owned(), |reason| format!("{}: {reason}", failure.unwrap_or(line)))
        });
    }

    /// Why the last check could not run.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether the last check has ended, and its publishes have arrived.
    pub(crate) fn freshness(&self, settle: Duration, now: Instant) -> Freshness {
        let Some(rule) = self.rule.as_ref().filter(|_| self.has_progress()) else {
            return Freshness::Fresh;
        };
        if self.loading || !self.running.is_empty() {
            return Freshness::Waiting;
        }
        let Some((_, tick, at)) = self.wanted.filter(|_| !self.never_checks) else {
            return Freshness::Fresh;
        };
        let until = match self.ended {
            Some(ended) if self.begun > tick => {
                ended + if self.overlapped { settle.max(RESTART) } else { settle }
            }
            _ => at + rule.grace(),
        };
        if now < until {
            Freshness::NotBefore(until)
        } else if self.is_missing() {
            Freshness::Waiting
        } else {
            Freshness::Fresh
        }
    }

    /// Whether all findings are about files as they were at that time: a later check may have read files written since.
    pub(crate) fn is_from_before(&self, at: Instant) -> bool {
        self.begun == 0 || (self.running.is_empty() && self.ended.is_some_and(|ended| ended <= at))
    }

    /// Whether a save did not cause a check, although earlier ones did.
    fn is_missing(&self) -> bool {
        self.begun > 0
            && self.wanted.is_some_and(|(cause, tick, _)| cause == Cause::Save && tick > self.begun)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SETTLE: Duration = Duration::from_millis(100);
    const GRACE: Duration = Duration::from_millis(2000);

    fn check() -> DiskCheck {
        DiskCheck::new(Some(OnSave {
            sources: vec!["rustc".to_owned()],
            progress: Some("flycheck".to_owned()),
            grace_ms: 2000,
            failure: Some("cargo check failed".to_owned()),
        }))
    }

    fn progress(kind: &str) -> Value {
        json!({ "token": "x/flycheck/0", "value": { "kind": kind, "title": "cargo check" } })
    }

    #[tokio::test(start_paused = true)]
    async fn check_is_fresh_after_its_progress_has_ended_and_settled() {
        let start = Instant::now();
        let mut check = check();
        check.note_ready(1, start);
        assert_eq!(check.freshness(SETTLE, start), Freshness::NotBefore(start + GRACE));
        check.progress(&progress("begin"), 2, start);
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Waiting);
        check.progress(&progress("end"), 3, start);
        assert_eq!(check.freshness(SETTLE, start), Freshness::NotBefore(start + SETTLE));
        assert_eq!(check.freshness(SETTLE, start + SETTLE), Freshness::Fresh);
        check.note_save(4, start);
        assert_eq!(check.freshness(SETTLE, start + SETTLE), Freshness::NotBefore(start + GRACE));
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Waiting, "the check did not begin");
    }

    #[tokio::test(start_paused = true)]
    async fn check_that_ends_while_the_project_is_loaded_again_does_not_count() {
        let start = Instant::now();
        let mut check = check();
        check.note_ready(1, start);
        check.progress(&progress("begin"), 2, start);
        check.server_status(&json!({ "health": "ok", "quiescent": false }));
        check.progress(&progress("end"), 3, start);
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Waiting);
        check.server_status(&json!({ "health": "ok", "quiescent": true }));
        check.note_ready(4, start);
        check.progress(&progress("begin"), 5, start);
        check.progress(&progress("end"), 6, start);
        assert_eq!(check.freshness(SETTLE, start + SETTLE), Freshness::Fresh);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_never_checks_is_fresh_after_the_grace_time() {
        let start = Instant::now();
        let mut check = check();
        check.note_ready(1, start);
        check.note_save(2, start);
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Fresh);
        check.note_save(3, start + GRACE);
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Fresh, "it is not waited for again");
        check.progress(&progress("begin"), 4, start + GRACE);
        assert_eq!(check.freshness(SETTLE, start + GRACE), Freshness::Waiting, "it checks after all");
    }

    #[tokio::test(start_paused = true)]
    async fn end_after_a_second_save_may_belong_to_the_first() {
        let start = Instant::now();
        let mut check = check();
        check.note_save(1, start);
        check.note_save(2, start);
        check.progress(&progress("begin"), 3, start);
        check.progress(&progress("end"), 4, start);
        assert_eq!(check.freshness(SETTLE, start + SETTLE), Freshness::NotBefore(start + RESTART));
    }

    #[tokio::test(start_paused = true)]
    async fn check_that_ends_after_a_change_does_not_describe_the_state_before() {
        let start = Instant::now();
        let (change, later) = (start + GRACE, start + 2 * GRACE);
        let mut check = check();
        assert!(check.is_from_before(change), "nothing was found yet");
        check.progress(&progress("begin"), 1, start);
        assert!(!check.is_from_before(change), "still running");
        check.progress(&progress("end"), 2, later);
        assert!(!check.is_from_before(change) && check.is_from_before(later));
    }

    #[test]
    fn check_that_could_not_run_has_a_reason() {
        let mut check = check();
        let message = "cargo check failed to start: no valid metadata:\nerror: no matching package named `serde` found\n";
        check.server_status(&json!({ "health": "warning", "quiescent": true, "message": message }));
        let expected = "cargo check failed: error: no matching package named `serde` found";
        assert_eq!(check.failure(), Some(expected));
        check.server_status(&json!({ "health": "ok", "quiescent": true, "message": null }));
        assert_eq!(check.failure(), None);
    }

    #[test]
    fn without_a_rule_everything_is_fresh() {
        let check = DiskCheck::new(None);
        assert_eq!(check.freshness(SETTLE, Instant::now()), Freshness::Fresh);
        assert!(check.share() == DiskShare::None && !check.is_outdated());
    }
}
