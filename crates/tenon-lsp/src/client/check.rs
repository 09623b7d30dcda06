//! Diagnostics for one text: pulled where a server offers that, else awaited until they are fresh.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::diagnostics::Freshness;
use super::documents::LastEdit;
use super::readiness::State;
use super::{Client, Pause, Synced, Wait, retryable};
use crate::call::Call;
use crate::message::{Payload, RpcError};
use crate::model::{Diagnostic, Why};
use crate::transport::{Reply, RequestError};
use crate::wire;
use tenon_servers::registry::Capability;

/// Questions that a server answers without another word before it is taken to have said all.
const QUIET_ROUNDS: u32 = 3;

/// What one server says about a text.
#[derive(Debug)]
pub struct Checked {
    /// All that is known for this text, in the server's encoding; never what belonged to another text.
    pub diagnostics: Vec<Diagnostic>,
    /// Why that may not be all.
    pub gap: Option<Why>,
}

impl Client {
    /// Makes the server know a text and collects what it says about it.
    pub async fn check(&self, call: &Call, path: &WorkspacePath, lines: &LineIndex, saved: bool) -> Checked {
        self.check_while(call, path, lines, saved, std::future::ready(())).await
    }

    /// The same with something to do while the server thinks about the text.
    pub(crate) async fn check_while(
        &self,
        call: &Call,
        path: &WorkspacePath,
        lines: &LineIndex,
        saved: bool,
        meanwhile: impl Future<Output = ()>,
    ) -> Checked {
        let synced = match self.sync(call, path, lines, saved).await {
            Ok(synced) => synced,
            Err(error) => {
                return Checked { diagnostics: Vec::new(), gap: Some(gap(&error)) };
            }
        };
        let (fresh, ()) = tokio::join!(self.await_fresh(call, &synced), meanwhile);
        let gap = fresh.err();
        let known = self.session.known();
        let document = known.documents.get(path.as_str());
        let same_text = document.is_some_and(|document| document.version == synced.version);
        let checked = if same_text {
            Checked { diagnostics: known.diagnostics.current(path.as_str(), document), gap }
        } else {
            // Overtaken after the wait was over: nothing is held for this text any more.
            Checked { diagnostics: Vec::new(), gap: gap.or(Some(Why::Pending)) }
        };
        drop(known);
        self.checked.store(true, std::sync::atomic::Ordering::Relaxed);
        checked
    }

    async fn await_fresh(&self, call: &Call, synced: &Synced<'_>) -> Result<(), Why> {
        if self.pulls() {
            return self.pull(call, synced).await;
        }
        self.mark_when_seen(call, &synced.path).await.map_err(|error| gap(&error))?;
        let mut settled = Way::Again;
        while settled == Way::Again {
            settled = self.await_settled(call, synced).await?;
            if settled == Way::Fresh && !self.is_quiet(call, synced).await? {
                settled = Way::Again;
            }
        }
        match settled {
            Way::Pull => self.pull(call, synced).await,
            Way::Fresh | Way::Again => Ok(()),
        }
    }

    /// Waits until a push for a text has had time to be followed by another.
    async fn await_settled(&self, call: &Call, synced: &Synced<'_>) -> Result<Way, Why> {
        let settle = self.entry().settle();
        let key = synced.path.as_str();
        let outcome = self
            .wait_until(call, |known, now| {
                if known.ended {
                    return Wait::Done(Err(Why::Broken));
                }
                let Some(document) = known.documents.get(key).filter(|one| one.version == synced.version)
                else {
                    return Wait::Done(Err(Why::Pending));
                };
                // A server may register for pulling while we wait for a push that will never come.
                if known.capabilities.pulls() {
                    return Wait::Done(Ok(Way::Pull));
                }
                let ready_since = match known.readiness.state(now) {
                    State::Waiting => return Wait::ForChange,
                    State::NotBefore(at) => return Wait::Until(at),
                    State::Since(since) => since,
                };
                match known.diagnostics.push_freshness(document, settle, ready_since, known.change, now) {
                    Freshness::Fresh => Wait::Done(Ok(Way::Fresh)),
                    Freshness::NotBefore(at) => Wait::Until(at),
                    Freshness::Waiting => Wait::ForChange,
                }
            })
            .await;
        outcome.unwrap_or_else(|_| Err(self.unfinished()))
    }

