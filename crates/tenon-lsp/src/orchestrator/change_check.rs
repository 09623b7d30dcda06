//! Diagnostics before and after a change: of the changed files, and of the files that depend on them.
//!
//! Each server goes through the same steps, in `server_change.rs`. Here the files are read, the servers are chosen, and their
//! results are merged. An unknown list is `None`, never empty, and the result is complete only if nothing is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tenon_contract::position::LineIndex;
use tenon_contract::root::{ReadError, WorkspacePath};
use tokio::time::Instant;

use super::baselines::ChangeNumber;
use super::server_change::{ChangedDocument, ServerShare};
use super::{Candidate, Key, Orchestrator, lines_of, lock};
use crate::call_context::CallContext;
use crate::model::{Diagnostic, GapReason};
use tenon_servers::registry::{Capability, ServerEntry, ServerId};

/// A file that was changed.
#[derive(Debug, Clone)]
pub struct ChangedText {
    pub path: WorkspacePath,
    /// The text before: empty for a new file, `None` if it is not known. Without it, dependents cannot be found, so the result
    /// is not complete.
    pub before: Option<String>,
    /// The new text; `None` means the text on disk, or that the file was deleted.
    pub after: Option<String>,
}

/// The diagnostics before and after a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeCheck {
    /// In the order given.
    pub changed: Vec<FileCheck>,
    /// The other files that were checked for this change, by path. Each has only servers that serve a changed file.
    pub others: Vec<FileCheck>,
    /// The servers that did not finish in time, in registry order.
    pub pending: Vec<ServerId>,
    /// Why servers did not check: they rejected requests, or their own check could not run.
    pub refused: BTreeMap<ServerId, String>,
    /// Whether every available server reported on the texts before and after, and on all dependents.
    pub complete: bool,
    /// Files that may depend on the change and were not checked, because of a limit or in time.
    pub unchecked: usize,
    /// What the servers do not support in the configuration of the projects.
    pub notes: Vec<String>,
}

/// One file's diagnostics before and after, by server, in registry order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCheck {
    pub path: WorkspacePath,
    pub servers: Vec<ServerCheck>,
    /// Whether it was not changed, and the configuration of every server's projects leaves it out.
    pub is_outside: bool,
}

impl FileCheck {
    /// A file that no server has checked.
    pub fn new(path: WorkspacePath) -> Self {
        Self { path, servers: Vec::new(), is_outside: false }
    }
}

/// One server's diagnostics of a file before and after a change; `None` is unknown, never clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCheck {
    pub server: ServerId,
    pub before: Option<Vec<Diagnostic>>,
    pub after: Option<Vec<Diagnostic>>,
}

/// The servers that check a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkers {
    /// None is configured.
    None,
    /// None of the configured ones can run.
    Unavailable,
    Available,
}

/// Whether a change was made, or is only tried: then nothing of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeMode {
    Made,
    Tried,
}

/// How a change begins on every server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeBegin {
    pub(super) number: ChangeNumber,
    /// When it was reported. It may be on disk since then, or a little longer.
    pub(super) reported: Instant,
    pub(super) mode: ChangeMode,
}

/// One server with the changed files that it serves.
struct ServerFiles {
    order: usize,
    candidate: Candidate,
    documents: Vec<ChangedDocument>,
}

impl Orchestrator {
    /// Shows a change to all servers of the changed files and collects diagnostics before and after it. Dependents may take up
    /// to `wait` before and after the new text is shown.
    pub async fn check_change(
        &self,
        files: &[ChangedText],
        wait: Duration,
        call: &CallContext,
    ) -> ChangeCheck {
        self.change(files, ChangeMode::Made, wait, call).await
    }

