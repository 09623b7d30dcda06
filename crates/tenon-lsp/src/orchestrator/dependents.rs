//! Finds the dependents of an edit, opens them, and waits for their diagnostics.
//!
//! Servers report nothing about closed files. So before a wait we open the files that reference what the edit touched, and
//! the files that contain an identifier which the edit removed: references to a renamed symbol can no longer be requested.
//!
//! References may take a server longer than diagnostics. So dependents are cached until another file changes: as long as only
//! the edited file changes, no new dependents can appear.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tenon_contract::position::{Encoding, LineIndex};
use tenon_contract::root::WorkspacePath;

use super::convert::converted;
use super::instance::ServerInstance;
use super::name_search::NameSearch;
use super::{Orchestrator, lock};
use crate::call_context::CallContext;
use crate::client::Client;
use crate::model::{Diagnostic, Symbol};
use tenon_servers::registry::Capability;

/// The most dependents to open for one edit.
const MAX_DEPENDENTS: usize = 20;
/// The most edited symbols to request references for.
const MAX_SYMBOLS: usize = 8;
/// The most recent edits that are remembered.
const MAX_RECENT: usize = 32;

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
    /// The files that reference a symbol, by its containers and name.
    users: BTreeMap<(Vec<String>, String), BTreeSet<WorkspacePath>>,
    /// The symbols that the file declared, if the server lists them.
    declared: BTreeSet<String>,
}

impl DependentsCache {
    /// The known users of a symbol, by its containers and name.
    pub(super) fn users(
        &self,
        server: u32,
        path: &WorkspacePath,
        symbol: &(Vec<String>, String),
    ) -> Option<BTreeSet<WorkspacePath>> {
        self.0.get(&(server, path.clone()))?.users.get(symbol).cloned()
    }

    pub(super) fn add(
        &mut self,
        server: u32,
        path: &WorkspacePath,
        symbol: (Vec<String>, String),
        users: BTreeSet<WorkspacePath>,
    ) {
        self.0.entry((server, path.clone())).or_default().users.insert(symbol, users);
    }

    /// Drops the dependents of a file, which were found while servers saw a tried text of it.
    pub(super) fn forget(&mut self, path: &WorkspacePath) {
        self.0.retain(|(_, owner), _| owner != path);
    }

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

    /// Opens the dependents of all edits since `after` and waits until the servers are idle, at most `wait`.
    async fn wait_for_dependents(&self, after: u64, wait: Duration, call: &CallContext) {
        let call = call.at_most(wait);
        let instances: Vec<Arc<ServerInstance>> = lock(&self.0.instances).values().cloned().collect();
        if instances.is_empty() {
            return;
        }
        let live: Vec<&Arc<ServerInstance>> =
            instances.iter().filter(|instance| instance.live().is_some()).collect();
        let edited: Vec<WorkspacePath> = lock(&self.0.recent)
            .iter()
            .filter(|edited| edited.epoch >= after)
            .map(|edited| edited.path.clone())
            .collect();
        let mut epoch = self.0.epoch.subscribe();
        // The caller takes what is known after the wait.
        let _ = call
            .bound(async {
                join_all(live.iter().map(|instance| async {
                    let Ok(client) = instance.lease(&call).await else {
                        return;
                    };
                    if self.0.send_changes(instance, &client, &call).await.is_err() {
                        return;
                    }
                    for path in &edited {
                        self.open_dependents(&client, path, &call).await;
                    }
                    client.wait_until_idle(&call).await;
                }))
                .await;
                let _ = epoch.wait_for(|now| *now > after).await;
            })
            .await;
    }

    pub(super) fn remember(&self, path: &WorkspacePath, epoch: u64) {
        let mut recent = lock(&self.0.recent);
        recent.retain(|edited| edited.path != *path);
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push(RecentEdit { path: path.clone(), epoch });
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
            self.files_named(client, path, NameSearch::words(dropped), call)
        );
        let files = users.into_iter().chain(namesakes.files);
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
        let name =
            |symbol: &Symbol| (symbol.container.iter().cloned().collect::<Vec<_>>(), symbol.name.clone());
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
