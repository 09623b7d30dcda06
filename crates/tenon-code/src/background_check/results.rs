//! The results of checked files, and which of them a change makes stale.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tenon_contract::root::{ReadError, RootGate, WorkspacePath};
use tenon_lsp::model::{Diagnostic, GapReason};
use tenon_lsp::orchestrator::{ENDED_THE_SERVER, Orchestrator};
use tenon_lsp::workspace_check::FileOutcome;
use tenon_lsp::{CallContext, Capability, ServerId};

use super::Findings;
use super::imports::{Imports, affected};
use crate::completeness::CompleteAnswer;
use crate::error::{CodeError, IndexingProgress, ProviderFailure, Unreadable};

/// How many files without a result are named while a round runs.
const MAX_PENDING: usize = 3;

/// A file that some server did not check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UncheckedFile {
    /// Relative to the workspace.
    pub(crate) file: String,
    pub(crate) why: Unchecked,
}

/// Why a file was not checked. Contains no server's message, which may reveal what lies outside the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unchecked {
    Unreadable(Unreadable),
    Late(ServerId),
    Ended(ServerId),
    Failed(ServerId),
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "{why}"),
            Self::Late(server) => write!(f, "{server} did not finish"),
            Self::Ended(server) => write!(f, "{server} ended"),
            Self::Failed(server) => write!(f, "{server} failed"),
        }
    }
}

/// The result of one file.
#[derive(Debug)]
struct FileResult {
    diagnostics: Vec<Diagnostic>,
    /// The servers that checked it.
    present: Vec<ServerId>,
    unproven: Vec<ServerId>,
    unchecked: Vec<UncheckedFile>,
}

/// The results of all covered files.
#[derive(Default)]
pub(super) struct Results {
    /// The last entry of the journal that was taken up.
    entry: u64,
    imports: BTreeMap<WorkspacePath, Imports>,
    files: BTreeMap<WorkspacePath, FileResult>,
    stale: BTreeSet<WorkspacePath>,
    unavailable: Vec<ServerId>,
}

impl Results {
    /// Marks all files as stale that may be affected by changes since the last call.
    pub(super) async fn take_up_changes(&mut self, engine: &Orchestrator, call: &CallContext) {
        let changes = engine.changes_since(self.entry);
        if changes.files.as_ref().is_some_and(BTreeSet::is_empty) {
            return;
        }
        let coverage = engine.covered(Capability::Diagnostics, call).await;
        let covered: BTreeSet<WorkspacePath> = coverage.files.into_iter().collect();
        self.unavailable = coverage.unavailable;
        self.entry = changes.last;
        let Some(mut changed) = changes.files else {
            self.imports = covered.iter().map(|path| (path.clone(), Imports::unknown())).collect();
            self.files.clear();
            self.stale = covered;
            return;
        };
        let gone = self.imports.keys().filter(|path| !covered.contains(*path));
        let new = covered.iter().filter(|path| !self.imports.contains_key(*path));
        changed.extend(gone.chain(new).cloned().collect::<Vec<_>>());
        let known = |path: &WorkspacePath| Some((path.clone(), self.imports.get(path)?.clone()));
        let before: BTreeMap<WorkspacePath, Imports> = changed.iter().filter_map(known).collect();
        self.imports.retain(|path, _| covered.contains(path));
        self.files.retain(|path, _| covered.contains(path));
        self.stale.retain(|path| covered.contains(path));
        for path in changed.iter().filter(|path| covered.contains(*path)) {
            let imports = match engine.read(path).await {
                Ok(lines) => Imports::of(path.as_path(), lines.text()),
                Err(_) => Imports::default(),
            };
            self.imports.insert(path.clone(), imports);
        }
        self.stale.extend(affected(&changed, &self.imports, &before));
    }

    /// Checks files again that a server failed on, for a new query.
    pub(super) fn forget_failures(&mut self) {
        if self.failing_server().is_some() {
            let failed = self.files.iter().filter(|(_, result)| !result.unchecked.is_empty());
            self.stale.extend(failed.map(|(path, _)| path.clone()));
        }
    }