    pub(super) async fn change(
        &self,
        files: &[ChangedText],
        mode: ChangeMode,
        wait: Duration,
        call: &CallContext,
    ) -> ChangeCheck {
        let reported = Instant::now();
        let call = &call.clone().in_order();
        // A tried change is not on disk: what changed there is another one.
        let changing = if mode == ChangeMode::Made { files } else { &[] };
        let held = changing.iter().map(|file| file.path.clone()).collect();
        let held = Arc::new(self.0.in_flight.hold(held, &self.0.epochs));
        self.catch_up(call).await;
        let number = self.begin_change(changing).await;
        let mut check = ChangeCheck { complete: true, ..ChangeCheck::default() };
        let servers = self.servers_of(files, mode, &mut check, call).await;
        let begun = ChangeBegin { number, reported, mode };
        let shares = servers.iter().map(|server| {
            let held = (Arc::clone(&held), wait);
            self.change_on_server(&server.candidate, &server.documents, begun, held, call)
        });
        let shares: Vec<_> = shares.collect();
        // Each server lets go of the files when it has seen them.
        drop(held);
        let shares = join_all(shares).await;
        let pids: BTreeSet<u32> = shares.iter().filter_map(|share| share.pid).collect();
        merge(&mut check, shares);
        for file in files {
            check.unchecked += self.configured_files(&file.path).await;
        }
        check.complete &= check.unchecked == 0;
        let candidates = servers.into_iter().map(|server| server.candidate);
        let explained = candidates.filter(|candidate| check.has_explained_errors(&candidate.entry));
        check.notes = self.unsupported(explained.collect()).await;
        if mode == ChangeMode::Tried {
            return check;
        }
        lock(&self.0.baselines).finish(number, &pids, check.complete);
        if !pids.is_empty() {
            self.0.epoch.advance();
        }
        check
    }

    /// The servers of the changed files. Files that no server sees are noted in `check`.
    async fn servers_of(
        &self,
        files: &[ChangedText],
        mode: ChangeMode,
        check: &mut ChangeCheck,
        call: &CallContext,
    ) -> Vec<ServerFiles> {
        let mut servers: BTreeMap<Key, ServerFiles> = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            check.changed.push(FileCheck::new(file.path.clone()));
            let Ok(document) = self.changed_document(index, file, mode, call).await else {
                // Not text, or too large: servers never see it.
                check.complete = false;
                continue;
            };
            check.complete &= document.before.is_some();
            let candidates = self.candidates(&file.path).await.into_iter().enumerate();
            for (order, candidate) in
                candidates.filter(|(_, candidate)| candidate.entry.has(Capability::Diagnostics))
            {
                // A server that is not installed or may not run does not make the result incomplete.
                let Ok(root) = &candidate.place else {
                    continue;
                };
                let server = candidate.entry.id.clone();
                let skipped = document
                    .after
                    .as_ref()
                    .and_then(|after| self.skip_reason(&candidate.entry, &file.path, after));
                if let Some(why) = skipped {
                    let unknown = ServerCheck { server: server.clone(), before: None, after: None };
                    check.changed[index].servers.push(unknown);
                    check.note_gap(server, Some(why));
                    continue;
                }
                let key = (server, root.as_path().to_owned());
                let server = servers.entry(key).or_insert_with(|| ServerFiles {
                    order,
                    candidate: candidate.clone(),
                    documents: Vec::new(),
                });
                server.documents.push(document.clone());
            }
        }
        let mut servers: Vec<ServerFiles> = servers.into_values().collect();
        servers.sort_by(|a, b| (a.order, &a.candidate.entry.id).cmp(&(b.order, &b.candidate.entry.id)));
        servers
    }

    /// Stores the diagnostics of the files that depend on a change that will be tried, while other questions are answered.
    pub(super) async fn prepare_try(&self, files: &[ChangedText], wait: Duration, call: &CallContext) {
        let reported = Instant::now();
        self.catch_up(call).await;
        let number = self.begin_change(&[]).await;
        let servers = self.servers_of(files, ChangeMode::Tried, &mut ChangeCheck::default(), call).await;
        let begun = ChangeBegin { number, reported, mode: ChangeMode::Tried };
        let looking = call.at_most(wait);
        let prepared = servers
            .iter()
            .map(|server| self.prepare_on_server(&server.candidate, &server.documents, begun, &looking));
        join_all(prepared).await;
    }

    /// Whether servers are configured to check a file, and can run.
    pub async fn checkers(&self, path: &WorkspacePath) -> Checkers {
        let candidates = self.candidates(path).await.into_iter();
        let places =
            candidates.filter(|one| one.entry.has(Capability::Diagnostics)).map(|one| one.place.is_ok());
        match places.max() {
            None => Checkers::None,
            Some(false) => Checkers::Unavailable,
            Some(true) => Checkers::Available,
        }
    }

    /// The texts of a changed file.
    async fn changed_document(
        &self,
        index: usize,
        file: &ChangedText,
        mode: ChangeMode,
        call: &CallContext,
    ) -> Result<ChangedDocument, ReadError> {
        let on_disk = self.read(&file.path).await;
        let (after, saved) = match (&file.after, on_disk) {
            (Some(text), on_disk) => {
                let lines = lines_of(text.clone());
                let saved = on_disk.is_ok_and(|disk| disk.text() == lines.text());
                (Some(lines), saved)
            }
            (None, Ok(lines)) => (Some(lines), true),
            (None, Err(ReadError::Gone)) => (None, true),
            (None, Err(error)) => return Err(error),
        };
        let saved = saved && mode == ChangeMode::Made;
        let order = call.text_order().unwrap_or_default();
        if mode == ChangeMode::Made {
            self.0.note_unsaved(&file.path, after.as_ref().filter(|_| !saved).map(|lines| (order, lines)));
        }
        let known = || lock(&self.0.baselines).last_text(&file.path);
        let before: Option<LineIndex> = file.before.clone().map(lines_of).or_else(known);
        Ok(ChangedDocument { index, path: file.path.clone(), before, after, saved })
    }
}

