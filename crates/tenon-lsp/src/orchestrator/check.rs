//! Diagnostics: of one text, of all files that any server complains about, and of what an edit broke elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tenon_contract::position::{Encoding, LineIndex};
use tenon_contract::root::{ReadError, WorkspacePath};

use super::convert::{diagnostics_of, on_blocking_thread};
use super::{Orchestrator, lines_of, lock};
use crate::call::Call;
use crate::client::Client;
use crate::model::{Answer, Diagnostic, Gap, Symbol, merge_diagnostics};
use crate::registry::Capability;

/// Files opened because an edit may have broken them.
const MAX_DEPENDENTS: usize = 20;
/// Symbols of one edit whose users are looked for.
const MAX_SYMBOLS: usize = 8;
/// Edits remembered for a later look at other files.
const MAX_RECENT: usize = 32;

/// A file whose text a check changed, and the epoch before that.
pub(super) struct Edited {
    path: WorkspacePath,
    epoch: u64,
}

impl Orchestrator {
    /// The diagnostics of a file, for the text given or else the text on disk. `complete` in the answer means that every
    /// server had its say about exactly this text.
    pub async fn check(
        &self,
        path: &WorkspacePath,
        text: Option<String>,
        call: &Call,
    ) -> Result<Answer<Vec<Diagnostic>>, ReadError> {
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
        self.0.note_unsaved(path, (!saved).then_some(&lines));
        let mut candidates = self.candidates(path).await;
        candidates.retain(|candidate| candidate.entry.has(Capability::Diagnostics));
        let shares = join_all(candidates.iter().map(|candidate| async {
            // A start counts into a server's first check; who waits for it alone is as patient.
            let starting = call.at_most(self.0.timeouts.first_check);
            let client = match self.client(candidate, &starting).await {
                Ok(client) => client,
                Err(why) => return (Vec::new(), Some(why), false),
            };
            let call = if client.was_checked() { &call.at_most(self.0.timeouts.check) } else { &starting };
            let checked = client.check(call, path, &lines, saved).await;
            (diagnostics_of(&lines, client.encoding(), checked.diagnostics), checked.gap, true)
        }))
        .await;

        let mut all = Vec::new();
        let mut answer = Answer { value: (), servers: Vec::new(), gaps: Vec::new() };
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

    /// All files for which a running server holds diagnostics, whoever caused them.
    pub async fn diagnostics(&self) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
        let shares = join_all(self.live_clients().into_iter().map(|client| {
            on_blocking_thread(self.0.gate.clone(), client, |converter| converter.held_diagnostics())
        }))
        .await;
        let mut files: BTreeMap<WorkspacePath, Vec<Vec<Diagnostic>>> = BTreeMap::new();
        for (path, items) in shares.into_iter().flatten().flatten() {
            files.entry(path).or_default().push(items);
        }
        files.into_iter().map(|(path, items)| (path, merge_diagnostics(items))).collect()
    }

    /// As [`Orchestrator::diagnostics`], after what the edits since `after` may have broken elsewhere had time to show: at
    /// most `wait`, less when every server is done.
    pub async fn diagnostics_after(
        &self,
        after: u64,
        wait: Duration,
        call: &Call,
    ) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
        let call = call.at_most(wait);
        let clients = self.live_clients();
        if clients.is_empty() && lock(&self.0.slots).is_empty() {
            return BTreeMap::new();
        }
        let edited: Vec<WorkspacePath> = lock(&self.0.recent)
            .iter()
            .filter(|edited| edited.epoch >= after)
            .map(|edited| edited.path.clone())
            .collect();
        let mut epoch = self.0.epoch.subscribe();
        // Whatever is not done in time shows in the next look.
        let _ = call
            .bound(async {
                join_all(clients.iter().map(|client| async {
                    for path in &edited {
                        self.open_dependents(client, path, &call).await;
                    }
                    if client.has_inter_file_dependencies() {
                        client.pull_open(&call).await;
                    }
                    client.idle(&call).await;
                }))
                .await;
                let _ = epoch.wait_for(|now| *now > after).await;
            })
            .await;
        self.diagnostics().await
    }

    fn remember(&self, path: &WorkspacePath, epoch: u64) {
        let mut recent = lock(&self.0.recent);
        recent.retain(|edited| edited.path != *path);
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push(Edited { path: path.clone(), epoch });
    }

    /// Opens files that use what an edit changed: servers report nothing about files that are not open.
    async fn open_dependents(&self, client: &Arc<Client>, path: &WorkspacePath, call: &Call) {
        let able = [Capability::Diagnostics, Capability::DocumentSymbols, Capability::References];
        let Some(lines) = client.open_text(path.as_str()) else {
            return;
        };
        let Some(touched) = client.touched_lines(path.as_str()) else {
            return;
        };
        if !able.into_iter().all(|capability| client.has(capability)) {
            return;
        }
        let document = json!({ "textDocument": { "uri": path.uri().as_str() } });
        let Ok(symbols) = client.ask(call, "textDocument/documentSymbol", &document).await else {
            return;
        };
        let owner = path.clone();
        let gate = self.0.gate.clone();
        let symbols = on_blocking_thread(gate.clone(), Arc::clone(client), move |converter| {
            converter.symbols(&symbols, Some(&owner)).items
        })
        .await
        .unwrap_or_default();
        let declared = symbols
            .iter()
            .filter(|symbol| {
                symbol.range.start.line <= *touched.end() && symbol.range.end.line >= *touched.start()
            })
            .take(MAX_SYMBOLS);
        let users = join_all(declared.map(|symbol| self.users_of(client, path, &lines, symbol, call))).await;
        let files: BTreeSet<WorkspacePath> =
            users.into_iter().flatten().filter(|user| user != path).take(MAX_DEPENDENTS).collect();
        for file in files {
            if client.open_text(file.as_str()).is_some() {
                continue;
            }
            if let Ok(lines) = self.read(&file).await {
                // Sent and left open; its diagnostics arrive with everyone else's.
                let _ = client.sync(call, &file, &lines, true).await;
            }
        }
    }

    async fn users_of(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        lines: &LineIndex,
        symbol: &Symbol,
        call: &Call,
    ) -> Vec<WorkspacePath> {
        let position = lines.convert_clamped(symbol.selection.start, Encoding::Utf16, client.encoding());
        let params = json!({
            "textDocument": { "uri": path.uri().as_str() }, "position": position,
            "context": { "includeDeclaration": false },
        });
        let Ok(payload) = client.ask(call, "textDocument/references", &params).await else {
            return Vec::new();
        };
        on_blocking_thread(self.0.gate.clone(), Arc::clone(client), move |converter| {
            let mut files: Vec<_> =
                converter.locations(&payload).items.into_iter().map(|location| location.path).collect();
            files.sort_unstable();
            files.dedup();
            files
        })
        .await
        .unwrap_or_default()
    }
}
