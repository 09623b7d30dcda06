//! Diagnostics for one text: pulled if the server supports that, else awaited until they are fresh.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::diagnostics::Freshness;
use super::documents::LastEdit;
use super::readiness::State;
use super::{Client, RetryDelay, Synced, Wait, retryable};
use crate::call_context::CallContext;
use crate::from_protocol;
use crate::message::{Payload, RpcError};
use crate::model::{Diagnostic, GapReason};
use crate::transport::{PendingReply, RequestError};
use tenon_servers::registry::Capability;

/// How many requests a server must answer without another publish before its diagnostics count as final.
const QUIET_ROUNDS: u32 = 3;

/// One server's diagnostics of a text.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The known diagnostics of this text, in the server's encoding; never those of another text.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Why the list may be incomplete.
    pub(crate) gap: Option<GapReason>,
}

impl Client {
    /// Sends a text to the server and collects its diagnostics, running `meanwhile` during the wait.
    pub(crate) async fn check_while(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
        meanwhile: impl Future<Output = ()>,
    ) -> Checked {
        let synced = match self.sync(call, path, lines, saved).await {
            Ok(synced) => synced,
            Err(error) => {
                return Checked { diagnostics: Vec::new(), gap: Some(gap_reason(&error)) };
            }
        };
        let (fresh, ()) = tokio::join!(self.await_fresh(call, &synced), meanwhile);
        let gap = fresh.err();
        let state = self.session.state();
        let document = state.documents.get(path.as_str());
        let same_text = document.is_some_and(|document| document.version == synced.version);
        let checked = if same_text {
            Checked { diagnostics: state.diagnostics.current(path.as_str(), document), gap }
        } else {
            // Superseded after the wait: no diagnostics are stored for this text any more.
            Checked { diagnostics: Vec::new(), gap: gap.or(Some(GapReason::Pending)) }
        };
        drop(state);
        self.checked.store(true, std::sync::atomic::Ordering::Relaxed);
        checked
    }

    async fn await_fresh(&self, call: &CallContext, synced: &Synced<'_>) -> Result<(), GapReason> {
        if self.pulls() {
            return self.pull(call, synced).await;
        }
        self.mark_when_seen(call, &synced.path).await.map_err(|error| gap_reason(&error))?;
        let mut settled = PushWait::Again;
        while settled == PushWait::Again {
            settled = self.await_settled(call, synced).await?;
            if settled == PushWait::Fresh && !self.is_quiet(call, synced).await? {
                settled = PushWait::Again;
            }
        }
        match settled {
            PushWait::Pull => self.pull(call, synced).await,
            PushWait::Fresh | PushWait::Again => Ok(()),
        }
    }

    /// Waits for a push for this text, and until another one could have followed.
    async fn await_settled(&self, call: &CallContext, synced: &Synced<'_>) -> Result<PushWait, GapReason> {
        let settle = self.entry().settle();
        let key = synced.path.as_str();
        let outcome = self
            .wait_until(call, |state, now| {
                if state.ended {
                    return Wait::Done(Err(GapReason::Broken));
                }
                let Some(document) = state.documents.get(key).filter(|one| one.version == synced.version)
                else {
                    return Wait::Done(Err(GapReason::Pending));
                };
                // A server may register for pulling while we wait for a push that will never arrive.
                if state.capabilities.pulls() {
                    return Wait::Done(Ok(PushWait::Pull));
                }
                let ready_since = match state.readiness.state(now) {
                    State::Waiting => return Wait::ForChange,
                    State::NotBefore(at) => return Wait::Until(at),
                    State::Since(since) => since,
                };
                match state.diagnostics.push_freshness(document, settle, ready_since, state.change, now) {
                    Freshness::Fresh => Wait::Done(Ok(PushWait::Fresh)),
                    Freshness::NotBefore(at) => Wait::Until(at),
                    Freshness::Waiting => Wait::ForChange,
                }
            })
            .await;
        outcome.unwrap_or_else(|_| Err(self.unfinished()))
    }

