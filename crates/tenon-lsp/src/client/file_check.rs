//! Diagnostics for one text: pulled if the server supports that, else awaited until they are fresh.

use std::collections::{BTreeMap, BTreeSet};

use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::diagnostics::Freshness;
use super::disk_check::DiskShare;
use super::documents::LastEdit;
use super::readiness::State;
use super::{Client, Synced, Wait};
use crate::call_context::CallContext;
use crate::model::{Diagnostic, GapReason};
use crate::transport::RequestError;
use tenon_servers::registry::Capability;

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
        self.check_text(call, path, lines, (saved, true), std::future::ready(()), meanwhile).await
    }

    /// Sends a text to the server, waits for `shown`, and collects its diagnostics.
    pub(crate) async fn check_shown(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
        shown: impl Future<Output = ()>,
    ) -> Checked {
        self.check_text(call, path, lines, (saved, true), shown, std::future::ready(())).await
    }

    /// Sends a text that is not on disk, and collects the diagnostics that need no saved file.
    pub(crate) async fn check_unsaved(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
    ) -> Checked {
        let idle = std::future::ready;
        self.check_text(call, path, lines, (false, false), idle(()), idle(())).await
    }

    /// Whether a diagnostic comes from a check of saved files.
    pub(crate) fn is_made_on_save(&self, found: &Diagnostic) -> bool {
        self.session.state().diagnostics.disk.made(found)
    }

    /// `needs_disk`: diagnostics of the saved files belong to the answer.
    async fn check_text(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        (saved, needs_disk): (bool, bool),
        shown: impl Future<Output = ()>,
        meanwhile: impl Future<Output = ()>,
    ) -> Checked {
        let show = async {
            self.refresh(call, path).await?;
            self.sync(call, path, lines, saved).await
        };
        let synced = match show.await {
            Ok(synced) => synced,
            Err(error) => {
                return Checked { diagnostics: Vec::new(), gap: Some(gap_reason(&error)) };
            }
        };
        // The caller may check several files at once: all get their texts before the first request.
        tokio::task::yield_now().await;
        shown.await;
        let fresh = async {
            let refused = || GapReason::Refused("checks only saved text".to_owned());
            match self.disk_check() {
                DiskShare::All if !saved => Err(refused()),
                DiskShare::All | DiskShare::None => self.await_fresh(call, &synced).await,
                DiskShare::Part if !needs_disk && self.lacks_library() => Err(GapReason::Refused(
                    "checks only saved text without the standard library's source".to_owned(),
                )),
                DiskShare::Part if !needs_disk => self.await_fresh(call, &synced).await,
                DiskShare::Part => {
                    self.await_fresh(call, &synced).await?;
                    if !saved {
                        return Err(refused());
                    }
                    self.await_disk_check(call, &synced).await?;
                    if let Some(why) = self.session.state().diagnostics.disk.failure() {
                        return Err(GapReason::Refused(why.to_owned()));
                    }
                    // The server may have asked for another pull when the check ended.
                    if self.is_pull_stale(path) { self.pull(call, &synced).await } else { Ok(()) }
                }
            }
        };
        let (fresh, ()) = tokio::join!(fresh, meanwhile);
        let state = self.session.state();
        // A server that could not load the project finds nothing, which does not mean that nothing is wrong.
        let failure = state.readiness.failure().map(|why| GapReason::Refused(why.to_owned()));
        // A server that ended after its answer: its diagnostics were dropped.
        let ended = state.ended.then_some(GapReason::Broken);
        let gap = fresh.err().or(failure).or(ended);
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

    /// The diagnostics of a text that was on disk until `until`, with what the last check of the saved files found in it. The
    /// server must not know a newer text.
    pub(crate) async fn check_old_text(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        lines: &LineIndex,
        until: Instant,
    ) -> Checked {
        if self.disk_check() != DiskShare::Part {
            return self.check_while(call, path, lines, false, std::future::ready(())).await;
        }
        let unknown = |gap| Checked { diagnostics: Vec::new(), gap: Some(gap) };
        let synced = match self.sync(call, path, lines, false).await {
            Ok(synced) => synced,
            Err(error) => return unknown(gap_reason(&error)),
        };
        let fresh = async {
            self.await_fresh(call, &synced).await?;
            self.await_disk_check(call, &synced).await
        };
        if let Err(why) = fresh.await {
            return unknown(why);
        }
        let state = self.session.state();
        if state.ended {
            return unknown(GapReason::Broken);
        }
        if let Some(why) = state.diagnostics.disk.failure() {
            return unknown(GapReason::Refused(why.to_owned()));
        }
        // A server that this change started has checked the new text.
        if state.diagnostics.disk.is_outdated() || !state.diagnostics.disk.is_from_before(until) {
            return unknown(GapReason::Pending);
        }
        let document = state.documents.get(path.as_str()).filter(|one| one.version == synced.version);
        match document {
            Some(document) => {
                let mut diagnostics = state.diagnostics.current(path.as_str(), Some(document));
                diagnostics.extend(state.diagnostics.made_from_disk(path.as_str()));
                Checked { diagnostics, gap: None }
            }
            None => unknown(GapReason::Pending),
        }
    }

    /// What the last check of all saved files found, by file; `None` if the server runs no such check, or it is not done.
    pub(crate) fn saved_findings(&self) -> Option<BTreeMap<String, Vec<Diagnostic>>> {
        self.saved_findings_until(Instant::now())
    }

    /// The same, if the check ended until then.
    pub(crate) fn saved_findings_until(&self, until: Instant) -> Option<BTreeMap<String, Vec<Diagnostic>>> {
        let state = self.session.state();
        let disk = &state.diagnostics.disk;
        let done = disk.has_progress()
            && disk.failure().is_none()
            && !disk.is_outdated()
            && disk.is_from_before(until)
            && state.diagnostics.disk_freshness(Instant::now()) == Freshness::Fresh;
        done.then(|| state.diagnostics.all_made_from_disk())
    }

    /// Whether the server runs checks of all saved files whose end can be seen.
    pub(crate) fn checks_saved_files(&self) -> bool {
        self.session.state().diagnostics.disk.has_progress()
    }

    fn is_pull_stale(&self, path: &WorkspacePath) -> bool {
        let state = self.session.state();
        let document = state.documents.get(path.as_str());
        state.capabilities.pulls() && document.is_some_and(|document| !state.is_answered(document))
    }

    fn disk_check(&self) -> DiskShare {
        self.session.state().diagnostics.disk.share()
    }

    /// Waits for the check that the server runs on the saved files.
    async fn await_disk_check(&self, call: &CallContext, synced: &Synced<'_>) -> Result<(), GapReason> {
        loop {
            let ended = self.wait_until(call, |state, now| {
                let document = state.documents.get(synced.path.as_str());
                if state.ended {
                    return Wait::Done(Err(GapReason::Broken));
                }
                if document.is_none_or(|document| document.version != synced.version) {
                    return Wait::Done(Err(GapReason::Pending));
                }
                match state.diagnostics.disk_freshness(now) {
                    Freshness::Fresh => Wait::Done(Ok(())),
                    Freshness::NotBefore(at) => Wait::Until(at),
                    Freshness::Waiting => Wait::ForChange,
                }
            });
            ended.await.unwrap_or_else(|_| Err(self.unfinished()))?;
            if self.is_quiet(call, synced).await? {
                return Ok(());
            }
        }
    }

    async fn await_fresh(&self, call: &CallContext, synced: &Synced<'_>) -> Result<(), GapReason> {
        if self.pulls() {
            return self.pull_unless_known(call, synced).await;
        }
        self.mark_when_seen(call, &synced.path).await.map_err(|error| gap_reason(&error))?;
        let mut settled = PushWait::Again;
        while settled == PushWait::Again {
            settled = tokio::select! {
                settled = self.await_settled(call, synced) => settled?,
                never = self.learn_questions(call, &synced.path) => match never {},
            };
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
                match state.diagnostics.push_freshness(document, ready_since, state.change, now) {
                    Freshness::Fresh => Wait::Done(Ok(PushWait::Fresh)),
                    Freshness::NotBefore(at) => Wait::Until(at),
                    Freshness::Waiting => Wait::ForChange,
                }
            })
            .await;
        outcome.unwrap_or_else(|_| Err(self.unfinished()))
    }

    /// The reason for a wait that timed out.
    pub(super) fn unfinished(&self) -> GapReason {
        let state = self.session.state();
        match (state.ended, state.is_ready(Instant::now())) {
            (true, _) => GapReason::Broken,
            (false, true) => GapReason::Pending,
            (false, false) => GapReason::Indexing,
        }
    }

    /// The gap that a failed request leaves in a check.
    pub(super) fn gap_of(&self, error: &RequestError) -> GapReason {
        match gap_reason(error) {
            GapReason::Pending => self.unfinished(),
            why => why,
        }
    }

    pub(crate) fn pulls(&self) -> bool {
        self.session.state().capabilities.pulls()
    }

    /// Whether the server checks each file alone, so that an edit cannot affect other files.
    pub(crate) fn checks_files_alone(&self) -> bool {
        self.session.state().checks_files_alone()
    }

    /// Runs work until the document has a newer text.
    pub(super) async fn unless_overtaken<T>(
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

    /// Waits until the server is idle, pulling open documents again after each change. `false` on a timeout.
    pub(crate) async fn wait_until_idle(&self, call: &CallContext) -> bool {
        loop {
            let change = self.session.state().change.tick;
            self.pull_open(call).await;
            let rested = self.wait_until(call, |state, now| {
                let pulls = state.capabilities.pulls();
                // Another publish may follow, as for the file itself.
                let settled = state.published + self.entry().settle();
                match state.idle(now) {
                    _ if state.ended => Wait::Done(true),
                    Freshness::Fresh if !pulls && state.checks_other_files() && now < settled => {
                        Wait::Until(settled)
                    }
                    Freshness::Fresh => Wait::Done(true),
                    Freshness::NotBefore(at) => Wait::Until(at),
                    Freshness::Waiting if state.change.tick != change && pulls => Wait::Done(false),
                    Freshness::Waiting => Wait::ForChange,
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
        let state = self.session.state();
        if !state.reopens() {
            return Vec::new();
        }
        let open = state.documents.iter();
        let complained =
            open.filter(|one| !state.diagnostics.current(one.path.as_str(), Some(one)).is_empty());
        complained.map(|one| one.path.clone()).collect()
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

    /// The diagnostics of an open document's text, in the server's encoding.
    pub(crate) fn document_diagnostics(&self, path: &WorkspacePath) -> Vec<Diagnostic> {
        let state = self.session.state();
        let document = state.documents.get(path.as_str());
        document.map(|open| state.diagnostics.current(path.as_str(), Some(open))).unwrap_or_default()
    }

    /// The open files whose diagnostics are expected.
    pub(crate) fn expected_files(&self) -> BTreeSet<String> {
        let mut expected = BTreeSet::new();
        if self.has(Capability::Diagnostics) {
            self.add_checked(&mut BTreeSet::new(), &mut expected);
        }
        expected
    }

    /// Adds the files whose diagnostics are known to `known`, and the open ones whose diagnostics are expected to `expected`.
    pub(crate) fn add_checked(&self, known: &mut BTreeSet<String>, expected: &mut BTreeSet<String>) {
        let state = self.session.state();
        for document in state.documents.iter() {
            let key = document.path.as_str().to_owned();
            let is_known = state.is_ready(Instant::now()) && !state.expects_diagnostics(document);
            if is_known {
                known.insert(key)
            } else {
                expected.insert(key)
            };
        }
        let closed = state.diagnostics.keys().filter(|key| state.documents.get(key).is_none());
        known.extend(closed.map(str::to_owned));
    }

    /// The last change of a document and the resulting version.
    pub(crate) fn last_edit(&self, key: &str) -> Option<(LastEdit, i32)> {
        let state = self.session.state();
        state.documents.get(key).map(|document| (document.edit.clone(), document.version))
    }
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
        RequestError::TooLarge => GapReason::TooLarge,
        RequestError::Unwritable(error) => GapReason::Refused(error.to_string()),
    }
}
