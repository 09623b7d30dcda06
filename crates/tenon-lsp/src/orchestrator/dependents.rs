//! Finds the dependents of an edit, opens them, and waits for their diagnostics.
//!
//! Servers report nothing about closed files. So before a wait we open the files that reference what the edit touched, and
//! the files that contain an identifier which the edit removed: references to a renamed symbol can no longer be requested.
//!
//! References may take a server longer than diagnostics. So dependents are cached until another file changes: as long as only
//! the edited file changes, no new dependents can appear.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::future::join_all;
use serde_json::json;
use tenon_contract::position::{Encoding, LineIndex};
use tenon_contract::root::WorkspacePath;
use tokio::task::spawn_blocking;

use super::convert::{converted, converted_diagnostics};
use super::file_diagnostics::merged;
use super::instance::ServerInstance;
use super::{Inner, Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::Client;
use crate::identifiers;
use crate::model::{Diagnostic, Symbol};
use crate::transport::RequestError;
use tenon_servers::registry::{Capability, ServerId};

/// The most dependents to open for one edit.
const MAX_DEPENDENTS: usize = 20;
/// The most edited symbols to request references for.
const MAX_SYMBOLS: usize = 8;
/// The most recent edits that are remembered.
const MAX_RECENT: usize = 32;
/// The most files to search for identifiers, and their largest size.
const MAX_SEARCHED: usize = 5_000;
const MAX_SEARCHED_BYTES: u64 = 1024 * 1024;

/// A file that was checked, and the epoch before the check.
pub(super) struct RecentEdit {
    path: WorkspacePath,
    epoch: u64,
}

/// The known dependents of files, by server process and file.
#[derive(Default)]
pub(super) struct DependentsCache(BTreeMap<(u32, WorkspacePath), FileDependents>);

#[derive(Clone, Default)]
struct FileDependents {
    /// The version whose dependents were opened.
    version: i32,
    /// The files that reference a symbol, by its container and name.
    users: BTreeMap<(Option<String>, String), BTreeSet<WorkspacePath>>,
    /// The symbols that the file declared, if the server lists them.
    declared: BTreeSet<String>,
}

impl DependentsCache {
    /// Drops the dependents of all other files: a changed file may reference them now.
    pub(super) fn changed(&mut self, path: &WorkspacePath) {
        for ((_, owner), found) in &mut self.0 {
            if owner != path {
                found.users.clear();
                found.version = 0;
            }
        }
    }
}

/// Servers that did not finish during a wait, by process id.
#[derive(Default)]
struct UnfinishedServers {
    /// Did not receive the changes in time, or did not list the dependents.
    late: BTreeSet<u32>,
    /// Did not become idle after that.
    restless: BTreeSet<u32>,
}

/// The diagnostics of all files some time after an edit.
pub struct SettledDiagnostics {
    pub files: BTreeMap<WorkspacePath, Vec<Diagnostic>>,
    /// Open files that some server has not reported on since; their older diagnostics are left out.
    pub unanswered: BTreeSet<String>,
    /// In registry order.
    pub pending: Vec<ServerId>,
}

impl Orchestrator {
    /// Like [`Orchestrator::diagnostics`], after the dependents of all edits since `after` were updated: waits at most `wait`,
    /// less if every server is done.
    pub async fn diagnostics_after(
        &self,
        after: u64,
        wait: Duration,
        call: &CallContext,
    ) -> BTreeMap<WorkspacePath, Vec<Diagnostic>> {
        self.wait_for_dependents(after, wait, call).await;
        self.diagnostics().await
    }

    /// Like [`Orchestrator::diagnostics_after`], without diagnostics from before the edits, and with the pending servers.
    pub async fn settled_diagnostics(
        &self,
        after: u64,
        wait: Duration,
        call: &CallContext,
    ) -> SettledDiagnostics {
        let UnfinishedServers { late, restless } = self.wait_for_dependents(after, wait, call).await;
        let (mut pending, mut unanswered) = (Vec::new(), BTreeSet::new());
        let mut shares = Vec::new();
        for client in self.live_clients() {
            let current = client.current_diagnostics();
            unanswered.extend(current.unanswered);
            let id = &client.entry().id;
            let (late, restless) = (late.contains(&client.pid()), restless.contains(&client.pid()));
            // Work that began after the server was idle does not count.
            if late || current.more_expected || (restless && current.working) {
                pending.push(id.clone());
            }
            // A server that has not received all changes has no valid diagnostics.
            if !late {
                shares.push(converted_diagnostics(self.0.gate.clone(), client, current.files));
            }
        }
        pending.dedup();
        SettledDiagnostics { files: merged(join_all(shares).await), unanswered, pending }
    }

    /// The versions in which servers have a file open; `None` if one of them has a different text.
    pub fn open_versions(&self, path: &WorkspacePath, text: Option<&str>) -> Option<Vec<(ServerId, i32)>> {
        let mut versions = Vec::new();
        for client in self.live_clients() {
            let Some((version, lines)) = client.open_version(path.as_str()) else {
                continue;
            };
            if text.is_some_and(|text| **lines.text() != *text.strip_prefix('\u{feff}').unwrap_or(text)) {
                return None;
            }
            versions.push((client.entry().id.clone(), version));
        }
        Some(versions)
    }

    /// Opens the dependents of all edits since `after` and waits until the servers are idle, at most `wait`.
    async fn wait_for_dependents(&self, after: u64, wait: Duration, call: &CallContext) -> UnfinishedServers {
        let call = call.at_most(wait);
        let instances: Vec<Arc<ServerInstance>> = lock(&self.0.instances).values().cloned().collect();
        if instances.is_empty() {
            return UnfinishedServers::default();
        }
        let live: Vec<(&ServerInstance, Arc<Client>)> =
            instances.iter().filter_map(|instance| Some((&**instance, instance.live()?))).collect();
        let all: BTreeSet<u32> = live.iter().map(|(_, client)| client.pid()).collect();
        let unfinished = Mutex::new(UnfinishedServers { late: all.clone(), restless: all });
        let edited: Vec<WorkspacePath> = lock(&self.0.recent)
            .iter()
            .filter(|edited| edited.epoch >= after)
            .map(|edited| edited.path.clone())
            .collect();
        let mut epoch = self.0.epoch.subscribe();
        // Servers that do not finish in time are reported as unfinished.
        let _ = call
            .bound(async {
                join_all(live.iter().map(|(instance, client)| async {
                    if self.0.send_changes(instance, client, &call).await.is_err() {
                        return;
                    }
                    for path in &edited {
                        self.open_dependents(client, path, &call).await;
                    }
                    if !call.remaining().is_zero() {
                        lock(&unfinished).late.remove(&client.pid());
                    }
                    if client.wait_until_idle(&call).await {
                        lock(&unfinished).restless.remove(&client.pid());
                    }
                }))
                .await;
                let _ = epoch.wait_for(|now| *now > after).await;
            })
            .await;
        unfinished.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remember(&self, path: &WorkspacePath, epoch: u64) {
        let mut recent = lock(&self.0.recent);
        recent.retain(|edited| edited.path != *path);
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push(RecentEdit { path: path.clone(), epoch });
    }

    /// Opens a file with its text before the change, and remembers what it declared.
    pub(super) async fn show_before(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        before: &LineIndex,
        call: &CallContext,
    ) -> Result<(), RequestError> {
        let shown = client.sync(call, path, before, false).await?;
        if let Some(symbols) = self.symbols_of(client, path, call).await {
            let found = FileDependents { declared: declared(&symbols), ..FileDependents::default() };
            lock(&self.0.users).0.insert((client.pid(), path.clone()), found);
        }
        drop(shown);
        Ok(())
    }

    /// Opens the dependents of the last edit, unless that was done already.
    pub(super) async fn open_dependents(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        call: &CallContext,
    ) {
        let Some((edit, version)) = client.last_edit(path.as_str()) else {
            return;
        };
        if !client.has(Capability::Diagnostics) || client.checks_files_alone() {
            return;
        }
        let key = (client.pid(), path.clone());
        let before = lock(&self.0.users).0.get(&key).cloned();
        if before.as_ref().is_some_and(|found| found.version == version) {
            return;
        }
        let mut dropped = edit.dropped;
        if let Some(before) = before.as_ref().filter(|before| !before.declared.is_empty() && !edit.imports) {
            // Other files can only reference declared symbols, not words of comments or local names.
            dropped.retain(|word| before.declared.contains(word));
        }
        let mut found = before.unwrap_or_default();
        let (users, namesakes) = tokio::join!(
            self.users_of_lines(client, path, edit.lines, &mut found, call),
            self.files_with(client, path, dropped)
        );
        let files = users.into_iter().chain(namesakes);
        let mut files: BTreeSet<WorkspacePath> =
            files.filter(|user| user != path).take(MAX_DEPENDENTS).collect();
        // Diagnostics of these may still be on the way.
        files.extend(client.documents_to_reopen().into_iter().filter(|other| other != path));
        for file in files {
            if client.open_text(file.as_str()).is_some() {
                // Its diagnostics arrive later, with those of the other files.
                let _ = client.reopen(call, &file).await;
                continue;
            }
            if let Ok(lines) = self.read(&file).await {
                // It stays open; its diagnostics arrive later, with those of the other files.
                let _ = client.sync(call, &file, &lines, true).await;
            }
        }
        if !call.remaining().is_zero() {
            found.version = version;
            lock(&self.0.users).0.insert(key, found);
        }
    }

    /// The files of a server that contain one of these identifiers.
    async fn files_with(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        words: Vec<String>,
    ) -> Vec<WorkspacePath> {
        if words.is_empty() {
            return Vec::new();
        }
        let (inner, client, path) = (Arc::clone(&self.0), Arc::clone(client), path.clone());
        spawn_blocking(move || inner.search(&client, &path, &words)).await.unwrap_or_default()
    }

    /// The files that reference symbols on the touched lines of a document. Cached symbols are not requested again.
    async fn users_of_lines(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        touched: RangeInclusive<u32>,
        found: &mut FileDependents,
        call: &CallContext,
    ) -> BTreeSet<WorkspacePath> {
        let Some(lines) = client.open_text(path.as_str()) else {
            return BTreeSet::new();
        };
        let Some(symbols) = self.symbols_of(client, path, call).await else {
            return BTreeSet::new();
        };
        found.declared = declared(&symbols);
        let touched: Vec<&Symbol> = visible_elsewhere(&symbols)
            .filter(|symbol| {
                symbol.range.start.line <= *touched.end() && symbol.range.end.line >= *touched.start()
            })
            .take(MAX_SYMBOLS)
            .collect();
        let name = |symbol: &Symbol| (symbol.container.clone(), symbol.name.clone());
        let new: Vec<&Symbol> =
            touched.iter().copied().filter(|symbol| !found.users.contains_key(&name(symbol))).collect();
        let users =
            join_all(new.iter().map(|symbol| self.users_of(client, path, &lines, symbol, call))).await;
        for (symbol, users) in new.iter().zip(users) {
            if let Some(users) = users {
                found.users.entry(name(symbol)).or_default().extend(users);
            }
        }
        touched.iter().filter_map(|symbol| found.users.get(&name(symbol))).flatten().cloned().collect()
    }

    /// The symbols of a document, if the server also supports references.
    async fn symbols_of(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        call: &CallContext,
    ) -> Option<Vec<Symbol>> {
        let able = [Capability::DocumentSymbols, Capability::References];
        if !able.into_iter().all(|capability| client.has(capability)) {
            return None;
        }
        let document = json!({ "textDocument": { "uri": path.uri().as_str() } });
        let symbols = client.ask(call, "textDocument/documentSymbol", &document).await.ok()?;
        let owner = path.clone();
        converted(&self.0.gate, client, symbols, move |converter, payload| {
            converter.symbols(payload, Some(&owner)).items
        })
        .await
    }

    async fn users_of(
        &self,
        client: &Arc<Client>,
        path: &WorkspacePath,
        lines: &LineIndex,
        symbol: &Symbol,
        call: &CallContext,
    ) -> Option<Vec<WorkspacePath>> {
        let position = lines.convert_clamped(symbol.selection.start, Encoding::Utf16, client.encoding());
        let params = json!({
            "textDocument": { "uri": path.uri().as_str() }, "position": position,
            "context": { "includeDeclaration": false },
        });
        let payload = client.ask(call, "textDocument/references", &params).await.ok()?;
        converted(&self.0.gate, client, payload, |converter, payload| {
            let places = converter.locations(payload).items.into_iter();
            let files: BTreeSet<WorkspacePath> = places.map(|location| location.path).collect();
            files.into_iter().collect()
        })
        .await
    }
}

fn declared(symbols: &[Symbol]) -> BTreeSet<String> {
    visible_elsewhere(symbols).map(|symbol| symbol.name.clone()).collect()
}

/// Without symbols inside functions, which other files cannot reference.
fn visible_elsewhere(symbols: &[Symbol]) -> impl Iterator<Item = &Symbol> {
    let mut inside: Option<u32> = None;
    symbols.iter().filter(move |symbol| {
        if inside.is_some_and(|depth| symbol.depth > depth) {
            return false;
        }
        let is_function = matches!(symbol.kind.name(), "function" | "method" | "constructor");
        inside = is_function.then_some(symbol.depth);
        true
    })
}

impl Inner {
    /// Searches the files of a server for identifiers.
    fn search(&self, client: &Client, edited: &WorkspacePath, words: &[String]) -> Vec<WorkspacePath> {
        let served =
            |file: &Utf8PathBuf| client.entry().language_id(file).is_some() && file != edited.as_path();
        let mut found = Vec::new();
        for file in self.files().into_iter().filter(served).take(MAX_SEARCHED) {
            if found.len() == MAX_DEPENDENTS {
                break;
            }
            let Ok(path) = self.gate.admit_path(&file) else {
                continue;
            };
            let text = self.gate.read_to_string(&path, MAX_SEARCHED_BYTES).unwrap_or_default();
            if words.iter().any(|word| identifiers::contains(&text, word)) {
                found.push(path);
            }
        }
        found
    }
}
