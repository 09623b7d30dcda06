//! Pulled diagnostics: requested for one document, so the answer belongs to exactly its text.
//!
//! A server pulls by the protocol, or runs requests of tsserver for us: typescript-language-server publishes late and in three
//! parts, while tsserver answers at once (decision 0325).

use serde_json::{Value, json};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;
use tokio::time::Instant;

use super::{Client, RetryDelay, Synced, Wait, retryable};
use crate::call_context::CallContext;
use crate::from_protocol;
use crate::message::Payload;
use crate::model::GapReason;
use crate::transport::{PendingReply, RequestError};

/// The requests of tsserver that together give all diagnostics of a file.
const TSSERVER_REQUESTS: [&str; 3] =
    ["syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"];

impl Client {
    /// Pulls the diagnostics of a document, unless the last answer still counts.
    pub(super) async fn pull_unless_known(
        &self,
        call: &CallContext,
        synced: &Synced<'_>,
    ) -> Result<(), GapReason> {
        let is_known = {
            let state = self.session.state();
            let document = state.documents.get(synced.path.as_str());
            let document = document.filter(|document| document.version == synced.version);
            // A server that works may be loading what the answer lacks.
            state.is_ready(Instant::now())
                && !state.readiness.is_working()
                && document.is_some_and(|document| state.is_pulled_since_every_change(document))
        };
        if is_known { Ok(()) } else { self.pull(call, synced).await }
    }

    /// Pulls the diagnostics of a document. The answer belongs to exactly this text.
    pub(super) async fn pull(&self, call: &CallContext, synced: &Synced<'_>) -> Result<(), GapReason> {
        // Diagnostics while a project is loading may be incomplete. tsserver answers when it is loaded.
        let waits = !self.rule_needs_diagnostics() && self.tsserver_command().is_none();
        if waits && !self.ready(call).await {
            return Err(self.unfinished());
        }
        let mut pause = RetryDelay::default();
        loop {
            if call.remaining().is_zero() {
                return Err(self.unfinished());
            }
            let mut asked = 0;
            let asking = async {
                let slot = self.pulls.take(call).await?;
                let replies;
                (replies, asked) = self.ask_for_diagnostics(call, synced).await?;
                let mut answers = Vec::new();
                for reply in replies {
                    answers.push(reply.wait(call).await?);
                }
                drop(slot);
                Ok(answers)
            };
            match retryable(self.unless_overtaken(synced, asking).await?) {
                Ok(answers) => match answers.and_then(|answers| self.pulled(&answers)) {
                    Some(pulled) => {
                        self.take_pulled(synced, pulled, asked);
                        return Ok(());
                    }
                    None => pause.wait(call).await.map_err(|_| self.unfinished())?,
                },
                Err(RequestError::Refused(error)) => return Err(GapReason::Refused(error.message)),
                Err(error) => return Err(self.gap_of(&error)),
            }
        }
    }

    /// Sends requests for a document's diagnostics and returns their tick. The write lock covers both, so the answers include
    /// all changes before that tick.
    async fn ask_for_diagnostics(
        &self,
        call: &CallContext,
        synced: &Synced<'_>,
    ) -> Result<(Vec<PendingReply>, u64), RequestError> {
        let turn = call.bound(self.turns.lock()).await?;
        let (asked, identifier) = {
            let state = self.session.state();
            (state.tick, state.capabilities.diagnostic_identifier().map(str::to_owned))
        };
        let mut replies = Vec::new();
        if let Some(command) = self.tsserver_command() {
            for request in TSSERVER_REQUESTS {
                let arguments = json!([request, { "file": synced.path.uri().as_str() }]);
                let params = json!({ "command": command, "arguments": arguments });
                replies.push(self.connection.request(call, "workspace/executeCommand", &params).await?);
            }
        } else {
            let mut params = json!({ "textDocument": { "uri": synced.path.uri().as_str() } });
            if let Some(identifier) = identifier {
                params["identifier"] = Value::String(identifier);
            }
            let seen = self.mark_seen(synced.path.as_str(), synced.version);
            replies.push(self.connection.request_with(call, "textDocument/diagnostic", &params, seen).await?);
        }
        drop(turn);
        Ok((replies, asked))
    }

    /// The command that runs requests of tsserver, if this server has one.
    fn tsserver_command(&self) -> Option<&str> {
        let command = self.entry().tsserver_command.as_deref()?;
        self.session.state().capabilities.runs_tsserver.then_some(command)
    }

    /// Waits until tsserver has loaded a document's project. A project that it fails on never ends its progress.
    pub(super) async fn load_in_tsserver(
        &self,
        call: &CallContext,
        synced: &Synced<'_>,
    ) -> Result<(), RequestError> {
        let Some(command) = self.tsserver_command() else {
            return Ok(());
        };
        let arguments = json!([TSSERVER_REQUESTS[0], { "file": synced.path.uri().as_str() }]);
        let params = json!({ "command": command, "arguments": arguments });
        match self.ask(call, "workspace/executeCommand", &params).await {
            // It is still loading.
            Err(RequestError::Interrupted(_)) => Ok(()),
            loaded => loaded.map(drop),
        }
    }

    /// The diagnostics in the answers; `None` if tsserver did not answer a request.
    fn pulled(&self, answers: &[Payload]) -> Option<from_protocol::Pulled> {
        if self.tsserver_command().is_none() {
            return answers.first().map(from_protocol::pulled);
        }
        let lists: Option<Vec<_>> = answers.iter().map(from_protocol::tsserver_diagnostics).collect();
        Some(from_protocol::Pulled { items: lists?.concat(), related: Vec::new() })
    }

    fn rule_needs_diagnostics(&self) -> bool {
        self.entry().ready == Some(tenon_servers::registry::ReadinessRule::FirstDiagnostics)
    }

    fn take_pulled(&self, synced: &Synced<'_>, mut pulled: from_protocol::Pulled, asked: u64) {
        let changed = {
            let mut state = self.session.state();
            let state = &mut *state;
            if state.ended {
                return;
            }
            self.session.drop_false(state, &mut pulled.items);
            state.readiness.diagnostics_arrived(Instant::now());
            let mut changed = false;
            // An answer for an older text must not replace one for a newer text.
            let document = state.documents.get(synced.path.as_str());
            if let Some(document) = document.filter(|document| document.version == synced.version) {
                changed |= state.diagnostics.pull(document, pulled.items, synced.version, asked);
            }
            for (key, mut items) in pulled.related {
                self.session.drop_false(state, &mut items);
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
    pub(super) async fn pull_open(&self, call: &CallContext) {
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
}