impl ChangeCheck {
    /// Whether a server reports errors after the change, and not before, that options which it ignores may explain.
    fn has_explained_errors(&self, entry: &ServerEntry) -> bool {
        let is_explained = |found: &&Diagnostic| {
            found.code.as_ref().is_some_and(|code| entry.removed_option_errors.contains(code))
        };
        let checks = self.changed.iter().chain(&self.others).flat_map(|file| &file.servers);
        checks.filter(|check| check.server == entry.id).any(|check| {
            let before = check.before.as_deref().unwrap_or_default();
            let mut after = check.after.iter().flatten().filter(is_explained);
            after.any(|one| !before.iter().any(|other| other.message == one.message))
        })
    }

    fn note_gap(&mut self, server: ServerId, gap: Option<GapReason>) {
        self.complete &= gap.is_none();
        match gap {
            Some(GapReason::Indexing | GapReason::Pending) => self.pending.push(server),
            Some(GapReason::Refused(why)) => drop(self.refused.insert(server, why)),
            Some(GapReason::UnsupportedPath(found)) => {
                self.refused.insert(server, format!("does not support `{found}` in a path"));
            }
            _ => {}
        }
    }
}

/// Adds the servers' results.
fn merge(check: &mut ChangeCheck, shares: Vec<ServerShare>) {
    let mut others: BTreeMap<WorkspacePath, Vec<ServerCheck>> = BTreeMap::new();
    let mut unchecked: BTreeSet<WorkspacePath> = BTreeSet::new();
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    let mut not_searched = 0;
    for share in shares {
        for (index, own) in share.changed {
            check.complete &= own.before.is_some() && own.after.is_some();
            check.changed[index].servers.push(own);
        }
        for (path, other) in share.others {
            match share.outside.contains(&path) {
                true => outside.insert(path.clone()),
                false => inside.insert(path.clone()),
            };
            check.complete &= other.before.is_some() && other.after.is_some();
            others.entry(path).or_default().push(other);
        }
        unchecked.extend(share.unchecked);
        not_searched = not_searched.max(share.not_searched);
        check.note_gap(share.server, share.gap);
    }
    check.pending.dedup();
    let checked = others.into_iter().map(|(path, servers)| FileCheck {
        is_outside: outside.contains(&path) && !inside.contains(&path),
        path,
        servers,
    });
    check.others = checked.collect();
    check.unchecked = unchecked.len() + not_searched;
}
