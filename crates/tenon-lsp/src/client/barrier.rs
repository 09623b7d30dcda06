//! Requests whose answers show which text a server has seen: barriers.
//!
//! A publish without a version does not say which text it is about. A document that the server did not have open can only
//! have publishes about the opened text. For a change, one barrier is sent before it and one after it: a publish after the
//! first answer may be about the new text and counts once it has settled; a publish after the second answer counts as any
//! other. Some servers ignore requests that they do not know, so barriers are requests that the server has answered; a
//! server that answers none is judged by settling alone.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tenon_contract::root::WorkspacePath;

use super::capabilities::Capabilities;
use super::session::SessionState;
use super::{Client, Synced};
use crate::call_context::CallContext;
use crate::message::{Payload, RpcError};
use crate::model::GapReason;
use crate::transport::RequestError;

/// How many requests a server must answer without another publish before its diagnostics count as final.
const QUIET_ROUNDS: u32 = 3;

/// How long a server may take for the first answer to a kind of request before it counts as ignoring that kind. A later
/// answer corrects this.
const SILENCE: Duration = Duration::from_secs(1);

/// What shows that a publish without a version belongs to a document's text.
#[derive(Debug)]
pub(crate) struct SeenProof {
    possible: Possible,
    /// Whether a request was sent after the change.
    asked: bool,
    /// The tick after which publishes are about this text.
    certain: Option<u64>,
}

/// From when on a publish may be about the current text.
#[derive(Debug, PartialEq)]
enum Possible {
    /// Only from when it is certain.
    Later,
    /// From the answer to this request, which was sent before the change.
    Answer(&'static str),
    Since(u64),
}

/// Whether a publish belongs to a document's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    Yes,
    /// If no other publish follows within the settle time.
    OnceSettled,
    No,
}

impl SeenProof {
    /// For a document that the server did not have open.
    pub(crate) fn opened(tick: u64) -> Self {
        Self { possible: Possible::Since(tick), asked: true, certain: Some(tick) }
    }

    /// For a changed text.
    pub(crate) fn changed() -> Self {
        Self { possible: Possible::Later, asked: false, certain: None }
    }

    pub(crate) fn belongs(&self, tick: u64) -> Belongs {
        match (self.certain, &self.possible) {
            (Some(certain), _) if tick > certain => Belongs::Yes,
            (_, Possible::Since(since)) if tick > *since => Belongs::OnceSettled,
            _ => Belongs::No,
        }
    }

    /// Whether a request must show that the server has seen the text.
    fn is_needed(&self) -> bool {
        self.certain.is_none()
    }
}

/// The kinds of requests that one server answers and ignores.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    answered: BTreeSet<&'static str>,
    ignored: BTreeSet<&'static str>,
}

/// The next barrier.
#[derive(Debug, PartialEq)]
enum Choice {
    /// The server has answered such a request.
    Known(&'static str),
    /// It is not known which of these the server answers.
    Unknown(Vec<&'static str>),
    /// The server answers nothing.
    Deaf,
}

impl Questions {
    fn choose(&self, capabilities: &Capabilities) -> Choice {
        let candidates = capabilities.cheap_questions();
        if let Some(known) = candidates.iter().find(|method| self.answered.contains(*method)) {
            return Choice::Known(known);
        }
        let mut unknown: Vec<&'static str> =
            candidates.into_iter().filter(|method| !self.ignored.contains(method)).collect();
        if self.ignored.is_empty() {
            unknown.truncate(1);
        }
        if unknown.is_empty() { Choice::Deaf } else { Choice::Unknown(unknown) }
    }
}

impl SessionState {
    /// The barrier to send before a change, if it is needed and the server may answer it.
    fn barrier(&self) -> Option<&'static str> {
        match self.questions.choose(&self.capabilities) {
            Choice::Known(method) => Some(method),
            Choice::Unknown(methods) => methods.first().copied(),
            Choice::Deaf => None,
        }
    }

    fn note_answer(&mut self, method: &'static str) {
        self.questions.ignored.remove(method);
        self.questions.answered.insert(method);
    }

    /// Notes that a server does not answer a kind of request. Texts whose first barrier it was are judged by settling alone.
    fn note_silence(&mut self, method: &'static str) {
        self.questions.ignored.insert(method);
        for document in self.documents.iter_mut() {
            if document.proof.possible == Possible::Answer(method) {
                document.proof.possible = Possible::Since(document.changed);
            }
        }
    }
}

impl Client {
    /// The barrier to send before the text that a document has in our state now, if one is needed.
    pub(super) fn barrier_before_change(&self, path: &WorkspacePath) -> Result<Option<Bytes>, RequestError> {
        let (method, version) = {
            let mut state = self.session.state();
            // Its publishes about the closed text are not about the new one (decision 0320).
            if state.reopens() || !state.needs_proof() {
                return Ok(None);
            }
            let barrier = state.barrier();
            let Some(document) = state.documents.get_mut(path.as_str()).filter(|one| one.proof.is_needed())
            else {
                return Ok(None);
            };
            let Some(method) = barrier else {
                document.proof.possible = Possible::Since(document.changed);
                return Ok(None);
            };
            document.proof.possible = Possible::Answer(method);
            (method, document.version)
        };
        let (session, key) = (Arc::clone(&self.session), path.as_str().to_owned());
        let on_reply = move |_: &Result<Payload, RpcError>| {
            let mut state = session.state();
            state.note_answer(method);
            let tick = state.tick;
            if let Some(document) = state.documents.get_mut(&key).filter(|one| one.version == version) {
                document.proof.possible = Possible::Since(tick);
            }
            drop(state);
            session.wake();
        };
        self.connection.mark_frame(method, &question(method, path), on_reply).map(Some)
    }