    /// Whether the diagnostics stay the same while the server answers a few requests. No fixed delay works on every machine, but
    /// a server that is still checking publishes before it answers.
    async fn is_quiet(&self, call: &CallContext, synced: &Synced<'_>) -> Result<bool, GapReason> {
        let key = synced.path.as_str();
        let held = || {
            let state = self.session.state();
            state.diagnostics.current(key, state.documents.get(key))
        };
        let before = held();
        for _ in 0..QUIET_ROUNDS {
            let (method, params) = self.cheap_question(&synced.path);
            let asked = async { self.connection.request(call, method, &params).await?.wait(call).await };
            match self.unless_overtaken(synced, asked).await? {
                // An error is an answer, too.
                Ok(_) | Err(RequestError::Refused(_)) => {}
                Err(error) => {
                    return Err(match gap_reason(&error) {
                        GapReason::Pending => self.unfinished(),
                        why => why,
                    });
                }
            }
            if held() != before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The reason for a wait that timed out.
    fn unfinished(&self) -> GapReason {
        let state = self.session.state();
        match (state.ended, state.is_ready(Instant::now())) {
            (true, _) => GapReason::Broken,
            (false, true) => GapReason::Pending,
            (false, false) => GapReason::Indexing,
        }
    }

    pub(crate) fn pulls(&self) -> bool {
        self.session.state().capabilities.pulls()
    }

    /// Whether the server checks each file alone, so that an edit cannot affect other files.
    pub(crate) fn checks_files_alone(&self) -> bool {
        self.session.state().checks_files_alone()
    }

    /// Sends a cheap request after a change, unless one was sent already: publishes without a version that arrive after its
    /// answer belong to the new text.
    pub(super) async fn mark_when_seen(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
    ) -> Result<(), RequestError> {
        let key = path.as_str();
        let Some(version) = self.note_question(key) else {
            return Ok(());
        };
        let (method, params) = self.cheap_question(path);
        self.connection.request_mark(call, method, &params, self.mark_seen(key, version)).await
    }

    /// A request that is cheap and does not interrupt the server's other work.
    fn cheap_question(&self, path: &WorkspacePath) -> (&'static str, Value) {
        let state = self.session.state();
        let document = json!({ "uri": path.uri().as_str() });
        if state.capabilities.folds() {
            ("textDocument/foldingRange", json!({ "textDocument": document }))
        } else if state.capabilities.has(Capability::Hover) {
            let start = json!({ "line": 0, "character": 0 });
            ("textDocument/hover", json!({ "textDocument": document, "position": start }))
        } else if state.capabilities.has(Capability::DocumentSymbols) {
            ("textDocument/documentSymbol", json!({ "textDocument": document }))
        } else {
            // An unknown method: every server must answer with an error, in order.
            ("$/tenon/barrier", Value::Null)
        }
    }

    /// Notes that a request about a document is about to be sent. Returns the document's version if the answer will be the first
    /// proof that the server has seen this text, and that proof is needed.
    pub(super) fn note_question(&self, key: &str) -> Option<i32> {
        let mut state = self.session.state();
        let matters = !state.versioned && !state.capabilities.pulls();
        let document = state.documents.get_mut(key)?;
        if !matters || document.asked {
            return None;
        }
        document.asked = true;
        Some(document.version)
    }

    /// The callback for the answer to a request about a document.
    pub(super) fn mark_seen(
        &self,
        key: &str,
        version: i32,
    ) -> impl FnOnce(&Result<Payload, RpcError>) + Send + 'static {
        let (session, key) = (Arc::clone(&self.session), key.to_owned());
        move |_| {
            {
                let mut state = session.state();
                let tick = state.tick;
                if let Some(document) = state.documents.get_mut(&key).filter(|one| one.version == version) {
                    document.seen.get_or_insert(tick);
                }
            }
            session.wake();
        }
    }

    /// Pulls the diagnostics of a document. The answer belongs to exactly this text.
    async fn pull(&self, call: &CallContext, synced: &Synced<'_>) -> Result<(), GapReason> {
        // Diagnostics while a project is loading may be incomplete.
        if !self.rule_needs_diagnostics() && !self.ready(call).await {
            return Err(self.unfinished());
        }
        let mut pause = RetryDelay::default();
        loop {
            if call.remaining().is_zero() {
                return Err(self.unfinished());
            }
            let mut asked = 0;
            let asking = async {
                let reply;
                (reply, asked) = self.ask_for_diagnostics(call, synced).await?;
                reply.wait(call).await
            };
            match retryable(self.unless_overtaken(synced, asking).await?) {
                Ok(Some(payload)) => {
                    self.take_pulled(synced, from_protocol::pulled(&payload), asked);
                    return Ok(());
                }
                Ok(None) => {
                    pause.wait(call).await.map_err(|_| self.unfinished())?;
                }
                Err(RequestError::Refused(error)) => return Err(GapReason::Refused(error.message)),
                Err(error) => {
                    return Err(match gap_reason(&error) {
                        GapReason::Pending => self.unfinished(),
                        why => why,
                    });
                }
            }
        }
    }

    /// Sends a pull for a document's diagnostics and returns its tick. The write lock covers both, so the answer includes all
    /// changes before that tick.
    async fn ask_for_diagnostics(
        &self,
        call: &CallContext,
        synced: &Synced<'_>,
    ) -> Result<(PendingReply, u64), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let (asked, identifier) = {
            let state = self.session.state();
            (state.tick, state.capabilities.diagnostic_identifier().map(str::to_owned))
        };
        let mut params = json!({ "textDocument": { "uri": synced.path.uri().as_str() } });
        if let Some(identifier) = identifier {
            params["identifier"] = Value::String(identifier);
        }
        let seen = self.mark_seen(synced.path.as_str(), synced.version);
        let reply = self.connection.request_with(call, "textDocument/diagnostic", &params, seen).await?;
        drop(turn);
        Ok((reply, asked))
    }

