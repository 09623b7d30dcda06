//! Diagnostics of one text, and of all files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};

use super::convert::{converted_diagnostics, diagnostics_of};
use super::instance::ServerInstance;
use super::{Inner, Orchestrator, lines_of, lock};
use crate::call_context::CallContext;
use crate::model::{Diagnostic, Gap, GapReason, LspAnswer, merge_diagnostics};
use tenon_servers::registry::{Capability, ServerId};

/// How many outdated files are checked again at once.
const AT_ONCE: usize = 32;

impl Orchestrator {
    /// The diagnostics of a file, for the given text or else the text on disk. The answer is complete if every server reported on
    /// exactly this text.
    pub async fn check(
        &self,
        path: &WorkspacePath,
        text: Option<String>,
        call: &CallContext,
    ) -> Result<LspAnswer<Vec<Diagnostic>>, ReadError> {
        let epoch = self.epoch();
        let call = &call.clone().in_order();
        let arriving = Arc::new(self.0.arriving.enter());
        let on_disk = self.read_now(path, call).await;
        let (lines, saved) = match text {
            Some(text) => {
                let lines = lines_of(text);
                let saved = on_disk.is_ok_and(|disk| disk.text() == lines.text());
                (lines, saved)
            }
            None => (on_disk?, true),
        };
        let number = lock(&self.0.baselines).number();
        let mut candidates = self.candidates(path).await;
        candidates.retain(|candidate| candidate.entry.has(Capability::Diagnostics));
        if !self.0.note_passed(path, &lines, saved, call) {
            let servers: Vec<ServerId> =
                candidates.iter().map(|candidate| candidate.entry.id.clone()).collect();
            let gaps = servers.iter().map(|server| Gap { server: server.clone(), why: GapReason::Pending });
            return Ok(LspAnswer { value: Vec::new(), gaps: gaps.collect(), servers, notes: Vec::new() });
        }
        let shares: Vec<_> = candidates.iter().map(|candidate| (candidate, Arc::clone(&arriving))).collect();
        drop(arriving);
        let shares = join_all(shares.into_iter().map(|(candidate, arriving)| async {
            let skipped = self.skip_reason(&candidate.entry, path, &lines);
            if skipped.is_some() {
                return (Vec::new(), skipped, false);
            }
            // The timeout of the first check includes the start of the server.
            let starting = call.at_most(self.0.timeouts.first_check);
            let client = async {
                match call.passes_changes() {
                    true => self.client_about(candidate, path, &starting).await,
                    false => self.client(candidate, &starting).await.map(|client| (client, false)),
                }
            };
            tokio::pin!(client);
            let (client, arriving) = match futures::poll!(&mut client) {
                Poll::Ready(client) => (client, Some(arriving)),
                // The server may be starting, or busy with another change.
                Poll::Pending => {
                    drop(arriving);
                    (client.await, None)
                }
            };
            let (client, has_passed) = match client {
                Ok(client) => client,
                Err(why) => return (Vec::new(), Some(why), false),
            };
            let call = if client.was_checked() { &call.at_most(self.0.timeouts.check) } else { &starting };
            let shown = async {
                drop(arriving);
                self.0.arriving.all_shown(self.0.timeouts.gather).await;
            };
            let checked = client.check_shown(call, path, &lines, saved, shown).await;
            let diagnostics = diagnostics_of(&lines, client.encoding(), checked.diagnostics);
            // Diagnostics without a change that has begun are not those from before the next one.
            if checked.gap.is_none() && !has_passed {
                lock(&self.0.baselines).put(client.pid(), path, &lines, &diagnostics, number);
            }
            (diagnostics, checked.gap, true)
        }))
        .await;

        let mut all = Vec::new();
        let mut answer = LspAnswer { value: (), servers: Vec::new(), gaps: Vec::new(), notes: Vec::new() };
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

    /// The diagnostics of all files that running servers have checked, and how many files these are. Open files that changes
    /// elsewhere may have affected are checked again, and left out if that does not finish in time.
    pub async fn current_diagnostics(
        &self,
        call: &CallContext,
    ) -> (BTreeMap<WorkspacePath, Vec<Diagnostic>>, CheckedFiles) {
        self.catch_up(call).await;
        let call = &call.clone().caught_up();
        // Leaves time to count the files.
        let checking = &call.at_most(call.remaining() * 3 / 4);
        let instances: Vec<Arc<ServerInstance>> = lock(&self.0.instances).values().cloned().collect();
        let told = instances.iter().map(|instance| async {
            if instance.live().is_some()
                && let Ok(client) = instance.lease(checking).await
            {
                // A server without the changes stays outdated.
                let _ = self.0.send_changes(instance, &client, checking).await;
            }
        });
        join_all(told).await;
        let outdated = self.outdated_files();
        let paths: Vec<WorkspacePath> =
            outdated.iter().filter_map(|key| self.0.gate.admit_path(key).ok()).collect();
        let checks = paths.into_iter().map(|path| async {
            let answer = self.check(&path, None, checking).await.ok().filter(LspAnswer::is_complete)?;
            Some((path, answer.value))
        });
        let checked: BTreeMap<WorkspacePath, Vec<Diagnostic>> =
            stream::iter(checks).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        let mut known = self.diagnostics().await;
        known.retain(|path, _| !outdated.contains(path.as_str()));
        let covered = self.checked_files(&checked, call).await;
        known.extend(checked.into_iter().filter(|(_, found)| !found.is_empty()));
        (known, covered)
    }

    /// How many files running servers have checked, of all files that servers serve: those that were checked just now, and
    /// those of which no server's diagnostics are expected.
    async fn checked_files(
        &self,
        now: &BTreeMap<WorkspacePath, Vec<Diagnostic>>,
        call: &CallContext,
    ) -> CheckedFiles {
        let coverage = self.covered(Capability::Diagnostics, call).await;
        let (mut known, mut expected) = (BTreeSet::new(), BTreeSet::new());
        for client in self.live_clients().iter().filter(|client| client.has(Capability::Diagnostics)) {
            client.add_checked(&mut known, &mut expected);
        }
        for path in now.keys() {
            known.insert(path.as_str().to_owned());
            expected.remove(path.as_str());
        }
        let served: BTreeSet<&str> = coverage.files.iter().map(WorkspacePath::as_str).collect();
        let checked = known.iter().filter(|key| !expected.contains(*key) && served.contains(key.as_str()));
        CheckedFiles { checked: checked.count(), pending: expected.len(), served: served.len() }
    }

    fn outdated_files(&self) -> BTreeSet<String> {
        let clients = self.live_clients().into_iter().filter(|client| client.has(Capability::Diagnostics));
        clients.flat_map(|client| client.outdated_files()).collect()
    }

    /// All files for which a running server has diagnostics.
    pub async fn diagnostics(&self) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
        let instances: Vec<Arc<ServerInstance>> = lock(&self.0.instances).values().cloned().collect();
        let held = instances.into_iter().map(|instance| async move {
            // A try is short.
            let _texts = instance.texts.read().await;
            let Some(client) = instance.live() else {
                return Vec::new();
            };
            let held = client.held_diagnostics();
            converted_diagnostics(self.0.gate.clone(), client, held).await
        });
        merged(join_all(held).await)
    }
}

/// How much of the workspace the known diagnostics cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedFiles {
    pub checked: usize,
    /// Open files that a server has not reported on yet.
    pub pending: usize,
    /// All files that servers serve.
    pub served: usize,
}

impl Inner {
    /// Notes a text that servers are about to see. `false` if a newer text of the file was passed already.
    fn note_passed(&self, path: &WorkspacePath, lines: &LineIndex, saved: bool, call: &CallContext) -> bool {
        let order = call.text_order().unwrap_or_default();
        let mut passed = lock(&self.passed);
        if passed.last.get(path).is_some_and(|last| *last > order) {
            return false;
        }
        passed.last.insert(path.clone(), order);
        self.set_unsaved(&mut passed.unsaved, path, (!saved).then_some((order, lines)));
        true
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