    /// Sends a barrier after a change, unless a request was sent already or none is needed.
    pub(super) async fn mark_when_seen(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
    ) -> Result<(), RequestError> {
        let key = path.as_str();
        let barrier = self.session.state().barrier();
        let Some((method, version)) = barrier.and_then(|method| Some((method, self.note_question(key)?)))
        else {
            return Ok(());
        };
        let (seen, session) = (self.mark_seen(key, version), Arc::clone(&self.session));
        let on_reply = move |answer: &_| {
            session.state().note_answer(method);
            seen(answer);
        };
        self.connection.request_mark(call, method, &question(method, path), on_reply).await
    }

    /// Notes that a request about a document is about to be sent. Returns the document's version if the answer will be the first
    /// proof that the server has seen this text, and that proof is needed.
    pub(super) fn note_question(&self, key: &str) -> Option<i32> {
        let mut state = self.session.state();
        let matters = state.needs_proof();
        let document = state.documents.get_mut(key)?;
        if !matters || document.proof.asked {
            return None;
        }
        document.proof.asked = true;
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
                    document.proof.certain.get_or_insert(tick);
                }
            }
            session.wake();
        }
    }

    /// Whether the diagnostics stay the same while the server answers a few requests. No fixed delay works on every machine, but
    /// a server that is still checking publishes before it answers.
    pub(super) async fn is_quiet(&self, call: &CallContext, synced: &Synced<'_>) -> Result<bool, GapReason> {
        let key = synced.path.as_str();
        let held = || {
            let state = self.session.state();
            state.diagnostics.current(key, state.documents.get(key))
        };
        let before = held();
        for _ in 0..QUIET_ROUNDS {
            let answered = self.ask_barrier(call, &synced.path);
            match self.unless_overtaken(synced, answered).await? {
                Ok(true) => {}
                Ok(false) => return Ok(held() == before),
                Err(error) => return Err(self.gap_of(&error)),
            }
            if held() != before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds a request that the server answers, while a change waits for it.
    pub(super) async fn learn_questions(&self, call: &CallContext, path: &WorkspacePath) -> Infallible {
        let is_unknown = || {
            let state = self.session.state();
            let document = state.documents.get(path.as_str());
            state.needs_proof()
                && document.is_some_and(|document| document.proof.is_needed())
                && matches!(state.questions.choose(&state.capabilities), Choice::Unknown(_))
        };
        if is_unknown() && self.ready(call).await {
            // Without an answer the check ends at its own deadline.
            let _ = self.ask_barrier(call, path).await;
        }
        std::future::pending().await
    }

    /// Asks a cheap question and waits for the answer. `false` if the server answers nothing.
    async fn ask_barrier(&self, call: &CallContext, path: &WorkspacePath) -> Result<bool, RequestError> {
        loop {
            let choice = {
                let state = self.session.state();
                state.questions.choose(&state.capabilities)
            };
            match choice {
                Choice::Known(method) => return self.ask_question(call, path, method).await.map(|()| true),
                Choice::Deaf => return Ok(false),
                Choice::Unknown(methods) => {
                    let shortly = call.at_most(SILENCE);
                    let mut asked: FuturesUnordered<_> =
                        methods.iter().map(|method| self.ask_question(&shortly, path, method)).collect();
                    let mut answered = false;
                    while let (false, Some(outcome)) = (answered, asked.next().await) {
                        match outcome {
                            Ok(()) => answered = true,
                            Err(RequestError::Interrupted(_)) => call.check()?,
                            Err(error) => return Err(error),
                        }
                    }
                    if answered {
                        return Ok(true);
                    }
                    let mut state = self.session.state();
                    methods.into_iter().for_each(|method| state.note_silence(method));
                    drop(state);
                    self.session.wake();
                }
            }
        }
    }

    async fn ask_question(
        &self,
        call: &CallContext,
        path: &WorkspacePath,
        method: &'static str,
    ) -> Result<(), RequestError> {
        let session = Arc::clone(&self.session);
        let on_reply = move |_: &_| session.state().note_answer(method);
        let reply = self.connection.request_with(call, method, &question(method, path), on_reply).await?;
        match reply.wait(call).await {
            // An error is an answer, too.
            Ok(_) | Err(RequestError::Refused(_) | RequestError::TooLarge) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The parameters of a cheap question about a file.
fn question(method: &str, path: &WorkspacePath) -> Value {
    let document = json!({ "uri": path.uri().as_str() });
    let start = json!({ "line": 0, "character": 0 });
    match method {
        UNKNOWN_PROTOCOL_REQUEST | UNKNOWN_REQUEST => json!({}),
        "textDocument/codeAction" => json!({
            "textDocument": document, "range": { "start": start, "end": start }, "context": { "diagnostics": [] },
        }),
        "textDocument/hover"
        | "textDocument/definition"
        | "textDocument/documentHighlight"
        | "textDocument/completion" => json!({ "textDocument": document, "position": start }),
        _ => json!({ "textDocument": document }),
    }
}

/// Every server must answer requests that it does not know with an error, but some ignore them.
const UNKNOWN_PROTOCOL_REQUEST: &str = "$/tenon/barrier";
const UNKNOWN_REQUEST: &str = "tenon/barrier";

impl Capabilities {
    /// Requests that are cheap and do not interrupt other work, the best first.
    fn cheap_questions(&self) -> Vec<&'static str> {
        let offered = [
            ("foldingRangeProvider", "textDocument/foldingRange"),
            ("hoverProvider", "textDocument/hover"),
            ("documentSymbolProvider", "textDocument/documentSymbol"),
            ("definitionProvider", "textDocument/definition"),
            ("documentHighlightProvider", "textDocument/documentHighlight"),
            ("documentLinkProvider", "textDocument/documentLink"),
            ("codeActionProvider", "textDocument/codeAction"),
            ("completionProvider", "textDocument/completion"),
        ];
        let offered = offered.into_iter().filter(|(provider, method)| self.offers(provider, method));
        offered.map(|(_, method)| method).chain([UNKNOWN_PROTOCOL_REQUEST, UNKNOWN_REQUEST]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publish_after_opening_counts_at_once() {
        let proof = SeenProof::opened(4);
        assert_eq!(proof.belongs(4), Belongs::No);
        assert_eq!(proof.belongs(5), Belongs::Yes);
    }

    #[test]
    fn publish_between_two_barriers_counts_once_settled() {
        let mut proof = SeenProof::changed();
        assert_eq!(proof.belongs(9), Belongs::No);
        proof.possible = Possible::Since(5);
        assert_eq!((proof.belongs(5), proof.belongs(6)), (Belongs::No, Belongs::OnceSettled));
        proof.certain = Some(7);
        assert_eq!((proof.belongs(7), proof.belongs(8)), (Belongs::OnceSettled, Belongs::Yes));
    }

    #[test]
    fn ignored_request_is_replaced_by_one_that_is_answered() {
        let capabilities =
            Capabilities::from_initialize(&json!({ "capabilities": { "hoverProvider": true } }));
        let mut questions = Questions::default();
        assert_eq!(questions.choose(&capabilities), Choice::Unknown(vec!["textDocument/hover"]));
        questions.ignored.insert("textDocument/hover");
        let rest = vec![UNKNOWN_PROTOCOL_REQUEST, UNKNOWN_REQUEST];
        assert_eq!(questions.choose(&capabilities), Choice::Unknown(rest.clone()));
        questions.ignored.extend(rest);
        assert_eq!(questions.choose(&capabilities), Choice::Deaf);
        questions.ignored.remove("textDocument/hover");
        questions.answered.insert("textDocument/hover");
        assert_eq!(questions.choose(&capabilities), Choice::Known("textDocument/hover"));
    }
}
