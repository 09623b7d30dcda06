//! One server's part of a change: diagnostics before, dependents, the new text, diagnostics after.
//!
//! References of a renamed symbol can be requested only while the server has the old text. So the old text is shown first if the
//! server does not have it, and changes on disk that belong to this change are held back until the dependents are known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use tenon_contract::position::LineIndex;
use tenon_contract::root::WorkspacePath;

use super::change_check::{ChangeBegin, ChangeMode, ServerCheck};
use super::change_dependents::{DependentSearch, Dependents};
use super::changes_in_flight::HeldFiles;
use super::convert::diagnostics_of;
use super::instance::{ClientLease, ServerInstance};
use super::{Candidate, Orchestrator, lock};
use crate::call_context::{CallContext, Interrupted};
use crate::client::{Checked, FileChangeKind, gap_reason};
use crate::model::{Diagnostic, GapReason};
use tenon_servers::registry::ServerId;

/// The most dependents that are checked for one change.
const MAX_DEPENDENTS: usize = 200;
/// How many of them are checked at once: fewer than a server may have open.
const AT_ONCE: usize = 32;

/// A change of several files may take as long as this many changes of one.
const MAX_TIMEOUTS: u32 = 4;

/// A changed file with its texts.
#[derive(Debug, Clone)]
pub(super) struct ChangedDocument {
    /// Its place in the change.
    pub(super) index: usize,
    pub(super) path: WorkspacePath,
    /// Empty for a new file, `None` if it is not known.
    pub(super) before: Option<LineIndex>,
    /// `None` for a deleted file.
    pub(super) after: Option<LineIndex>,
    /// Whether `after` is the text on disk.
    pub(super) saved: bool,
}

impl ChangedDocument {
    /// Whether the file is new on disk.
    fn is_created(&self) -> bool {
        self.saved
            && self.after.is_some()
            && self.before.as_ref().is_some_and(|before| before.text().is_empty())
    }

    fn kind(&self) -> FileChangeKind {
        if self.is_created() { FileChangeKind::Created } else { FileChangeKind::Changed }
    }
}

/// What one server reported on a change.
pub(super) struct ServerShare {
    pub(super) server: ServerId,
    /// Its process, if it runs.
    pub(super) pid: Option<u32>,
    /// By place in the change.
    pub(super) changed: Vec<(usize, ServerCheck)>,
    pub(super) others: Vec<(WorkspacePath, ServerCheck)>,
    /// Those of them that its projects leave out.
    pub(super) outside: BTreeSet<WorkspacePath>,
    /// Dependents that were not checked.
    pub(super) unchecked: BTreeSet<WorkspacePath>,
    /// How many files were not searched for names that the change removed.
    pub(super) not_searched: usize,
    /// The first reason why something is unknown.
    pub(super) gap: Option<GapReason>,
}

type Known = Option<Vec<Diagnostic>>;
/// Diagnostics by file.
type Findings = BTreeMap<String, Vec<Diagnostic>>;

/// A change on one running server.
struct ServerChange<'a> {
    orchestrator: &'a Orchestrator,
    instance: Arc<ServerInstance>,
    client: ClientLease,
    documents: &'a [ChangedDocument],
    begun: ChangeBegin,
    gap: Mutex<Option<GapReason>>,
}

impl Orchestrator {
    /// Shows a change to a server and collects its diagnostics.
    pub(super) async fn change_on_server(
        &self,
        candidate: &Candidate,
        documents: &[ChangedDocument],
        begun: ChangeBegin,
        (held, wait): (Arc<HeldFiles>, Duration),
        call: &CallContext,
    ) -> ServerShare {
        let server = candidate.entry.id.clone();
        let unknown = ServerCheck { server: server.clone(), before: None, after: None };
        let mut share = ServerShare {
            server,
            pid: None,
            changed: documents.iter().map(|document| (document.index, unknown.clone())).collect(),
            others: Vec::new(),
            outside: BTreeSet::new(),
            unchecked: BTreeSet::new(),
            not_searched: 0,
            gap: None,
        };
        // The timeout of the first check includes the start of the server.
        let starting = call.at_most(self.0.timeouts.first_check);
        let started = async {
            let instance = self.instance(candidate)?;
            let client = match begun.mode {
                ChangeMode::Made => instance.lease(&starting).await?,
                ChangeMode::Tried => ClientLease::of_try(instance.client(&starting).await?),
            };
            Ok((instance, client))
        };
        let (instance, client) = match started.await {
            Ok(started) => started,
            Err(GapReason::Unavailable(_)) => {
                share.changed.clear();
                return share;
            }
            Err(why) => {
                share.gap = Some(why);
                return share;
            }
        };
        share.pid = Some(client.pid());
        let change =
            ServerChange { orchestrator: self, instance, client, documents, begun, gap: Mutex::default() };
        change.run(&mut share, &starting, (held, wait), call).await;
        let others = share.others.iter().map(|(path, _)| path.clone()).collect();
        share.outside = self.outside_projects(candidate, others).await;
        share.gap = change.gap.into_inner().unwrap_or_else(PoisonError::into_inner);
        share
    }