    /// Whether nothing else is said about a document while the server answers a few questions. How long it takes to think
    /// depends on the machine and on what else it does, and no window of time covers that: a server that is still at work
    /// answers late, and speaks before.
    async fn is_quiet(&self, call: &Call, synced: &Synced<'_>) -> Result<bool, Why> {
        let key = synced.path.as_str();
        let held = || {
            let known = self.session.known();
            known.diagnostics.current(key, known.documents.get(key))
        };
        let before = held();
        for _ in 0..QUIET_ROUNDS {
            let (method, params) = self.cheap_question(&synced.path);
            let asked = async { self.connection.request(call, method, &params).await?.wait(call).await };
            match self.unless_overtaken(synced, asked).await? {
                // Refused is answered, too.
                Ok(_) | Err(RequestError::Refused(_)) => {}
                Err(error) => {
                    return Err(match gap(&error) {
                        Why::Pending => self.unfinished(),
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

    /// Why a wait that ran out has nothing to show.
    fn unfinished(&self) -> Why {
        let known = self.session.known();
        match (known.ended, known.is_ready(Instant::now())) {
            (true, _) => Why::Broken,
            (false, true) => Why::Pending,
            (false, false) => Why::Indexing,
        }
    }

    pub(crate) fn pulls(&self) -> bool {
        self.session.known().capabilities.pulls()
    }

    /// Whether the server looks at each file alone, so that an edit of one cannot break another.
    pub(crate) fn sees_files_alone(&self) -> bool {
        self.session.known().sees_files_alone()
    }

    /// Asks something cheap after a change, unless something was asked already, so that publishes without a version can be
    /// told from those before it.
    pub(super) async fn mark_when_seen(&self, call: &Call, path: &WorkspacePath) -> Result<(), RequestError> {
        let key = path.as_str();
        let Some(version) = self.note_question(key) else {
            return Ok(());
        };
        let (method, params) = self.cheap_question(path);
        self.connection.request_mark(call, method, &params, self.mark_seen(key, version)).await
    }

    /// A question that costs a server little and makes it stop nothing else.
    fn cheap_question(&self, path: &WorkspacePath) -> (&'static str, Value) {
        let known = self.session.known();
        let document = json!({ "uri": path.uri().as_str() });
        if known.capabilities.folds() {
            ("textDocument/foldingRange", json!({ "textDocument": document }))
        } else if known.capabilities.has(Capability::Hover) {
            let start = json!({ "line": 0, "character": 0 });
            ("textDocument/hover", json!({ "textDocument": document, "position": start }))
        } else if known.capabilities.has(Capability::DocumentSymbols) {
            ("textDocument/documentSymbol", json!({ "textDocument": document }))
        } else {
            // Nobody knows this method; every server must say so, in its turn.
            ("$/tenon/barrier", Value::Null)
        }
    }

    /// Notes that a question about a document is about to be sent. Its version, when the answer is the first that shows
    /// that the server has seen the text, and that matters.
    pub(super) fn note_question(&self, key: &str) -> Option<i32> {
        let mut known = self.session.known();
        let matters = !known.versioned && !known.capabilities.pulls();
        let document = known.documents.get_mut(key)?;
        if !matters || document.asked {
            return None;
        }
        document.asked = true;
        Some(document.version)
    }

    /// Runs when a question about a document is answered.
    pub(super) fn mark_seen(
        &self,
        key: &str,
        version: i32,
    ) -> impl FnOnce(&Result<Payload, RpcError>) + Send + 'static {
        let (session, key) = (Arc::clone(&self.session), key.to_owned());
        move |_| {
            {
                let mut known = session.known();
                let tick = known.tick;
                if let Some(document) = known.documents.get_mut(&key).filter(|one| one.version == version) {
                    document.seen.get_or_insert(tick);
                }
            }
            session.wake();
        }
    }

    /// Asks for the diagnostics of a document. The answer is exact for the text it was asked for.
    async fn pull(&self, call: &Call, synced: &Synced<'_>) -> Result<(), Why> {
        // What a server says while it loads its project may be less than it will know.
        if !self.rule_needs_diagnostics() && !self.ready(call).await {
            return Err(self.unfinished());
        }
        let mut pause = Pause::default();
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
                    self.take_pulled(synced, wire::pulled(&payload), asked);
                    return Ok(());
                }
                Ok(None) => {
                    pause.wait(call).await.map_err(|_| self.unfinished())?;
                }
                Err(RequestError::Refused(error)) => return Err(Why::Refused(error.message)),
                Err(error) => {
                    return Err(match gap(&error) {
                        Why::Pending => self.unfinished(),
                        why => why,
                    });
                }
            }
        }
    }

    /// Sends a question for a document's diagnostics. The moment that comes with it is one of the wire, since no write can come
    /// between taking it and sending: whatever changed before is in the answer.
    async fn ask_for_diagnostics(
        &self,
        call: &Call,
        synced: &Synced<'_>,
    ) -> Result<(Reply, u64), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let (asked, identifier) = {
            let known = self.session.known();
            (known.tick, known.capabilities.diagnostic_identifier().map(str::to_owned))
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
        self.entry().ready == Some(tenon_servers::registry::Ready::FirstDiagnostics)
    }

    /// Runs work that makes no sense any more once the document has a newer text.
    async fn unless_overtaken<T>(
        &self,
        synced: &Synced<'_>,
        work: impl Future<Output = T>,
    ) -> Result<T, Why> {
        let forever = Call::new(
            Instant::now() + std::time::Duration::from_secs(24 * 60 * 60),
            tokio_util::sync::CancellationToken::new(),
        );
        let overtaken = self.wait_until(&forever, |known, _| {
            let document = known.documents.get(synced.path.as_str());
            if document.is_some_and(|document| document.version == synced.version) {
                Wait::ForChange
            } else {
                Wait::Done(())
            }
        });
        tokio::select! {
            biased;
            done = work => Ok(done),
            _ = overtaken => Err(Why::Pending),
        }
    }

    fn take_pulled(&self, synced: &Synced<'_>, pulled: wire::Pulled, asked: u64) {
        let changed = {
            let mut known = self.session.known();
            let known = &mut *known;
            if known.ended {
                return;
            }
            known.readiness.diagnostics_arrived(Instant::now());
            let mut changed = false;
            // An answer for an older text must not take the place of one for the newer.
            let document = known.documents.get(synced.path.as_str());
            if let Some(document) = document.filter(|document| document.version == synced.version) {
                changed |= known.diagnostics.pull(document, pulled.items, synced.version, asked);
            }
            for (key, items) in pulled.related {
                if let Some(document) = known.documents.get(&key) {
                    let version = document.version;
                    changed |= known.diagnostics.pull(document, items, version, asked);
                } else {
                    let tick = known.tick + 1;
                    changed |= known.diagnostics.push(&key, None, items, None, tick, Instant::now());
                }
            }
            changed
        };
        if changed {
            self.session.epoch().advance();
        }
        self.session.wake();
    }

    /// A server that is ready with its first diagnostics and waits to be asked for them is asked, as soon as it says that
    /// it can be.
    pub(crate) async fn provoke_diagnostics(&self, call: &Call, synced: &Synced<'_>) {
        if !self.rule_needs_diagnostics() {
            return;
        }
        let pulls = self.wait_until(call, |known, now| match known.capabilities.pulls() {
            true => Wait::Done(true),
            false if known.ended || known.is_ready(now) => Wait::Done(false),
            false => Wait::ForChange,
        });
        if pulls.await == Ok(true) {
            // Without an answer the server stays unready, which the caller sees.
            let _ = self.pull(call, synced).await;
        }
    }

    /// Pulls what was not pulled since the last change that matters to it, for all open documents.
    async fn pull_open(&self, call: &Call) {
        if !self.pulls() {
            return;
        }
        let stale: Vec<(WorkspacePath, LineIndex)> = {
            let known = self.session.known();
            known
                .documents
                .iter()
                .filter(|document| !known.diagnostics.is_pulled(document, known.change_for(document)))
                .map(|document| (document.path.clone(), document.lines.clone()))
                .collect()
        };
        let pulls = stale.iter().map(|(path, _)| async {
            if let Some(synced) = self.pin(path) {
                // What cannot be pulled in time stays what it was.
                let _ = self.pull(call, &synced).await;
            }
        });
        futures::future::join_all(pulls).await;
    }

    /// Waits until the server is idle, asking it again about open documents whenever it says that something changed. Whether it
    /// came to that.
    pub(crate) async fn come_to_rest(&self, call: &Call) -> bool {
        loop {
            let change = self.session.known().change.tick;
            self.pull_open(call).await;
            let rested = self.wait_until(call, |known, now| {
                let pulls = known.capabilities.pulls();
                // Early words may be followed by others here as in the file itself.
                let settled = known.published + self.entry().settle();
                match known.ended || known.is_idle() {
                    true if !known.ended && !pulls && known.looks_beyond() && now < settled => {
                        Wait::Until(settled)
                    }
                    true => Wait::Done(true),
                    false if known.change.tick != change && pulls => Wait::Done(false),
                    false => Wait::ForChange,
                }
            });
            match rested.await {
                Ok(false) => {}
                rested => return rested.is_ok(),
            }
        }
    }

    /// The open documents for which a server that has to be made to speak anew holds something.
    pub(crate) fn complained_about(&self) -> Vec<WorkspacePath> {
        if !self.entry().reopens {
            return Vec::new();
        }
        let known = self.session.known();
        let open = known.documents.iter();
        let complained =
            open.filter(|one| !known.diagnostics.current(one.path.as_str(), Some(one)).is_empty());
        complained.map(|one| one.path.clone()).collect()
    }

    /// Keeps an open document open.
    fn pin(&self, path: &WorkspacePath) -> Option<Synced<'_>> {
        let mut known = self.session.known();
        let document = known.documents.get_mut(path.as_str())?;
        document.pins += 1;
        Some(Synced { client: self, path: path.clone(), version: document.version })
    }

    /// All files for which the server holds diagnostics, by the file's key, in the server's encoding.
    pub fn held_diagnostics(&self) -> Vec<(String, Vec<Diagnostic>)> {
        let known = self.session.known();
        known
            .diagnostics
            .keys()
            .map(|key| (key.to_owned(), known.diagnostics.current(key, known.documents.get(key))))
            .filter(|(_, items)| !items.is_empty())
            .collect()
    }

    /// What the server says now, without what it said before it had heard of the last change; all of one moment.
    pub(crate) fn said(&self) -> Said {
        let known = self.session.known();
        let open = known.documents.iter();
        let owed =
            open.filter(|document| known.is_owed(document)).map(|document| document.path.as_str().to_owned());
        let working = !known.ended && known.readiness.is_working();
        let mut said = Said { files: Vec::new(), unanswered: owed.collect(), owes: false, working };
        said.owes = !said.unanswered.is_empty();
        for key in known.diagnostics.keys().filter(|key| !said.unanswered.contains(*key)) {
            let document = known.documents.get(key);
            let (items, left_out) = match known.looks_beyond() {
                true => known.diagnostics.since(key, document, known.change),
                false => (known.diagnostics.current(key, document), false),
            };
            said.owes |= left_out;
            if !items.is_empty() {
                said.files.push((key.to_owned(), items));
            }
        }
        said
    }

    /// The version in which a document is open, with its text.
    pub(crate) fn open_version(&self, key: &str) -> Option<(i32, LineIndex)> {
        let known = self.session.known();
        known.documents.get(key).map(|document| (document.version, document.lines.clone()))
    }

    /// What the last change of a document did, and the version that it made.
    pub(crate) fn last_edit(&self, key: &str) -> Option<(LastEdit, i32)> {
        let known = self.session.known();
        known.documents.get(key).map(|document| (document.edit.clone(), document.version))
    }
}

/// What a server says at one moment, by file, in its own encoding.
pub(crate) struct Said {
    pub(crate) files: Vec<(String, Vec<Diagnostic>)>,
    /// The open documents that something is still to be said about: nothing is shown for them.
    pub(crate) unanswered: BTreeSet<String>,
    /// Whether more is to be said about what changed.
    pub(crate) owes: bool,
    /// Whether it works on something that it announced.
    pub(crate) working: bool,
}

/// How a wait for a push goes on.
#[derive(PartialEq)]
enum Way {
    Fresh,
    Pull,
    Again,
}

/// What a failed request means for an answer.
pub(crate) fn gap(error: &RequestError) -> Why {
    match error {
        RequestError::Interrupted(_) => Why::Pending,
        RequestError::Closed(_) => Why::Broken,
        RequestError::Refused(error) => Why::Refused(error.message.clone()),
        RequestError::Unwritable(error) => Why::Refused(error.to_string()),
    }
}