    fn rule_needs_diagnostics(&self) -> bool {
        self.entry().ready == Some(tenon_servers::registry::ReadinessRule::FirstDiagnostics)
    }

    /// Runs work until the document has a newer text.
    async fn unless_overtaken<T>(
        &self,
        synced: &Synced<'_>,
        work: impl Future<Output = T>,
    ) -> Result<T, GapReason> {
        let forever = CallContext::new(
            Instant::now() + std::time::Duration::from_secs(24 * 60 * 60),
            tokio_util::sync::CancellationToken::new(),
        );
        let overtaken = self.wait_until(&forever, |state, _| {
            let document = state.documents.get(synced.path.as_str());
            if document.is_some_and(|document| document.version == synced.version) {
                Wait::ForChange
            } else {
                Wait::Done(())
            }
        });
        tokio::select! {
            biased;
            done = work => Ok(done),
            _ = overtaken => Err(GapReason::Pending),
        }
    }

    fn take_pulled(&self, synced: &Synced<'_>, pulled: from_protocol::Pulled, asked: u64) {
        let changed = {
            let mut state = self.session.state();
            let state = &mut *state;
            if state.ended {
                return;
            }
            state.readiness.diagnostics_arrived(Instant::now());
            let mut changed = false;
            // An answer for an older text must not replace one for a newer text.
            let document = state.documents.get(synced.path.as_str());
            if let Some(document) = document.filter(|document| document.version == synced.version) {
                changed |= state.diagnostics.pull(document, pulled.items, synced.version, asked);
            }
            for (key, items) in pulled.related {
                if let Some(document) = state.documents.get(&key) {
                    let version = document.version;
                    changed |= state.diagnostics.pull(document, items, version, asked);
                } else {
                    let tick = state.tick + 1;
                    changed |= state.diagnostics.push(&key, None, items, None, tick, Instant::now());
                }
            }
            changed
        };
        if changed {
            self.session.epoch().advance();
        }
        self.session.wake();
    }

    /// Pulls from a server that becomes ready with its first diagnostics, as soon as it supports pulling.
    pub(crate) async fn pull_first_diagnostics(&self, call: &CallContext, synced: &Synced<'_>) {
        if !self.rule_needs_diagnostics() {
            return;
        }
        let pulls = self.wait_until(call, |state, now| match state.capabilities.pulls() {
            true => Wait::Done(true),
            false if state.ended || state.is_ready(now) => Wait::Done(false),
            false => Wait::ForChange,
        });
        if pulls.await == Ok(true) {
            // Without an answer the server stays not ready, which the caller handles.
            let _ = self.pull(call, synced).await;
        }
    }

    /// Pulls all open documents that were not pulled since the last change that may affect them.
    async fn pull_open(&self, call: &CallContext) {
        if !self.pulls() {
            return;
        }
        let stale: Vec<(WorkspacePath, LineIndex)> = {
            let state = self.session.state();
            state
                .documents
                .iter()
                .filter(|document| !state.diagnostics.is_pulled(document, state.change_for(document)))
                .map(|document| (document.path.clone(), document.lines.clone()))
                .collect()
        };
        let pulls = stale.iter().map(|(path, _)| async {
            if let Some(synced) = self.pin(path) {
                // On a timeout the stored diagnostics stay.
                let _ = self.pull(call, &synced).await;
            }
        });
        futures::future::join_all(pulls).await;
    }

