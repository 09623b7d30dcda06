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
    /// The server cannot read the file, and may fail on every file of the project for that reason.
    Rejected(ServerId),
    Ended(ServerId),
    Unreadable(Unreadable),
    UnsupportedPath(ServerId),
    Late(ServerId),
    Failed(ServerId),
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "{why}"),
            Self::UnsupportedPath(server) => write!(f, "{server} does not support its name"),
            Self::Late(server) => write!(f, "{server} did not finish"),
            Self::Ended(server) => write!(f, "{server} ended"),
            Self::Rejected(server) => write!(f, "{server} cannot read it"),
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
        // Any change may end a failure.
        self.stale.extend(self.failed());
    }

    /// The files that a server failed on.
    fn failed(&self) -> Vec<WorkspacePath> {
        let is_failure =
            |file: &UncheckedFile| matches!(file.why, Unchecked::Failed(_) | Unchecked::Rejected(_));
        let failed = self.files.iter().filter(|(_, result)| result.unchecked.iter().any(is_failure));
        failed.map(|(path, _)| path.clone()).collect()
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
                GapReason::UnsupportedPath(_) => {
                    result.unchecked.push(unchecked(Unchecked::UnsupportedPath(server.clone())));
                }
                GapReason::Broken => result.unchecked.push(unchecked(Unchecked::Ended(server.clone()))),
                GapReason::Refused(why) if why == ENDED_THE_SERVER => {
                    result.unchecked.push(unchecked(Unchecked::Ended(server.clone())));
                }
                GapReason::Refused(_) if outcome.rejected_by.contains(&server) => {
                    result.unchecked.push(unchecked(Unchecked::Rejected(server.clone())));
                }
                GapReason::Refused(_) | GapReason::TooLarge => {
                    result.unchecked.push(unchecked(Unchecked::Failed(server.clone())))
                }
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
        let rejections = |result: &FileResult| -> BTreeSet<ServerId> {
            let of = |file: &UncheckedFile| match &file.why {
                Unchecked::Rejected(server) => Some(server.clone()),
                _ => None,
            };
            result.unchecked.iter().filter_map(of).collect()
        };
        let now = rejections(&result);
        let before = self.files.insert(path, result).map(|before| rejections(&before)).unwrap_or_default();
        for server in now.difference(&before) {
            // The server may fail on the others, too.
            let checked = self.files.iter().filter(|(_, result)| result.present.contains(server));
            self.stale.extend(checked.map(|(path, _)| path.clone()));
        }
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
        let mut unchecked: Vec<UncheckedFile> =
            self.files.values().flat_map(|result| result.unchecked.clone()).collect();
        // A stable sort: the causes of failures come first.
        unchecked.sort_by_key(|file| match file.why {
            Unchecked::Rejected(_) => 0,
            Unchecked::Failed(_) => 2,
            _ => 1,
        });
        let servers = |list: fn(&FileResult) -> &Vec<ServerId>| -> Vec<ServerId> {
            let all: BTreeSet<ServerId> = self.files.values().flat_map(list).cloned().collect();
            all.into_iter().collect()
        };
        Ok(CompleteAnswer {
            value: Findings { files, unchecked, checked: self.files.len() },
            unproven: servers(|result| &result.unproven),
            unavailable: self.unavailable.clone(),
            present: servers(|result| &result.present),
        })
    }

    /// The error of a server that ended on every file, or failed on every file while no other server checked any.
    fn failing_server(&self) -> Option<CodeError> {
        let present: BTreeSet<&ServerId> = self.files.values().flat_map(|result| &result.present).collect();
        let unchecked = self.files.values().flat_map(|result| &result.unchecked);
        let failing = unchecked.filter_map(|file| match &file.why {
            Unchecked::Ended(server) if !present.contains(server) => {
                Some((server, ProviderFailure::Broken(server.clone())))
            }
            Unchecked::Rejected(server) if present.is_empty() => {
                Some((server, ProviderFailure::Rejected(file.file.clone())))
            }
            Unchecked::Failed(server) if present.is_empty() => Some((server, ProviderFailure::Refused)),
            _ => None,
        });
        // The cause first.
        let (server, failure) =
            failing.min_by_key(|(_, failure)| matches!(failure, ProviderFailure::Refused))?;
        Some(CodeError::Provider { server: server.clone(), failure })
    }
}