    pub(super) fn store(&mut self, outcome: FileOutcome, gate: &RootGate) {
        let path = outcome.path.clone();
        let unchecked = |why| UncheckedFile { file: gate.display(&path), why };
        let mut result = FileResult {
            diagnostics: outcome.diagnostics,
            present: outcome.servers,
            unproven: Vec::new(),
            unchecked: Vec::new(),
        };
        for gap in outcome.gaps {
            let server = gap.server;
            match gap.why {
                GapReason::Limit => continue,
                GapReason::Unproven(_) => {
                    result.unproven.push(server);
                    continue;
                }
                GapReason::Unavailable(_) => {}
                GapReason::Indexing | GapReason::Pending => {
                    result.unchecked.push(unchecked(Unchecked::Late(server.clone())));
                }
                GapReason::Broken => result.unchecked.push(unchecked(Unchecked::Ended(server.clone()))),
                GapReason::Refused(why) if why == ENDED_THE_SERVER => {
                    result.unchecked.push(unchecked(Unchecked::Ended(server.clone())));
                }
                GapReason::Refused(_) => result.unchecked.push(unchecked(Unchecked::Failed(server.clone()))),
            }
            result.present.retain(|present| *present != server);
        }
        match outcome.lines {
            Ok(lines) => drop(self.imports.insert(path.clone(), Imports::of(path.as_path(), lines.text()))),
            // A removed file shows up as a change.
            Err(ReadError::Gone) => {}
            Err(error) => {
                if let CodeError::Unreadable(why) = error.into() {
                    result.unchecked.push(unchecked(Unchecked::Unreadable(why)));
                }
            }
        }
        self.stale.remove(&path);
        self.files.insert(path, result);
    }

    pub(super) fn stale(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.stale.iter()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.stale.is_empty()
    }

    pub(super) fn progress(&self, gate: &RootGate) -> IndexingProgress {
        let total = self.imports.len() as u64;
        let pending = self.stale.iter().take(MAX_PENDING).map(|path| gate.display(path)).collect();
        IndexingProgress { done: total - self.stale.len() as u64, total, pending }
    }

    /// The result of a finished round.
    pub(super) fn findings(&self) -> Result<CompleteAnswer<Findings>, CodeError> {
        if let Some(error) = self.failing_server() {
            return Err(error);
        }
        let found = self.files.iter().filter(|(_, result)| !result.diagnostics.is_empty());
        let files = found.map(|(path, result)| (path.clone(), result.diagnostics.clone())).collect();
        let unchecked = self.files.values().flat_map(|result| result.unchecked.clone()).collect();
        let servers = |list: fn(&FileResult) -> &Vec<ServerId>| -> Vec<ServerId> {
            let all: BTreeSet<ServerId> = self.files.values().flat_map(list).cloned().collect();
            all.into_iter().collect()
        };
        Ok(CompleteAnswer {
            value: Findings { files, unchecked },
            unproven: servers(|result| &result.unproven),
            unavailable: self.unavailable.clone(),
            present: servers(|result| &result.present),
        })
    }

    /// The error of a server that ended or failed on every file.
    fn failing_server(&self) -> Option<CodeError> {
        let present: BTreeSet<&ServerId> = self.files.values().flat_map(|result| &result.present).collect();
        let unchecked = self.files.values().flat_map(|result| &result.unchecked);
        let mut failing = unchecked.filter_map(|file| match &file.why {
            Unchecked::Ended(server) => Some((server, ProviderFailure::Broken(server.clone()))),
            Unchecked::Failed(server) => Some((server, ProviderFailure::Refused)),
            Unchecked::Late(_) | Unchecked::Unreadable(_) => None,
        });
        let (server, failure) = failing.find(|(server, _)| !present.contains(server))?;
        Some(CodeError::Provider { server: server.clone(), failure })
    }
}