    /// Waits until the server is idle, pulling open documents again after each change. `false` on a timeout.
    pub(crate) async fn wait_until_idle(&self, call: &CallContext) -> bool {
        loop {
            let change = self.session.state().change.tick;
            self.pull_open(call).await;
            let rested = self.wait_until(call, |state, now| {
                let pulls = state.capabilities.pulls();
                // Another publish may follow, as for the file itself.
                let settled = state.published + self.entry().settle();
                match state.ended || state.is_idle() {
                    true if !state.ended && !pulls && state.checks_other_files() && now < settled => {
                        Wait::Until(settled)
                    }
                    true => Wait::Done(true),
                    false if state.change.tick != change && pulls => Wait::Done(false),
                    false => Wait::ForChange,
                }
            });
            match rested.await {
                Ok(false) => {}
                rested => return rested.is_ok(),
            }
        }
    }

    /// The open documents with diagnostics, if the server needs reopening to publish again.
    pub(crate) fn documents_to_reopen(&self) -> Vec<WorkspacePath> {
        if !self.entry().reopens {
            return Vec::new();
        }
        let state = self.session.state();
        let open = state.documents.iter();
        let complained =
            open.filter(|one| !state.diagnostics.current(one.path.as_str(), Some(one)).is_empty());
        complained.map(|one| one.path.clone()).collect()
    }

    /// Pins an open document, so that it stays open.
    fn pin(&self, path: &WorkspacePath) -> Option<Synced<'_>> {
        let mut state = self.session.state();
        let document = state.documents.get_mut(path.as_str())?;
        document.pins += 1;
        Some(Synced { client: self, path: path.clone(), version: document.version })
    }

    /// All files with diagnostics, by key, in the server's encoding.
    pub(crate) fn held_diagnostics(&self) -> Vec<(String, Vec<Diagnostic>)> {
        let state = self.session.state();
        state
            .diagnostics
            .keys()
            .map(|key| (key.to_owned(), state.diagnostics.current(key, state.documents.get(key))))
            .filter(|(_, items)| !items.is_empty())
            .collect()
    }

    /// A consistent snapshot of the server's diagnostics, without those from before the last change.
    pub(crate) fn current_diagnostics(&self) -> CurrentDiagnostics {
        let state = self.session.state();
        let open = state.documents.iter();
        let owed = open
            .filter(|document| state.expects_diagnostics(document))
            .map(|document| document.path.as_str().to_owned());
        let working = !state.ended && state.readiness.is_working();
        let mut snapshot = CurrentDiagnostics {
            files: Vec::new(),
            unanswered: owed.collect(),
            more_expected: false,
            working,
        };
        snapshot.more_expected = !snapshot.unanswered.is_empty();
        for key in state.diagnostics.keys().filter(|key| !snapshot.unanswered.contains(*key)) {
            let document = state.documents.get(key);
            let (items, left_out) = match state.checks_other_files() {
                true => state.diagnostics.since(key, document, state.change),
                false => (state.diagnostics.current(key, document), false),
            };
            snapshot.more_expected |= left_out;
            if !items.is_empty() {
                snapshot.files.push((key.to_owned(), items));
            }
        }
        snapshot
    }

    /// The version in which a document is open, with its text.
    pub(crate) fn open_version(&self, key: &str) -> Option<(i32, LineIndex)> {
        let state = self.session.state();
        state.documents.get(key).map(|document| (document.version, document.lines.clone()))
    }

    /// The last change of a document and the resulting version.
    pub(crate) fn last_edit(&self, key: &str) -> Option<(LastEdit, i32)> {
        let state = self.session.state();
        state.documents.get(key).map(|document| (document.edit.clone(), document.version))
    }
}

/// A snapshot of a server's diagnostics by file, in the server's encoding.
pub(crate) struct CurrentDiagnostics {
    pub(crate) files: Vec<(String, Vec<Diagnostic>)>,
    /// The open documents whose diagnostics are still expected; they are left out of `files`.
    pub(crate) unanswered: BTreeSet<String>,
    /// Whether more diagnostics are expected after the last change.
    pub(crate) more_expected: bool,
    /// Whether it reports work in progress.
    pub(crate) working: bool,
}

/// The result of a wait for a push.
#[derive(PartialEq)]
enum PushWait {
    Fresh,
    Pull,
    Again,
}

/// The gap that a failed request leaves in an answer.
pub(crate) fn gap_reason(error: &RequestError) -> GapReason {
    match error {
        RequestError::Interrupted(_) => GapReason::Pending,
        RequestError::Closed(_) => GapReason::Broken,
        RequestError::Refused(error) => GapReason::Refused(error.message.clone()),
        RequestError::Unwritable(error) => GapReason::Refused(error.to_string()),
    }
}