    /// Stores what a server reports now on the files that depend on a change that will be tried.
    pub(super) async fn prepare_on_server(
        &self,
        candidate: &Candidate,
        documents: &[ChangedDocument],
        begun: ChangeBegin,
        call: &CallContext,
    ) {
        let Ok(instance) = self.instance(candidate) else { return };
        let Ok(client) = instance.lease(call).await else { return };
        let change =
            ServerChange { orchestrator: self, instance, client, documents, begun, gap: Mutex::default() };
        change.prepare(call).await;
    }
}

impl ServerChange<'_> {
    async fn run(
        &self,
        share: &mut ServerShare,
        starting: &CallContext,
        (holding, wait): (Arc<HeldFiles>, Duration),
        call: &CallContext,
    ) {
        let inner = &self.orchestrator.0;
        let several = u32::try_from(self.documents.len()).unwrap_or(u32::MAX).clamp(1, MAX_TIMEOUTS);
        let limited = |call: &CallContext| match self.client.was_checked() {
            true => call.at_most((inner.timeouts.check * several).max(wait)),
            false => starting.clone(),
        };
        let turns = async {
            let own = self.instance.change_turn.take(&limited(call)).await?;
            Ok::<_, Interrupted>((own, limited(call).bound(self.instance.sending_changes.lock()).await?))
        };
        let Ok(turn) = turns.await else {
            return self.missed(GapReason::Pending);
        };
        let call = &self.in_order(call);
        let own_call = || self.in_order(&limited(call));
        let held: Vec<WorkspacePath> = self.documents.iter().map(|document| document.path.clone()).collect();
        let others: Vec<WorkspacePath> = held.iter().cloned().chain(inner.in_flight.without(&held)).collect();
        if let Err(why) = inner.send_changes_without(&others, &self.instance, &self.client, &own_call()).await
        {
            return self.missed(why);
        }
        self.note_pending();
        // What the server reported on dependents may belong to a text between the two.
        let step = if self.documents.iter().any(|one| self.has_other_text(one)) {
            Step::BeforeAgain
        } else {
            Step::Before
        };
        let before_call = own_call();
        let before =
            join_all(self.documents.iter().map(|document| self.before(document, &before_call))).await;
        for ((_, own), before) in share.changed.iter_mut().zip(before) {
            own.before = before;
        }
        let saved_before = self.client.saved_findings_until(self.begun.reported);

        let looking = call.at_most(wait);
        let mut dependents = Dependents::default();
        for document in self.documents {
            dependents.add(self.search(document, &looking).before().await);
        }
        self.note(dependents.gap.clone());
        share.not_searched = dependents.not_searched;
        let mut files = dependents.files(&held);
        share.unchecked.extend(files.split_off(files.len().min(MAX_DEPENDENTS)));
        // The new text of a created file, and of any file for a server that reads the others from disk, is seen already.
        let sees_change = self.reads_others_from_disk();
        let (stored, checked): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|path| sees_change || dependents.importers.contains(path));
        let mut before = match checked.is_empty() || self.show_before(&looking).await {
            true => self.check_all(&checked, &looking, step).await,
            false => BTreeMap::new(),
        };
        before.extend(self.stored_all(&stored).await);

        let shown = async {
            // Servers do not look for a file that is open.
            if self.documents.iter().any(ChangedDocument::is_created) {
                let others = inner.in_flight.without(&held);
                inner.send_changes_without(&others, &self.instance, &self.client, &own_call()).await?;
            }
            self.show_after(&own_call()).await
        };
        let shown = shown.await;
        drop(turn);
        let own_call = own_call();
        let told = match shown {
            Ok(()) if self.is_tried() => Ok(()),
            Ok(()) => {
                let others = inner.in_flight.without(&held);
                inner.send_changes_but(&others, &self.instance, &self.client, &own_call).await
            }
            Err(why) => Err(why),
        };
        drop(holding);
        if let Err(why) = told {
            share.unchecked.extend(files);
            return self.missed(why);
        }
        let looking = call.at_most(wait);
        let (own, (after, late)) = tokio::join!(
            join_all(self.documents.iter().map(|document| self.after(document, &own_call))),
            self.dependents_after(&files, &held, &dependents, share, &looking),
        );
        before.extend(late);
        for ((_, own), after) in share.changed.iter_mut().zip(own) {
            own.after = after;
        }
        let is_unknown = |path: &WorkspacePath| before.get(path).is_none_or(Option::is_none);
        let unknown = after.iter().filter(|(path, after)| after.is_some() && is_unknown(path));
        let unknown: Vec<WorkspacePath> = unknown.map(|(path, _)| path.clone()).collect();
        before.extend(self.late_before(&unknown, &looking).await);
        for (path, after) in after {
            if after.is_none() {
                share.unchecked.insert(path);
                continue;
            }
            let before = before.remove(&path).flatten();
            let before = self.with_saved(&path, before, saved_before.as_ref()).await;
            share.others.push((path, ServerCheck { server: share.server.clone(), before, after }));
        }
        if self.is_tried() {
            return;
        }
        match (saved_before, self.client.saved_findings()) {
            (Some(before), Some(after)) => self.add_saved_findings(share, before, after).await,
            // The files on disk changed otherwise, or the check has not ended: other files were not compared.
            _ if self.client.checks_saved_files() => self.missed(GapReason::Pending),
            _ => {}
        }
    }

    /// Checks the dependents with the texts that all questions see.
    async fn prepare(&self, call: &CallContext) {
        let mut dependents = Dependents::default();
        for document in self.documents {
            dependents.add(self.search(document, call).before().await);
        }
        let held: Vec<WorkspacePath> = self.documents.iter().map(|document| document.path.clone()).collect();
        let mut files = dependents.files(&held);
        files.truncate(MAX_DEPENDENTS);
        files.retain(|path| !dependents.importers.contains(path));
        if !self.reads_others_from_disk() {
            self.check_all(&files, call, Step::Before).await;
        }
    }

    fn is_tried(&self) -> bool {
        self.begun.mode == ChangeMode::Tried
    }

    /// However this call ends, the server gets the current texts before the next request. After a try it gets them at once.
    fn note_pending(&self) {
        for document in self.documents.iter().filter(|_| !self.is_tried()) {
            lock(&self.instance.pending_changes).note(&document.path, document.kind());
        }
    }

    /// Whether the server reads files other than the checked one from disk, where the change is already: clangd's headers.
    fn reads_others_from_disk(&self) -> bool {
        self.client.entry().rebuilds && self.documents.iter().any(|document| document.saved)
    }

    /// A dependent's diagnostics before the change, with what the last check of the saved files before it found: a later one
    /// reads the changed files, too.
    async fn with_saved(&self, path: &WorkspacePath, known: Known, saved: Option<&Findings>) -> Known {
        if self.is_tried() || !self.client.checks_saved_files() {
            return known;
        }
        let (mut known, saved) = (known?, saved?);
        known.retain(|found| !self.client.is_made_on_save(found));
        if let Some(items) = saved.get(path.as_str()) {
            let lines = self.orchestrator.read(path).await.ok()?;
            known.extend(diagnostics_of(&lines, self.client.encoding(), items.clone()));
        }
        Some(known)
    }

    /// Adds the files whose findings in the check of all saved files changed, beside those that were checked.
    async fn add_saved_findings(&self, share: &mut ServerShare, before: Findings, after: Findings) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys.into_iter().filter(|key| before.get(*key) != after.get(*key)) {
            let Ok(path) = self.orchestrator.0.gate.admit_path(key) else {
                continue;
            };
            let is_known = self.documents.iter().any(|document| document.path == path)
                || share.others.iter().any(|(other, _)| *other == path);
            if is_known {
                continue;
            }
            let Ok(lines) = self.orchestrator.read(&path).await else {
                continue;
            };
            let list = |findings: &Findings| {
                let items = findings.get(key).cloned().unwrap_or_default();
                Some(diagnostics_of(&lines, self.client.encoding(), items))
            };
            let (before, after) = (list(&before), list(&after));
            share.others.push((path, ServerCheck { server: share.server.clone(), before, after }));
        }
    }

    fn search<'a>(&'a self, document: &'a ChangedDocument, call: &'a CallContext) -> DependentSearch<'a> {
        DependentSearch { orchestrator: self.orchestrator, client: &self.client, document, call }
    }

    /// The diagnostics before the change, which the server may have to be shown for that.
    async fn before(&self, document: &ChangedDocument, call: &CallContext) -> Known {
        let lines = document.before.as_ref()?;
        if lines.text().is_empty() {
            return Some(Vec::new());
        }
        if let Some(known) = self.stored(&document.path, lines) {
            return Some(self.comparable(known));
        }
        let checked = match self.begun.mode {
            ChangeMode::Made => {
                self.client.check_old_text(call, &document.path, lines, self.begun.reported).await
            }
            ChangeMode::Tried => {
                self.client.check_while(call, &document.path, lines, true, std::future::ready(())).await
            }
        };
        self.keep(&document.path, lines, checked).map(|known| self.comparable(known))
    }

    /// What can be compared with diagnostics of a text that is not saved.
    fn comparable(&self, mut known: Vec<Diagnostic>) -> Vec<Diagnostic> {
        if self.is_tried() {
            known.retain(|found| !self.client.is_made_on_save(found));
        }
        known
    }

    /// Whether the server has a text that is neither the old nor the new one.
    fn has_other_text(&self, document: &ChangedDocument) -> bool {
        let is = |text: &LineIndex, other: &Option<LineIndex>| {
            other.as_ref().is_some_and(|other| other.text() == text.text())
        };
        let open = self.client.open_text(document.path.as_str());
        open.is_some_and(|text| !is(&text, &document.before) && !is(&text, &document.after))
    }

    fn stored(&self, path: &WorkspacePath, lines: &LineIndex) -> Known {
        let stored = lock(&self.orchestrator.0.baselines).get(self.client.pid(), path, lines);
        stored.map(|known| known.to_vec())
    }

    /// Converts diagnostics; notes why they are not known.
    fn known(&self, lines: &LineIndex, checked: Checked) -> Known {
        if checked.gap.is_some() {
            self.note(checked.gap);
            return None;
        }
        Some(diagnostics_of(lines, self.client.encoding(), checked.diagnostics))
    }

    /// Converts and stores diagnostics.
    fn keep(&self, path: &WorkspacePath, lines: &LineIndex, checked: Checked) -> Known {
        let known = self.known(lines, checked)?;
        lock(&self.orchestrator.0.baselines).put(self.client.pid(), path, lines, &known, self.begun.number);
        Some(known)
    }

    fn note(&self, gap: Option<GapReason>) {
        let mut first = lock(&self.gap);
        if first.is_none() {
            *first = gap;
        }
    }

    fn missed(&self, why: GapReason) {
        self.note(Some(why));
    }

    /// The same call, in an order in which the old text may be shown again: the server may have read the new one from the disk.
    fn in_order(&self, call: &CallContext) -> CallContext {
        let shown = self.documents.iter().filter_map(|document| {
            let (text, order) = self.client.open_text_order(document.path.as_str())?;
            document.after.as_ref().is_some_and(|after| after.text() == text.text()).then_some(order)
        });
        match shown.chain(call.text_order()).max() {
            Some(order) => call.clone().with_text_order(order),
            None => call.clone(),
        }
    }

    /// Shows the old texts, as far as the files existed. `false` if a newer text has come.
    async fn show_before(&self, call: &CallContext) -> bool {
        for document in self.documents {
            if let Some(lines) = document.before.as_ref().filter(|lines| !lines.text().is_empty())
                && self.client.sync(call, &document.path, lines, false).await.is_err()
            {
                self.missed(GapReason::Pending);
                return false;
            }
        }
        true
    }

    /// Shows the new texts.
    async fn show_after(&self, call: &CallContext) -> Result<(), GapReason> {
        for document in self.documents {
            match &document.after {
                Some(lines) => {
                    let shown = self.client.sync(call, &document.path, lines, document.saved).await;
                    drop(shown.map_err(|error| gap_reason(&error))?);
                }
                None => lock(&self.instance.pending_changes).note(&document.path, FileChangeKind::Deleted),
            }
        }
        Ok(())
    }

    async fn after(&self, document: &ChangedDocument, call: &CallContext) -> Known {
        let Some(lines) = &document.after else {
            return Some(Vec::new());
        };
        if self.is_tried() {
            let checked = self.client.check_unsaved(call, &document.path, lines).await;
            return self.known(lines, checked);
        }
        let idle = std::future::ready(());
        let checked = self.client.check_while(call, &document.path, lines, document.saved, idle).await;
        self.keep(&document.path, lines, checked)
    }

    /// Checks the dependents, and those that become known with the new text, whose stored diagnostics come second.
    async fn dependents_after(
        &self,
        files: &[WorkspacePath],
        held: &[WorkspacePath],
        dependents: &Dependents,
        share: &mut ServerShare,
        call: &CallContext,
    ) -> (BTreeMap<WorkspacePath, Known>, BTreeMap<WorkspacePath, Known>) {
        let search = async {
            let mut late = Dependents::default();
            for document in self.documents {
                late.add(self.search(document, call).after(dependents).await);
            }
            late
        };
        let (mut checked, late) = tokio::join!(self.check_all(files, call, Step::After), search);
        self.note(late.gap.clone());
        share.not_searched = share.not_searched.max(late.not_searched);
        let mut late = late.files(held);
        late.retain(|path| !checked.contains_key(path) && !share.unchecked.contains(path));
        share.unchecked.extend(late.split_off(late.len().min(MAX_DEPENDENTS - files.len())));
        let stored = self.stored_all(&late).await;
        checked.extend(self.check_all(&late, call, Step::After).await);
        (checked, stored)
    }

    /// The stored diagnostics of files.
    async fn stored_all(&self, files: &[WorkspacePath]) -> BTreeMap<WorkspacePath, Known> {
        let mut found = BTreeMap::new();
        for path in files {
            let lines = self.orchestrator.read(path).await.ok();
            found.insert(path.clone(), lines.and_then(|lines| self.stored(path, &lines)));
        }
        found
    }

    /// Shows the old texts once more, to learn which diagnostics of these files are new: the files became known as dependents
    /// only with the new texts.
    async fn late_before(
        &self,
        files: &[WorkspacePath],
        call: &CallContext,
    ) -> BTreeMap<WorkspacePath, Known> {
        // A file that was created or deleted cannot be shown as it was, nor one that is read from disk.
        let known = |document: &ChangedDocument| {
            document.after.is_some()
                && document.before.as_ref().is_some_and(|before| !before.text().is_empty())
        };
        if files.is_empty() || self.reads_others_from_disk() || !self.documents.iter().all(known) {
            return BTreeMap::new();
        }
        let turns = async {
            let own = self.instance.change_turn.take(call).await?;
            Ok::<_, Interrupted>((own, call.bound(self.instance.sending_changes.lock()).await?))
        };
        let Ok(turn) = turns.await else {
            return BTreeMap::new();
        };
        let call = &self.in_order(call);
        self.note_pending();
        let before = match self.show_before(call).await {
            true => self.check_all(files, call, Step::BeforeAgain).await,
            false => BTreeMap::new(),
        };
        drop(turn);
        let current = call.at_most(self.orchestrator.0.timeouts.check);
        // Without an answer, the texts are sent with the next request.
        let _ = self.orchestrator.0.send_changes(&self.instance, &self.client, &current).await;
        before
    }

    /// Checks files, several at once.
    async fn check_all(
        &self,
        files: &[WorkspacePath],
        call: &CallContext,
        step: Step,
    ) -> BTreeMap<WorkspacePath, Known> {
        let checks = files.iter().cloned().map(|path| async move {
            let known = self.check_one(&path, call, step).await;
            (path, known)
        });
        stream::iter(checks).buffer_unordered(AT_ONCE).collect().await
    }

    async fn check_one(&self, path: &WorkspacePath, call: &CallContext, step: Step) -> Known {
        let lines = self.orchestrator.read(path).await.ok()?;
        if call.remaining().is_zero() {
            self.missed(GapReason::Pending);
            return None;
        }
        if let Some(why) = self.orchestrator.skip_reason(self.client.entry(), path, &lines) {
            self.missed(why);
            return None;
        }
        let checked = match step {
            Step::Before => match self.stored(path, &lines) {
                Some(known) => return Some(known),
                None => self.client.check_while(call, path, &lines, true, std::future::ready(())).await,
            },
            Step::BeforeAgain | Step::After => self.client.check_again(call, path, &lines).await,
        };
        // What belongs to the texts that stay.
        let stays = match step {
            Step::After => !self.is_tried(),
            Step::Before | Step::BeforeAgain => self.is_tried(),
        };
        if stays { self.keep(path, &lines, checked) } else { self.known(&lines, checked) }
    }
}

/// Which texts the server has.
#[derive(Debug, Clone, Copy)]
enum Step {
    Before,
    /// The old ones, after other ones.
    BeforeAgain,
    After,
}
