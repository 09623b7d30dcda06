//! Diagnostics of one text, and of all files.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::root::{ReadError, WorkspacePath};

use super::convert::{converted_diagnostics, diagnostics_of};
use super::{Orchestrator, lines_of};
use crate::call_context::CallContext;
use crate::model::{Diagnostic, Gap, LspAnswer, merge_diagnostics};
use tenon_servers::registry::Capability;

impl Orchestrator {
    /// The diagnostics of a file, for the given text or else the text on disk. The answer is complete if every server reported on
    /// exactly this text.
    pub async fn check(
        &self,
        path: &WorkspacePath,
        text: Option<String>,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Diagnostic>>, ReadError> {
        self.check_with_dependents(path, text, None, Duration::ZERO, call).await
    }

    /// Like [`Orchestrator::check`]; meanwhile dependents are opened, for at most `looking`, which also bounds the check itself. A
    /// server that does not know the file gets the text `before` first, so that only real changes count as changed.
    pub async fn check_with_dependents(
        &self,
        path: &WorkspacePath,
        text: Option<String>,
        before: Option<String>,
        looking: Duration,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Diagnostic>>, ReadError> {
        let epoch = self.epoch();
        let on_disk = self.read_now(path, call).await;
        let (lines, saved) = match text {
            Some(text) => {
                let lines = lines_of(text);
                let saved = on_disk.is_ok_and(|disk| disk.text() == lines.text());
                (lines, saved)
            }
            None => (on_disk?, true),
        };
        let before = before.map(lines_of);
        self.0.note_unsaved(path, (!saved).then_some(&lines));
        let mut candidates = self.candidates(path).await;
        candidates.retain(|candidate| candidate.entry.has(Capability::Diagnostics));
        let shares = join_all(candidates.iter().map(|candidate| async {
            // The timeout of the first check includes the start of the server.
            let starting = call.at_most(self.0.timeouts.first_check);
            let shown = before.as_ref().map(|before| (path, before));
            let client = match self.client_that_saw(shown, candidate, &starting).await {
                Ok(client) => client,
                Err(why) => return (Vec::new(), Some(why), false),
            };
            let call = if client.was_checked() {
                &call.at_most(self.0.timeouts.check.max(looking))
            } else {
                &starting
            };
            let look = async {
                if !looking.is_zero() {
                    let looking = call.at_most(looking);
                    let _ = looking.bound(self.open_dependents(&client, path, &looking)).await;
                }
            };
            let checked = client.check_while(call, path, &lines, saved, look).await;
            (diagnostics_of(&lines, client.encoding(), checked.diagnostics), checked.gap, true)
        }))
        .await;

        let mut all = Vec::new();
        let mut answer = LspAnswer { value: (), servers: Vec::new(), gaps: Vec::new() };
        let mut collected = false;
        for (candidate, (diagnostics, why, asked)) in candidates.iter().zip(shares) {
            let server = candidate.entry.id.clone();
            answer.servers.push(server.clone());
            answer.gaps.extend(why.map(|why| Gap { server, why }));
            all.push(diagnostics);
            collected |= asked;
        }
        if collected {
            self.remember(path, epoch);
            self.0.epoch.advance();
        }
        Ok(answer.map(|()| merge_diagnostics(all)))
    }

    /// All files for which a running server has diagnostics.
    pub async fn diagnostics(&self) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
        let clients = self.live_clients().into_iter();
        let held = clients.map(|client| {
            let held = client.held_diagnostics();
            converted_diagnostics(self.0.gate.clone(), client, held)
        });
        merged(join_all(held).await)
    }
}

/// Merges the diagnostics of several servers by file.
pub(super) fn merged(
    shares: Vec<Vec<(WorkspacePath, Vec<Diagnostic>)>>,
) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
    let mut files: BTreeMap<WorkspacePath, Vec<Vec<Diagnostic>>> = BTreeMap::new();
    for (path, items) in shares.into_iter().flatten() {
        files.entry(path).or_default().push(items);
    }
    files.into_iter().map(|(path, items)| (path, merge_diagnostics(items))).collect()
}
